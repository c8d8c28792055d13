
/* Synchronisation of a team, under the name that the active-set form has too. */
#if !defined(SHMEM_NO_GENERICS)
#if defined(__cplusplus)
static inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define shmem_sync(...) \
    _Generic((SHMEM_C11_FIRST(__VA_ARGS__, 0)), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)
#endif
#endif

#endif /* SHMEM_H */
