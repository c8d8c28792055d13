/* A child that a PE forks is nobody in the world, however it ends. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = -1, i;
    start_pes(0);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        const pid_t child = fork();
        if (child == 0)
            exit(0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (i = 0; i < 5; i++)
        shmem_barrier_all();
    return failures;
}
