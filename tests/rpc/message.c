/* tests/rpc/message.c -- the table of messages and its codec: each message comes back as it went, and what
 * is damaged is refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/message.h"

static void free_both(rt_bytes *b, rt_arena *a)
{
    rt_bytes_free(b);
    rt_arena_free(a);
}

Test(rpc_message, comes_back_as_it_went)
{
    int64_t handles[] = {3, 1, 4};
    rpc_call m = {.module = 7, .function = "matmul", .arrays = {handles, 3}, .threads = 2};
    rt_bytes b = {0};
    rt_arena arena = {0};
    rpc_any got;

    rpc_encode(&b, RPC_KIND_call, &m, RPC_NEWEST);
    cr_assert(rpc_decode(&got, RPC_KIND_call, b.data, b.n, RPC_NEWEST, &arena));
    cr_assert(got.call.module == 7 && got.call.threads == 2 && got.call.arrays.n == 3);
    cr_assert_str_eq(got.call.function, "matmul");
    cr_assert(memcmp(got.call.arrays.at, handles, sizeof handles) == 0);
    free_both(&b, &arena);
}

Test(rpc_message, carries_lists_of_records)
{
    rpc_device devices[] = {{.name = "cpu:0", .units = 4, .temperature = 51.5},
                            {.name = "opencl:0", .hardware = "pocl"}};
    rpc_listed m = {.host = "pi", .target = "llvm", .most_sessions = 9, .devices = {devices, 2}};
    rt_bytes b = {0};
    rt_arena arena = {0};
    rpc_any got;

    rpc_encode(&b, RPC_KIND_listed, &m, RPC_NEWEST);
    cr_assert(rpc_decode(&got, RPC_KIND_listed, b.data, b.n, RPC_NEWEST, &arena));
    const rpc_device *d = got.listed.devices.at;
    cr_assert(got.listed.devices.n == 2 && got.listed.missing.n == 0 && got.listed.most_sessions == 9);
    cr_assert_str_eq(d[0].name, "cpu:0");
    cr_assert_str_eq(d[1].hardware, "pocl");
    cr_assert_eq(d[0].temperature, 51.5);
    free_both(&b, &arena);
}

/* A side of version 1 knows nothing of later fields: nobody sends it any, and what it sends reads as zeros
 * there. */
Test(rpc_message, leaves_out_what_an_older_version_lacks)
{
    rpc_timed m = {.median_s = 2, .clock_mhz = 1500, .temperature = 40};
    rt_bytes old = {0}, new = {0};
    rt_arena arena = {0};
    rpc_any got;

    rpc_encode(&old, RPC_KIND_timed, &m, 1);
    rpc_encode(&new, RPC_KIND_timed, &m, 2);
    cr_assert_eq(new.n - old.n, 16);
    cr_assert(rpc_decode(&got, RPC_KIND_timed, old.data, old.n, 1, &arena));
    cr_assert(got.timed.median_s == 2 && got.timed.clock_mhz == 0 && got.timed.temperature == 0);
    cr_assert_not(rpc_decode(&got, RPC_KIND_timed, old.data, old.n, 2, &arena));
    cr_assert_not(rpc_decode(&got, RPC_KIND_timed, new.data, new.n, 1, &arena));
    rt_bytes_free(&old);
    free_both(&new, &arena);
}

Test(rpc_message, a_cut_or_longer_one_is_refused)
{
    rpc_failure m = {.status = TEC_CRASHED, .text = "crashed", .signal = 11, .output = "last words"};
    rt_bytes b = {0};
    rt_arena arena = {0};
    rpc_any got;

    rpc_encode(&b, RPC_KIND_failure, &m, RPC_NEWEST);
    for (size_t n = 0; n < b.n; n++)
        cr_assert_not(rpc_decode(&got, RPC_KIND_failure, b.data, n, RPC_NEWEST, &arena));
    rt_bytes_add(&b, "", 1);
    cr_assert_not(rpc_decode(&got, RPC_KIND_failure, b.data, b.n, RPC_NEWEST, &arena));
    free_both(&b, &arena);
}

/* A list that claims more rows than there are bytes costs no memory. */
Test(rpc_message, a_count_beyond_its_bytes_allocates_nothing)
{
    int64_t body[] = {1, 32, INT64_MAX / 8};
    rt_arena arena = {0};
    int64_t live = rt_alloc_live();
    rpc_any got;

    cr_assert_not(rpc_decode(&got, RPC_KIND_allocate, body, sizeof body, RPC_NEWEST, &arena));
    cr_assert_eq(rt_alloc_live(), live + (arena.top != NULL));
    rt_arena_free(&arena);
}

Test(rpc_message, the_table_is_sound)
{
    for (int i = 0; i < rpc_n_messages; i++) {
        const rpc_message *m = &rpc_messages[i];
        rt_bytes b = {0};
        rt_arena arena = {0};
        rpc_any zero = {0}, got;

        cr_assert_eq(rpc_find_message((uint32_t)m->kind), m, "kind %d is used twice", (int)m->kind);
        cr_assert(m->limit <= (1 << 20) && m->record->n_fields > 0);
        for (int k = 1; k < m->record->n_fields; k++)
            cr_assert(m->record->fields[k].since >= m->record->fields[k - 1].since,
                      "%s: a later field stands before an older one", m->record->name);
        rpc_encode(&b, m->kind, &zero, RPC_NEWEST);
        cr_assert(rpc_decode(&got, (uint32_t)m->kind, b.data, b.n, RPC_NEWEST, &arena), "%s",
                  m->record->name);
        free_both(&b, &arena);
    }
    cr_assert_null(rpc_find_message(0));
}

/* Every allocation failed in turn: no message, or the message. */
Test(rpc_message, survives_without_memory)
{
    rpc_device devices[] = {{.name = "cpu:0"}};
    rpc_listed m = {.devices = {devices, 1}};
    rt_bytes b = {0};
    rpc_any got;
    bool good = false;

    rpc_encode(&b, RPC_KIND_listed, &m, RPC_NEWEST);
    for (int n = 1; !good && n < 20; n++) {
        rt_arena arena = {0};

        rt_alloc_fail_at(n);
        good = rpc_decode(&got, RPC_KIND_listed, b.data, b.n, RPC_NEWEST, &arena);
        rt_alloc_fail_at(0);
        rt_arena_free(&arena);
    }
    cr_assert(good);
    rt_bytes_free(&b);
}
