/* Teams: numbers, splitting in strides and planes, translation, configuration, collectives on them. */
#include "check.h"

static long values[64], sums[64];

/* The members of `team` are, in order, the world's PEs `start + i * stride`. */
static void check_team(shmem_team_t team, int start, int stride, int size)
{
    const int me = shmem_my_pe();
    int i, mine = -1;
    long expected = 0;
    for (i = 0; i < size; i++) {
        if (start + i * stride == me)
            mine = i;
        expected += start + i * stride;
    }
    if (mine < 0) {
        CHECK(team == SHMEM_TEAM_INVALID);
        CHECK(shmem_team_my_pe(team) == -1 && shmem_team_n_pes(team) == -1);
        return;
    }
    CHECK(team != SHMEM_TEAM_INVALID);
    CHECK(shmem_team_my_pe(team) == mine && shmem_team_n_pes(team) == size);
    for (i = 0; i < size; i++) {
        CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == start + i * stride);
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team) == i);
        CHECK(shmem_team_ptr(team, values, i) == shmem_ptr(values, start + i * stride));
    }
    CHECK(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(team, -1, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, team) == -1);
    CHECK(shmem_team_ptr(team, values, size) == NULL);
    values[0] = me;
    CHECK(shmem_team_sync(team) == 0);
    CHECK(shmem_long_sum_reduce(team, sums, values, 1) == 0 && sums[0] == expected);
    CHECK(shmem_team_sync(team) == 0);
    CHECK(shmem_long_fcollect(team, sums, values, 1) == 0);
    for (i = 0; i < size; i++)
        CHECK(sums[i] == start + i * stride);
    CHECK(shmem_team_sync(team) == 0);
    CHECK(shmem_long_broadcast(team, sums, values, 1, size - 1) == 0 && sums[0] == start + (size - 1) * stride);
    CHECK(shmem_team_sync(team) == 0);
    for (i = 0; i < size; i++)
        values[i] = 100 * me + i;
    CHECK(shmem_long_alltoall(team, sums, values, 1) == 0);
    for (i = 0; i < size; i++)
        CHECK(sums[i] == 100 * (start + i * stride) + mine);
    CHECK(shmem_team_sync(team) == 0);
}

int main(void)
{
    shmem_team_t team, part, x, y;
    shmem_team_config_t config;
    int me, n, i, code;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    check_team(SHMEM_TEAM_WORLD, 0, 1, n);
    if (ONE_HOST) {
        check_team(SHMEM_TEAM_SHARED, 0, 1, n);
    } else {
        int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED), i;
        CHECK(shared > 0 && shared < n);
        for (i = 0; i < n; ++i) {
            int there = shmem_team_translate_pe(SHMEM_TEAM_WORLD, i, SHMEM_TEAM_SHARED) >= 0;
            CHECK(there == (shmem_ptr(values, i) != NULL));
        }
    }

    /* Even PEs; the configuration comes back. */
    config.num_contexts = 3;
    code = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &team);
    CHECK(code == 0);
    check_team(team, 0, 2, (n + 1) / 2);
    if (team != SHMEM_TEAM_INVALID) {
        config.num_contexts = 0;
        CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 && config.num_contexts == 3);
        /* Strides are the parent's: every second of every second. */
        CHECK(shmem_team_split_strided(team, 0, 2, ((n + 1) / 2 + 1) / 2, NULL, 0, &part) == 0);
        check_team(part, 0, 4, ((n + 1) / 2 + 1) / 2);
        if (part != SHMEM_TEAM_INVALID)
            CHECK(shmem_team_get_config(part, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 && config.num_contexts == 0);
        shmem_team_destroy(part);
        shmem_team_destroy(team);
    } else {
        CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
        shmem_team_destroy(team);
    }
    shmem_barrier_all();

    /* Backwards, and a part from the end. */
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team) == 0);
    check_team(team, n - 1, -1, n);
    CHECK(shmem_team_split_strided(team, 0, 1, (n + 1) / 2, NULL, 0, &part) == 0);
    check_team(part, n - 1, -1, (n + 1) / 2);
    shmem_team_destroy(part);
    shmem_team_destroy(team);

    /* One PE alone. */
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, 1, 1, NULL, 0, &team) == 0);
    check_team(team, n - 1, 1, 1);
    shmem_team_destroy(team);

    /* What can not be: an invalid parent, a set beyond the parent. */
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 2, NULL, 0, &x, NULL, 0, &y) != 0);
    CHECK(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID);

    /* Planes of every width: numbers run along x first. */
    for (i = 1; i <= n + 1; i++) {
        const int width = i < n ? i : n, row = me / width, column = me % width;
        const int in_row = row == (n - 1) / width ? n - row * width : width;
        CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, i, NULL, 0, &x, NULL, 0, &y) == 0);
        check_team(x, row * width, 1, in_row);
        check_team(y, column, width, (n - column + width - 1) / width);
        shmem_team_destroy(x);
        shmem_team_destroy(y);
    }

    /* Many teams one after the other. */
    for (i = 0; i < 200; i++) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, i % n, 1, n - i % n, NULL, 0, &team) == 0);
        if (team != SHMEM_TEAM_INVALID)
            CHECK(shmem_team_sync(team) == 0);
        shmem_team_destroy(team);
    }
    return verdict();
}
