/* Contexts: options, teams' numbers, independence of ordering, invalid ones. */
#include "check.h"

static long slot[16];

int main(void)
{
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
    shmem_ctx_t ctx, many[64];
    shmem_team_t team, back;
    shmem_ctx_session_config_t session;
    int me, n, i;
    size_t k;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    for (k = 0; k < sizeof options / sizeof *options; k++) {
        CHECK(shmem_ctx_create(options[k], &ctx) == 0 && ctx != SHMEM_CTX_INVALID);
        shmem_ctx_long_p(ctx, &slot[k], 10 * me + (long)k, (me + 1) % n);
        shmem_ctx_fence(ctx);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
        CHECK(slot[k] == 10 * ((me + n - 1) % n) + (long)k);
        CHECK(shmem_ctx_get_team(ctx, &back) == 0 && back == SHMEM_TEAM_WORLD);
        shmem_ctx_destroy(ctx);
        shmem_barrier_all();
    }
    CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &back) == 0 && back == SHMEM_TEAM_WORLD);
    back = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &back) != 0 && back == SHMEM_TEAM_INVALID);

    /* On an invalid context nothing happens. */
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);

    /* A team's context counts as the team does: backwards here. */
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team) == 0);
    CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
    CHECK(shmem_ctx_get_team(ctx, &back) == 0 && back == team);
    shmem_ctx_long_p(ctx, &slot[8], 500 + me, me);
    shmem_ctx_long_atomic_add(ctx, &slot[9], 1, 0);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(slot[8] == 500 + (n - 1 - me));
    CHECK(slot[9] == (me == n - 1 ? n : 0));
    CHECK(shmem_ctx_long_g(ctx, &slot[8], n - 1 - me) == slot[8]);
    session.total_ops = 8;
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &session, SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_pe_quiet(ctx, &me, 1);
    shmem_pe_quiet(&me, 1);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);

    for (i = 0; i < 64; i++)
        CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &many[i]) == 0);
    shmem_barrier_all();
    for (i = 0; i < 64; i++)
        shmem_ctx_long_atomic_inc(many[i], &slot[10], 0);
    for (i = 0; i < 64; i++)
        shmem_ctx_destroy(many[i]);
    shmem_barrier_all();
    CHECK(me != 0 || slot[10] == 64 * n);
    return verdict();
}
