// What a kernel's barrier does for a PE that dies before it, and for one that does not come: it ends, and who was waited for
// is named. The program starts its own PEs, by unique id, as many as its argument says (at least 2): the world of one that
// dies ends, and would take a launcher's with it.
#include "check.h"
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

__global__ void meet() { nvshmem_barrier_all(); }

// A PE: all meet, then the last one dies or waits, and the others go on to a barrier without it.
static void pe(int rank, int n, const nvshmemx_uniqueid_t *id, bool dies, const char *file, int hold) {
    if (freopen(file, "a", stderr) == nullptr) exit(4);
    nvshmemx_init_attr_t attributes;
    CHECK_EQ(nvshmemx_set_attr_uniqueid_args(rank, n, id, &attributes), 0);
    CHECK_EQ(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), 0);
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(rank % devices));
    int *word = (int *)nvshmem_calloc(1, sizeof(int));
    CHECK(word != nullptr);
    meet<<<1, 1>>>();
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    if (rank == n - 1) {
        if (failures != 0) _exit(3);
        if (dies) raise(SIGKILL);
        char byte;
        // Until all others have ended.
        if (read(hold, &byte, 1) < 0) _exit(4);
        _exit(0);
    }
    // What has gone wrong so far is not what this is about.
    if (failures != 0) _exit(3);
    meet<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize() != cudaSuccess);
    // The next call says for whom.
    nvshmem_quiet();
    _exit(failures == 0 ? 0 : 5);
}

int main(int count, char **words) {
    const int n = count > 1 ? atoi(words[1]) : 2;
    int wrong = 0, limit = 5;
    for (int turn = 0; turn < 2; ++turn) {
        const bool dies = turn == 1;
        const std::string file = std::string("/tmp/gone.") + std::to_string(getpid());
        // A limit for who does not come; of one that dies everybody hears at once.
        dies ? unsetenv("CROSSWARP_WAIT_TIMEOUT") : setenv("CROSSWARP_WAIT_TIMEOUT", std::to_string(limit).c_str(), 1);
        nvshmemx_uniqueid_t id;
        int hold[2];
        if (nvshmemx_get_uniqueid(&id) != 0 || pipe(hold) != 0) return 2;
        std::vector<pid_t> processes;
        for (int rank = 0; rank < n; ++rank) {
            processes.push_back(fork());
            if (processes.back() == 0) {
                close(hold[1]);
                pe(rank, n, &id, dies, file.c_str(), hold[0]);
            }
        }
        close(hold[0]);
        std::vector<int> ended(n - 1);
        bool early = false;
        for (int rank = 0; rank + 1 < n; ++rank) {
            waitpid(processes[rank], &ended[rank], 0);
            early |= WIFEXITED(ended[rank]) && WEXITSTATUS(ended[rank]) == 3;
        }
        close(hold[1]);
        int last = 0;
        waitpid(processes[n - 1], &last, 0);
        early |= WIFEXITED(last) && WEXITSTATUS(last) == 3;
        // The limit holds for all waits, and on a busy machine one that is not in vain may take as long.
        if (!dies && early && limit < 300) {
            limit *= 4, --turn;
            unlink(file.c_str());
            continue;
        }
        for (int rank = 0; rank + 1 < n; ++rank) {
            const int status = ended[rank];
            // By itself, or ended with its world.
            const bool fine = (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                              (dies && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
            if (!fine) fprintf(stderr, "PE %d ended with status %#x\n", rank, status), ++wrong;
        }
        std::string said;
        if (FILE *in = fopen(file.c_str(), "r")) {
            char line[4096];
            while (fgets(line, sizeof(line), in) != nullptr) said += line;
            fclose(in);
            unlink(file.c_str());
        }
        const std::string name = "PE " + std::to_string(n - 1);
        if (said.find(name) == std::string::npos) ++wrong, fprintf(stderr, "%s is not named:\n", name.c_str());
        fprintf(stderr, "%s: %s\n", dies ? "one that dies" : "one that does not come", said.c_str());
    }
    printf("%s gone\n", wrong == 0 ? "PASS" : "FAIL");
    return wrong != 0;
}
