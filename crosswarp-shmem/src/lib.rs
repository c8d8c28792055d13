//! crosswarp-shmem
