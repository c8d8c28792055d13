/* A program that was compiled with another library's header, as far as anybody can see. */
void shmem_init(void);
void shmem_finalize(void);

int main(void)
{
    shmem_init();
    shmem_finalize();
    return 0;
}
