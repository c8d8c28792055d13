/* Waiting and testing: one value, and sets with all, any, some, their vector forms, status, empty sets. */
#include "check.h"

#define N 6

#define TURNS(call) \
    for (i = 0, seen = 0; i < 1000 && seen != 63; i++) \
        seen |= (size_t)1 << (call); \
    CHECK(seen == 63);

#define TYPE(NAME, T) \
    static T vars_##NAME[N]; \
    static void test_##NAME(T *v) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n; \
        int status[N] = {0, 0, 0, 0, 0, 0}, all_out[N] = {1, 1, 1, 1, 1, 1}; \
        T values[N]; \
        size_t indices[N], found, i, seen; \
        for (i = 0; i < N; i++) \
            v[i] = 0, values[i] = (T)(i + 10); \
        shmem_barrier_all(); \
        /* Nothing has come: tests say so. */ \
        CHECK(shmem_##NAME##_test(&v[0], SHMEM_CMP_EQ, (T)1) == 0); \
        CHECK(shmem_##NAME##_test(&v[0], SHMEM_CMP_EQ, (T)0) != 0); \
        CHECK(shmem_##NAME##_test(&v[0], SHMEM_CMP_NE, (T)0) == 0 && shmem_##NAME##_test(&v[0], SHMEM_CMP_LE, (T)0) != 0); \
        CHECK(shmem_##NAME##_test(&v[0], SHMEM_CMP_LT, (T)1) != 0 && shmem_##NAME##_test(&v[0], SHMEM_CMP_GE, (T)1) == 0); \
        CHECK(shmem_##NAME##_test(&v[0], SHMEM_CMP_GT, (T)0) == 0); \
        CHECK(shmem_##NAME##_test_all(v, N, NULL, SHMEM_CMP_EQ, (T)1) == 0); \
        CHECK(shmem_##NAME##_test_any(v, N, NULL, SHMEM_CMP_EQ, (T)1) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some(v, N, indices, NULL, SHMEM_CMP_EQ, (T)1) == 0); \
        /* Empty sets, by number and by status. */ \
        CHECK(shmem_##NAME##_test_all(v, 0, NULL, SHMEM_CMP_EQ, (T)1) != 0); \
        CHECK(shmem_##NAME##_test_any(v, 0, NULL, SHMEM_CMP_EQ, (T)1) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some(v, 0, indices, NULL, SHMEM_CMP_EQ, (T)1) == 0); \
        CHECK(shmem_##NAME##_test_all(v, N, all_out, SHMEM_CMP_EQ, (T)1) != 0); \
        CHECK(shmem_##NAME##_test_any_vector(v, N, all_out, SHMEM_CMP_EQ, values) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some_vector(v, N, indices, all_out, SHMEM_CMP_EQ, values) == 0); \
        shmem_##NAME##_wait_until_all(v, 0, NULL, SHMEM_CMP_EQ, (T)1); \
        shmem_##NAME##_wait_until_all(v, N, all_out, SHMEM_CMP_EQ, (T)1); \
        shmem_##NAME##_wait_until_all_vector(v, N, all_out, SHMEM_CMP_EQ, values); \
        CHECK(shmem_##NAME##_wait_until_any(v, 0, NULL, SHMEM_CMP_EQ, (T)1) == SIZE_MAX); \
        CHECK(shmem_##NAME##_wait_until_any(v, N, all_out, SHMEM_CMP_EQ, (T)1) == SIZE_MAX); \
        CHECK(shmem_##NAME##_wait_until_any_vector(v, N, all_out, SHMEM_CMP_EQ, values) == SIZE_MAX); \
        CHECK(shmem_##NAME##_wait_until_some(v, 0, indices, NULL, SHMEM_CMP_EQ, (T)1) == 0); \
        CHECK(shmem_##NAME##_wait_until_some(v, N, indices, all_out, SHMEM_CMP_EQ, (T)1) == 0); \
        CHECK(shmem_##NAME##_wait_until_some_vector(v, N, indices, all_out, SHMEM_CMP_EQ, values) == 0); \
        shmem_barrier_all(); \
        /* The right neighbour fills its left one's set, one by one. */ \
        for (i = 0; i < N; i++) \
            shmem_##NAME##_atomic_set(&v[i], (T)(i + 10), left); \
        shmem_##NAME##_wait_until(&v[0], SHMEM_CMP_EQ, (T)10); \
        shmem_##NAME##_wait_until_all(v, N, NULL, SHMEM_CMP_GE, (T)10); \
        shmem_##NAME##_wait_until_all_vector(v, N, NULL, SHMEM_CMP_EQ, values); \
        CHECK(shmem_##NAME##_test_all(v, N, NULL, SHMEM_CMP_GT, (T)9) != 0); \
        CHECK(shmem_##NAME##_test_all_vector(v, N, NULL, SHMEM_CMP_EQ, values) != 0); \
        CHECK(shmem_##NAME##_wait_until_any(v, N, NULL, SHMEM_CMP_EQ, (T)13) == 3); \
        /* A nonzero status leaves an element out, and is never written. */ \
        for (i = 0, seen = 0; i < N; i++) { \
            size_t k = shmem_##NAME##_wait_until_any_vector(v, N, status, SHMEM_CMP_EQ, values); \
            CHECK(k < N && status[k] == 0); \
            if (k < N) \
                status[k] = 1, seen |= (size_t)1 << k; \
        } \
        CHECK(seen == 63); \
        memset(status, 0, sizeof status); \
        status[1] = 7, status[5] = -1; \
        found = shmem_##NAME##_wait_until_some(v, N, indices, status, SHMEM_CMP_NE, (T)0); \
        CHECK(found == 4 && indices[0] == 0 && indices[1] == 2 && indices[2] == 3 && indices[3] == 4); \
        CHECK(status[0] == 0 && status[1] == 7 && status[2] == 0 && status[5] == -1); \
        found = shmem_##NAME##_wait_until_some_vector(v, N, indices, NULL, SHMEM_CMP_EQ, values); \
        CHECK(found == N); \
        CHECK(shmem_##NAME##_test_some(v, N, indices, status, SHMEM_CMP_GT, (T)12) == 2 && indices[0] == 3 && indices[1] == 4); \
        CHECK(shmem_##NAME##_test_some_vector(v, N, indices, status, SHMEM_CMP_EQ, values) == 4); \
        CHECK(shmem_##NAME##_test_any(v, N, status, SHMEM_CMP_EQ, (T)11) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_any(v, N, NULL, SHMEM_CMP_EQ, (T)11) == 1); \
        CHECK(shmem_##NAME##_test_any_vector(v, N, status, SHMEM_CMP_EQ, values) < N); \
        shmem_barrier_all(); \
        /* All hold and stay so: a series of calls returns each. */ \
        TURNS(shmem_##NAME##_test_any(v, N, NULL, SHMEM_CMP_GE, (T)10)) \
        TURNS(shmem_##NAME##_test_any_vector(v, N, NULL, SHMEM_CMP_EQ, values)) \
        TURNS(shmem_##NAME##_wait_until_any(v, N, NULL, SHMEM_CMP_GE, (T)10)) \
        TURNS(shmem_##NAME##_wait_until_any_vector(v, N, NULL, SHMEM_CMP_EQ, values)) \
        shmem_barrier_all(); \
    }
AMO_TYPES(TYPE)

int main(void)
{
    static long flag, data;
    static short small;
    static unsigned short tiny;
    void *heap;
    int me, n, right, left, i;
    shmem_init();
    heap = shmem_malloc(8 * N);
    me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
#define RUN(NAME, T) \
    test_##NAME((T *)heap); \
    test_##NAME(vars_##NAME);
    AMO_TYPES(RUN)

    /* Put, fence, flag: the flag never comes first. */
    for (i = 1; i <= 300; i++) {
        shmem_long_p(&data, 1000 * i + me, right);
        shmem_fence();
        shmem_long_p(&flag, i, right);
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, i);
        CHECK(data >= 1000 * i + left);
        shmem_barrier_all();
    }
    shmem_short_p(&small, 3, right);
    shmem_ushort_p(&tiny, 4, right);
    shmem_short_wait_until(&small, SHMEM_CMP_EQ, 3);
    shmem_ushort_wait_until(&tiny, SHMEM_CMP_EQ, 4);
    /* An extension: sets of them. */
    CHECK(shmem_short_test_all(&small, 1, NULL, SHMEM_CMP_EQ, 3) && shmem_ushort_test_any(&tiny, 1, NULL, SHMEM_CMP_EQ, 4) == 0);
    CHECK(shmem_short_test(&small, SHMEM_CMP_EQ, 3) && shmem_ushort_test(&tiny, SHMEM_CMP_EQ, 4));
    shmem_free(heap);
    return verdict();
}
