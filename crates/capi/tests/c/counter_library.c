/* A library with a variable. */
long library_counter[3] = {5, 6, 7};
static long hidden;
long *library_hidden(void)
{
    return &hidden;
}
