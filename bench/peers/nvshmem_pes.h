// NVSHMEM without MPI or a launcher: PEs are forked before anything touches CUDA, one per GPU, and meet through
// NVSHMEM's unique id. NVLink multicast is off.
#pragma once
#include <nvshmem.h>
#include <nvshmemx.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <string>

#include "measure.h"

inline std::string nvshmem_version() {
    return std::to_string(NVSHMEM_VENDOR_MAJOR_VERSION) + "." + std::to_string(NVSHMEM_VENDOR_MINOR_VERSION) + "." +
           std::to_string(NVSHMEM_VENDOR_PATCH_VERSION);
}

// What the PEs share before they have NVSHMEM.
struct meeting_point {
    std::atomic<int> has_id;
    nvshmemx_uniqueid_t id;
};

// Makes this process PE `me` on GPU `me`; 0 if all went well.
inline int start_pe(int me, int pes, meeting_point* meeting) {
    CHECK_CUDA(cudaSetDevice(me));
    CHECK_CUDA(cudaFree(nullptr));
    // PE 0 makes the id itself: the process that does serves the others' first meeting.
    if (me == 0) {
        nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
        if (nvshmemx_get_uniqueid(&id) != 0) {
            fprintf(stderr, "nvshmem: no unique id\n");
            return 1;
        }
        meeting->id = id;
        meeting->has_id.store(1, std::memory_order_release);
    } else {
        while (meeting->has_id.load(std::memory_order_acquire) == 0) usleep(1000);
    }
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(me, pes, &meeting->id, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
        fprintf(stderr, "nvshmem: PE %d could not start\n", me);
        return 1;
    }
    return 0;
}

// ---- the parent ------------------------------------------------------------------------------------

// CUDA must not start before the fork, so a child of its own counts.
inline int count_gpus() {
    pid_t child = fork();
    if (child == 0) {
        int count = 0;
        _exit(cudaGetDeviceCount(&count) == cudaSuccess ? count : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

// Runs `run(me, pes)` on `pes` PEs, on all GPUs if 0; the exit code for `main`.
template <class Run> int run_pes(int pes, Run run) {
    // Everything is on this host: no multicast, no network between PEs, the first meeting by loopback.
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);

    int gpus = count_gpus();
    if (pes == 0) pes = gpus;
    if (pes < 2 || pes > gpus) {
        fprintf(stderr, "nvshmem: needs 2 or more GPUs, one per PE; %d asked for, %d found\n", pes, gpus);
        return 2;
    }
    void* shared = mmap(nullptr, sizeof(meeting_point), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("nvshmem: mmap");
        return 1;
    }
    auto* meeting = new (shared) meeting_point{};
    std::vector<pid_t> children;
    for (int pe = 0; pe < pes; ++pe) {
        pid_t child = fork();
        if (child == 0) {
            // No PE outlives the program.
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int status = start_pe(pe, pes, meeting);
            if (status == 0) status = run(pe, pes);
            if (status == 0) nvshmem_finalize();
            exit(status);
        }
        if (child < 0) {
            perror("nvshmem: fork");
            for (pid_t other : children) kill(other, SIGKILL);
            return 1;
        }
        children.push_back(child);
    }
    // The first PE that fails ends the others, which would wait for it for ever.
    int failed = 0;
    for (size_t left = children.size(); left > 0; --left) {
        int status = 0;
        pid_t ended = wait(&status);
        auto at = std::find(children.begin(), children.end(), ended);
        if (at != children.end()) *at = -1;
        if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0) && !failed) {
            failed = 1;
            for (pid_t other : children) {
                if (other > 0) kill(other, SIGKILL);
            }
        }
    }
    return failed;
}
