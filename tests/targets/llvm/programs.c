/* Statements and memory: generated code against the interpreter on the same flat programs, and what only a
 * real run shows. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "ir/eval.h"
#include "ir/interp/interp.h"
#include "tests/targets/llvm/run.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(programs, .init = setup, .fini = teardown, .timeout = 600);

/* ---- short words ---- */

static const ir_expr *num(int64_t v)
{
    return ir_int(cx, v);
}
static const ir_expr *real(double v)
{
    return ir_imm(cx, BASE_F32, v);
}
static const ir_expr *index_var(const char *name)
{
    return ir_var(cx, name, BASE_I64);
}
static const ir_expr *at(const ir_buffer *b, const ir_expr *i)
{
    return load_at(cx, b, i);
}
static const ir_stmt *set(const ir_buffer *b, const ir_expr *i, const ir_expr *v)
{
    return store_at(cx, b, i, v);
}
static const ir_expr *ramp(const ir_expr *base, int64_t stride, int lanes)
{
    return ir_ramp(cx, base, num(stride), lanes);
}
static const ir_stmt *loop(const ir_expr *v, int64_t n, const ir_stmt *body)
{
    return ir_for(cx, v, num(0), num(n), IR_SERIAL, body);
}
static const ir_stmt *both(const ir_stmt *a, const ir_stmt *b)
{
    return ir_seq2(cx, a, b);
}
static const ir_buffer *floats(const char *name, int64_t n)
{
    return array(cx, name, BASE_F32, n);
}

enum { N = 96 };

/* in: 96 floats and 96 indices below 96; out: 96 floats, all of which the program writes. Compares with the
 * interpreter. */
typedef struct {
    const ir_buffer *in, *index, *out;
} arrays;

static arrays make_arrays(void)
{
    return (arrays){floats("in", N), array(cx, "index", BASE_I32, N), floats("out", N)};
}

static void check_on(const arrays *a, const ir_stmt *body, const char *words)
{
    const ir_buffer *buffers[] = {a->in, a->index, a->out};
    float in[N], out[N] = {0}, want[N] = {0};
    int32_t index[N];
    for (int i = 0; i < N; i++) {
        in[i] = (float)(i % 13) - 4;
        index[i] = i * 7 % N;
    }
    const ir_program *p = program_of(cx, "program", buffers, 3, body);
    ir_array views[] = {{.dtype = BASE_F32, .n = 1, .shape = {N}, .data = in},
                        {.dtype = BASE_I32, .n = 1, .shape = {N}, .data = index},
                        {.dtype = BASE_F32, .n = 1, .shape = {N}, .data = want}};
    ir_arg args[] = {{.array = &views[0]}, {.array = &views[1]}, {.array = &views[2]}};
    cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s", tec_context_error(cx));
    kernel k = compile(cx, p, words);
    cr_assert(eq(int, call(&k, (void *[]){in, index, out}, NULL), 0));
    for (int i = 0; i < N; i++)
        cr_assert(out[i] == want[i] || (isnan(out[i]) && isnan(want[i])),
                  "on '%s', out[%d] is %g, not %g\n%s", words, i, (double)out[i], (double)want[i],
                  target_code_text(k.code, "llvm"));
    close_kernel(&k);
}

static void check(const arrays *a, const ir_stmt *body)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        if (runs_here(cx, test_targets[i]))
            check_on(a, body, test_targets[i]);
}

/* ---- memory ---- */

Test(programs, contiguous_and_unaligned_vectors)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *j = index_var("j");
    check(&a,
          loop(i, N / 8,
               set(a.out, ramp(ir_mul(cx, i, num(8)), 1, 8), at(a.in, ramp(ir_mul(cx, i, num(8)), 1, 8)))));
    const ir_expr *end = ir_sub(cx, num(N - 16), ir_mul(cx, j, num(16)));
    check(&a, loop(j, N / 16, set(a.out, ramp(end, 1, 16), at(a.in, ramp(ir_mul(cx, j, num(16)), 1, 16)))));
}

Test(programs, strided_loads_and_stores_of_every_small_stride)
{
    for (int stride = -5; stride <= 5; stride++) {
        arrays a = make_arrays();
        const ir_expr *i = index_var("i"), *base = stride < 0 ? ir_add(cx, i, num(-7 * stride)) : i;
        const ir_stmt *fill =
            loop(index_var("j"), 1, set(a.out, ramp(num(0), 1, N), ir_broadcast(cx, real(9), N)));
        check(&a, both(fill,
                       loop(i, 3,
                            set(a.out, ramp(ir_mul(cx, i, num(8)), 1, 8), at(a.in, ramp(base, stride, 8))))));
        if (stride != 0)
            check(&a, both(fill, set(a.out, ramp(num(stride < 0 ? 40 : 3), stride, 8),
                                     at(a.in, ramp(num(5), 1, 8)))));
    }
}

/* Pairs, a period, a row that ends early, and one that goes back: what lies between is loaded as a whole,
 * from the first element of the array to its last. */
Test(programs, lanes_at_known_distances_are_picked_from_wide_loads)
{
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        arrays a = make_arrays();
        const ir_expr *i = index_var("i"), *up = ramp(num(0), 1, lanes);
        const ir_expr *by[] = {ir_broadcast(cx, num(2), lanes), ir_broadcast(cx, num(3), lanes),
                               ir_broadcast(cx, num(lanes - 2), lanes)};
        const ir_expr *pattern[] = {
            ir_floordiv(cx, up, by[0]),
            ir_floormod(cx, up, by[1]),
            ir_min(cx, up, by[2]),
            ir_select(cx, ir_le(cx, by[0], up), up, ir_abs(cx, ir_sub(cx, up, by[1]))),
            ir_max(cx, ir_sub(cx, by[1], up), ir_broadcast(cx, num(0), lanes)),
            ir_floordiv(cx, ir_mul(cx, up, by[1]), by[0])};
        const ir_expr *to = ramp(ir_mul(cx, i, num(lanes)), 1, lanes);

        for (int k = 0; k < BASE_COUNT(pattern); k++) {
            const ir_expr *from = ir_broadcast(cx, ir_mul(cx, i, num(3)), lanes);

            check(&a, loop(i, N / lanes, set(a.out, to, at(a.in, ir_add(cx, from, pattern[k])))));
            const ir_expr *some = ir_and(cx, ir_lt(cx, up, by[2]), ir_ne(cx, up, by[1])),
                          *index = ir_add(cx, from, pattern[k]);
            check(&a, loop(i, N / lanes, set(a.out, to, ir_load_masked(cx, a.in, &index, 1, some))));
            from = ir_broadcast(cx, ir_sub(cx, num(N - 1), i), lanes);
            check(&a, loop(i, N / lanes, set(a.out, to, at(a.in, ir_sub(cx, from, pattern[k])))));
        }
    }
}

Test(programs, a_ramp_is_seen_through_sums_products_and_lets)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *v = ir_var(cx, "v", base_dtype_lanes(BASE_I64, 8));
    const ir_expr *lanes = ir_add(cx, ir_broadcast(cx, ir_mul(cx, i, num(8)), 8), ramp(num(0), 1, 8));
    const ir_stmt *body = loop(
        i, N / 8,
        ir_let_stmt(cx, v, lanes, set(a.out, v, at(a.in, ir_sub(cx, ir_broadcast(cx, num(N - 1), 8), v)))));
    check(&a, body);
    const ir_buffer *buffers[] = {a.in, a.index, a.out};
    kernel k = compile(cx, program_of(cx, "program", buffers, 3, body), "native");
    cr_assert(strstr(target_code_text(k.code, "llvm"), "scatter") == NULL &&
                  strstr(target_code_text(k.code, "llvm"), "gather") == NULL,
              "%s", target_code_text(k.code, "llvm"));
    close_kernel(&k);
}

Test(programs, gathers_and_scatters_through_an_index_array)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *here = ramp(ir_mul(cx, i, num(16)), 1, 16);
    const ir_expr *there = ir_cast(cx, base_dtype_lanes(BASE_I64, 16), at(a.index, here));
    check(&a, loop(i, N / 16, set(a.out, here, at(a.in, there))));
    check(&a, loop(i, N,
                   set(a.out, ir_cast(cx, BASE_I64, at(a.index, i)), ir_mul(cx, at(a.in, i), at(a.in, i)))));
}

/* Arrays that end at a page that may not be touched. */
static float *before_a_wall(int n, void **mapping)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED);
    cr_assert(eq(int, mprotect(p + page, page, PROT_NONE), 0));
    *mapping = p;
    return (float *)(void *)(p + page) - n;
}

/* out[k] = k < n ? in[k] : -1, 16 lanes at a time, in a way that the case chooses. */
typedef const ir_stmt *tail_fn(const ir_buffer *in, const ir_buffer *out, const ir_expr *k,
                               const ir_expr *inside);

static const ir_stmt *masked_tail(const ir_buffer *in, const ir_buffer *out, const ir_expr *k,
                                  const ir_expr *inside)
{
    return ir_store_masked(cx, out, ir_add(cx, ir_load_masked(cx, in, &k, 1, inside), real(1)), &k, 1,
                           inside);
}

static const ir_stmt *select_tail(const ir_buffer *in, const ir_buffer *out, const ir_expr *k,
                                  const ir_expr *inside)
{
    const ir_expr *v = ir_select(cx, inside, ir_add(cx, at(in, k), real(1)),
                                 ir_imm(cx, base_dtype_lanes(BASE_F32, k->dtype.lanes), 0));
    return ir_store_masked(cx, out, v, &k, 1, inside);
}

static const ir_stmt *and_tail(const ir_buffer *in, const ir_buffer *out, const ir_expr *k,
                               const ir_expr *inside)
{
    const ir_expr *safe = ir_and(cx, inside, ir_gt(cx, at(in, k), real(-1000)));
    return ir_store_masked(cx, out, ir_add(cx, ir_load_masked(cx, in, &k, 1, safe), real(1)), &k, 1, inside);
}

static void run_tail(tail_fn *tail, int lanes, const char *words)
{
    enum { SIZE = 37 };
    const ir_buffer *in = floats("in", SIZE), *out = floats("out", SIZE), *buffers[] = {in, out};
    const ir_expr *i = index_var("i"), *k = lanes_from(cx, ir_mul(cx, i, num(lanes)), lanes);
    const ir_stmt *body = loop(i, 48 / lanes, tail(in, out, k, ir_lt(cx, k, num(SIZE))));
    void *walls[2];
    float *x = before_a_wall(SIZE, &walls[0]), *y = before_a_wall(SIZE, &walls[1]);
    for (int j = 0; j < SIZE; j++)
        x[j] = (float)j;
    kernel code = compile(cx, program_of(cx, "tail", buffers, 2, body), words);
    cr_assert(eq(int, call(&code, (void *[]){x, y}, NULL), 0));
    for (int j = 0; j < SIZE; j++)
        cr_assert(y[j] == (float)j + 1, "on '%s', %d lanes: out[%d] is %g", words, lanes, j, (double)y[j]);
    close_kernel(&code);
    for (int j = 0; j < 2; j++)
        munmap(walls[j], 2 * (size_t)sysconf(_SC_PAGESIZE));
}

Test(programs, lanes_that_are_off_touch_nothing)
{
    tail_fn *const tails[] = {masked_tail, select_tail, and_tail};
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        for (int j = 0; j < BASE_COUNT(tails) && runs_here(cx, test_targets[i]); j++) {
            run_tail(tails[j], 16, test_targets[i]);
            run_tail(tails[j], 1, test_targets[i]);
        }
}

Test(programs, a_select_divides_only_where_its_condition_holds)
{
    const ir_buffer *in = array(cx, "in", BASE_I32, 16), *out = array(cx, "out", BASE_I32, 16),
                    *buffers[] = {in, out};
    for (int lanes = 1; lanes <= 16; lanes *= 16) {
        const ir_expr *i = index_var("i"), *k = lanes_from(cx, ir_mul(cx, i, num(lanes)), lanes),
                      *d = at(in, k);
        const ir_expr *q = ir_div(cx, ir_imm_int(cx, BASE_I32, 100), d),
                      *minus = ir_imm_int(cx, base_dtype_lanes(BASE_I32, lanes), -1);
        const ir_expr *v = ir_select(cx, ir_ne(cx, d, ir_imm_int(cx, BASE_I32, 0)), q, minus);
        kernel code =
            compile(cx, program_of(cx, "divide", buffers, 2, loop(i, 16 / lanes, set(out, k, v))), "native");
        int32_t x[16], y[16];
        for (int j = 0; j < 16; j++)
            x[j] = j % 4 * (j - 8);
        cr_assert(eq(int, call(&code, (void *[]){x, y}, NULL), 0));
        for (int j = 0; j < 16; j++)
            cr_assert(eq(i32, y[j], x[j] ? 100 / x[j] : -1));
        close_kernel(&code);
    }
}

/* LLVM takes the multiply-add for a maximum of the same operands, and crashes. */
Test(programs, a_nested_maximum_stands_beside_a_multiply_add_of_its_operands)
{
    const char *with_fma = "llvm -mcpu=x86-64-v3";
    arrays a = make_arrays();
    for (int order = 0; order < 8 && runs_here(cx, with_fma); order++) {
        const ir_expr *i = index_var("i"), *x = at(a.in, i), *y = at(a.in, ir_sub(cx, num(N - 1), i));
        const ir_expr *inner = order & 1 ? ir_max(cx, x, y) : ir_min(cx, x, y),
                      *sum = ir_fma(cx, order & 2 ? y : x, order & 2 ? x : y, real(3));
        const ir_expr *left = order & 4 ? inner : sum, *right = order & 4 ? sum : inner;
        check_on(&a, loop(i, N, set(a.out, i, order & 1 ? ir_max(cx, left, right) : ir_min(cx, left, right))),
                 with_fma);
    }
}

/* Divisions by constants become multiplications and shifts, which must round as divisions do. */
Test(programs, divisions_by_constants_floor_and_truncate)
{
    static const int64_t divisors[] = {1, 2, 3, 7, 8, 64, -1, -2, -3, -8, 1000000007};
    enum { COUNT = 2000 };
    static int64_t x[COUNT], y[4][COUNT];
    uint64_t state = 3;
    for (int i = 0; i < COUNT; i++)
        x[i] = (int64_t)base_random(&state) >> (i % 64);
    for (int d = 0; d < BASE_COUNT(divisors); d++) {
        const ir_buffer *in = array(cx, "in", BASE_I64, COUNT), *buffers[] = {in, NULL, NULL, NULL, NULL};
        const ir_op ops[] = {IR_DIV, IR_MOD, IR_FLOORDIV, IR_FLOORMOD};
        const ir_expr *i = index_var("i");
        const ir_stmt *stores[4];
        for (int k = 0; k < 4; k++) {
            buffers[k + 1] = array(cx, base_format(cx, "out%d", k), BASE_I64, COUNT);
            stores[k] = set(buffers[k + 1], i, ir_op2(cx, ops[k], at(in, i), num(divisors[d])));
        }
        kernel code = compile(cx, program_of(cx, "divide", buffers, 5, loop(i, COUNT, ir_seq(cx, stores, 4))),
                              "native");
        cr_assert(eq(int, call(&code, (void *[]){x, y[0], y[1], y[2], y[3]}, NULL), 0));
        for (int j = 0; j < COUNT; j++)
            for (int k = 0; k < 4; k++) {
                ir_value want, args[] = {{.i = x[j]}, {.i = divisors[d]}};
                cr_assert(ir_eval_op(ops[k], BASE_I64, args, &want));
                cr_assert(want.i == y[k][j], "%s(%lld, %lld) gives %lld, not %lld", ir_ops[ops[k]].name,
                          (long long)x[j], (long long)divisors[d], (long long)y[k][j], (long long)want.i);
            }
        close_kernel(&code);
    }
}

Test(programs, shuffles_pick_from_concatenated_operands)
{
    arrays a = make_arrays();
    const ir_expr *vectors[] = {at(a.in, ramp(num(0), 1, 4)), at(a.in, ramp(num(10), 1, 2)),
                                at(a.in, num(20)), at(a.in, ramp(num(30), 1, 8))};
    const int pick[] = {6, 0, 5, 14, 7, 7, 3, 4};
    const ir_stmt *fill = set(a.out, ramp(num(0), 1, N), ir_broadcast(cx, real(2), N));
    check(&a, both(fill, set(a.out, ramp(num(8), 1, 8), ir_shuffle(cx, vectors, 4, pick, 8))));
    check(&a, both(fill, set(a.out, num(5), ir_shuffle(cx, vectors, 2, &pick[2], 1))));
    const ir_expr *scalars[] = {at(a.in, num(1)), at(a.in, num(2)), at(a.in, num(3))};
    check(&a, both(fill,
                   set(a.out, ramp(num(8), 1, 4), ir_shuffle(cx, scalars, 3, (const int[]){2, 0, 1, 2}, 4))));
}

Test(programs, a_condition_of_lanes_ends_at_a_shuffle)
{
    arrays a = make_arrays();
    const ir_expr *v = at(a.in, ramp(num(0), 1, 8)),
                  *high = ir_lt(cx, ir_broadcast(cx, num(3), 8), ramp(num(0), 1, 8));
    const ir_expr *reversed = ir_shuffle(cx, &v, 1, (const int[]){7, 6, 5, 4, 3, 2, 1, 0}, 8),
                  *first = ir_broadcast(cx, ir_shuffle(cx, &v, 1, (const int[]){0}, 1), 8);
    const ir_stmt *fill = set(a.out, ramp(num(0), 1, N), ir_broadcast(cx, real(2), N));
    check(&a, both(fill, set(a.out, ramp(num(0), 1, 8), ir_select(cx, high, reversed, first))));
}

/* ---- statements ---- */

Test(programs, loops_conditions_and_lets)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *j = index_var("j"), *x = ir_var(cx, "x", BASE_F32),
                  *k = ir_add(cx, ir_mul(cx, i, num(8)), j);
    const ir_stmt *yes = set(a.out, k, ir_mul(cx, x, real(2))), *no = set(a.out, k, ir_neg(cx, x));
    const ir_stmt *inner =
        ir_let_stmt(cx, x, at(a.in, k), ir_if(cx, ir_lt(cx, j, ir_floormod(cx, i, num(5))), yes, no));
    check(&a, loop(i, N / 8, loop(j, 8, inner)));
    const ir_stmt *triangle =
        ir_for(cx, j, ir_neg(cx, i), i, IR_SERIAL, set(a.out, ir_add(cx, i, j), real(3)));
    check(&a, both(set(a.out, ramp(num(0), 1, N), ir_broadcast(cx, real(1), N)), loop(i, N, triangle)));
}

Test(programs, a_let_is_evaluated_once_even_when_memory_changes)
{
    arrays a = make_arrays();
    const ir_expr *v = ir_var(cx, "v", BASE_I64), *i = index_var("i");
    const ir_buffer *cell = local_array(cx, "cell", BASE_I64, 1);
    const ir_stmt *after = set(a.out, v, at(a.in, v));
    const ir_stmt *body =
        ir_let_stmt(cx, v, at(cell, num(0)), both(set(cell, num(0), ir_add(cx, v, num(1))), after));
    check(&a, ir_allocate(cx, cell, both(set(cell, num(0), num(0)), loop(i, N, body))));
}

Test(programs, expression_lets_and_shared_nodes)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *t = ir_var(cx, "t", BASE_F32), *x = at(a.in, i);
    const ir_expr *square = ir_mul(cx, t, t),
                  *once = ir_let(cx, t, ir_add(cx, x, real(1)), ir_add(cx, square, t));
    check(&a, loop(i, N, set(a.out, i, ir_sub(cx, once, ir_mul(cx, once, real(3))))));
    /* One node under two lets of one variable has two values. */
    const ir_expr *twice = ir_add(cx, ir_let(cx, t, real(2), square), ir_let(cx, t, x, square));
    check(&a, loop(i, N, set(a.out, i, twice)));
    /* A chain in which each node is used twice is emitted once. */
    const ir_expr *chain = x;
    for (int d = 0; d < 60; d++)
        chain = ir_sub(cx, chain, ir_mul(cx, chain, real(0.5)));
    const ir_buffer *buffers[] = {a.in, a.index, a.out};
    kernel k = compile(cx, program_of(cx, "program", buffers, 3, loop(i, N, set(a.out, i, chain))), "native");
    close_kernel(&k);
}

Test(programs, local_buffers_hold_values)
{
    arrays a = make_arrays();
    const ir_buffer *acc = local_array(cx, "acc", BASE_F32, 8),
                    *table = local_array(cx, "table", BASE_F32, N);
    const ir_expr *i = index_var("i"), *k = index_var("k"), *all = ramp(num(0), 1, 8);
    const ir_stmt *add = set(acc, all, ir_add(cx, at(acc, all), at(a.in, ramp(ir_mul(cx, k, num(8)), 1, 8))));
    const ir_stmt *sum =
        both(both(set(acc, all, ir_imm(cx, base_dtype_lanes(BASE_F32, 8), 0)), loop(k, 12, add)),
             loop(i, N / 8, set(a.out, ramp(ir_mul(cx, i, num(8)), 1, 8), at(acc, all))));
    check(&a, ir_allocate(cx, acc, sum));
    const ir_stmt *fill = loop(i, N, set(table, i, ir_mul(cx, at(a.in, i), real(2))));
    const ir_stmt *reverse = loop(k, N, set(a.out, k, at(table, ir_sub(cx, num(N - 1), k))));
    check(&a, ir_allocate(cx, table, both(fill, reverse)));
}

static const ir_stmt *allocate_with(const ir_buffer *b, const char *area, const ir_expr *offset,
                                    const ir_stmt *body)
{
    ir_stmt *s = ir_stmt_copy(cx, ir_allocate(cx, b, body));
    s->allocate.notes = ir_note_set(cx, NULL, area, offset);
    return s;
}

static const ir_stmt *allocate_at(const ir_buffer *b, const char *area, int64_t offset, const ir_stmt *body)
{
    return allocate_with(b, area, num(offset), body);
}

/* Two buffers on the same bytes, one after the other: the second's stores must stay behind the first's
 * loads. */
Test(programs, workspaces_that_share_bytes_are_kept_apart_in_time)
{
    arrays a = make_arrays();
    const ir_buffer *first = floats("first", N), *second = floats("second", N);
    const ir_expr *i = index_var("i"), *j = index_var("j");
    const ir_stmt *put = loop(i, N, set(first, i, ir_add(cx, at(a.in, i), real(1))));
    const ir_stmt *step = both(set(a.out, j, at(first, j)), set(second, j, ir_mul(cx, at(a.in, j), real(3))));
    const ir_stmt *last = loop(i, N, set(a.out, i, ir_add(cx, at(a.out, i), at(second, i))));
    const ir_stmt *body = both(both(put, loop(j, N, step)), last);
    check(&a, allocate_at(first, "workspace", 0, allocate_at(second, "workspace", 0, body)));
    check(&a, allocate_at(first, "workspace", 0, allocate_at(second, "workspace", 512, body)));
    const ir_expr *v = index_var("v");
    check(&a, ir_let_stmt(cx, v, num(1),
                          allocate_with(first, "workspace", ir_mul(cx, v, num(64)),
                                        allocate_at(second, "workspace", 64, body))));
}

Test(programs, parallel_loops_see_what_is_outside)
{
    arrays a = make_arrays();
    const ir_expr *i = index_var("i"), *j = index_var("j"), *x = ir_var(cx, "x", BASE_F32),
                  *n = ir_var(cx, "n", BASE_I64);
    const ir_buffer *own = floats("own", 8), *table = local_array(cx, "table", BASE_F32, 8);
    const ir_expr *k = ir_add(cx, ir_mul(cx, i, num(8)), j);
    const ir_stmt *fill = loop(j, 8, set(own, j, ir_mul(cx, at(a.in, k), x)));
    const ir_stmt *use = loop(j, 8, set(a.out, k, ir_add(cx, at(own, ir_sub(cx, num(7), j)), at(table, j))));
    const ir_stmt *body =
        ir_for(cx, i, num(0), n, IR_PARALLEL, allocate_at(own, "thread_workspace", 64, both(fill, use)));
    body = ir_let_stmt(cx, n, ir_floordiv(cx, num(N), num(8)), ir_let_stmt(cx, x, at(a.in, num(9)), body));
    check(&a, ir_allocate(cx, table, both(loop(j, 8, set(table, j, ir_cast(cx, BASE_F32, j))), body)));
    const ir_stmt *from = ir_for(cx, i, num(5), num(N - 5), IR_PARALLEL, set(a.out, i, at(a.in, i)));
    check(&a, both(set(a.out, ramp(num(0), 1, 5), at(a.in, ramp(num(1), 1, 5))), from));
}

/* ---- the environment ---- */

Test(programs, a_failed_assertion_leaves_with_its_text)
{
    const ir_buffer *out = floats("out", 8), *buffers[] = {out};
    const ir_expr *i = index_var("i");
    const ir_stmt *body = both(ir_assert(cx, ir_lt(cx, i, num(4)), "i stays below 4"), set(out, i, real(1)));
    const ir_how hows[] = {IR_SERIAL, IR_PARALLEL};
    for (int h = 0; h < 2; h++) {
        kernel k =
            compile(cx, program_of(cx, "asserts", buffers, 1, ir_for(cx, i, num(0), num(8), hows[h], body)),
                    "native");
        const char *message = NULL;
        float y[8] = {0};
        cr_assert(eq(int, call_env(&k, (void *[]){y}, NULL, &message), TEC_INVALID));
        cr_assert(eq(str, (char *)message, "i stays below 4"));
        cr_assert(y[3] == 1 && y[4] == 0);
        close_kernel(&k);
    }
}

Test(programs, symbols_and_scalars_are_read_from_their_places)
{
    const ir_expr *n = index_var("n"), *scale = ir_var(cx, "scale", BASE_F32),
                  *flag = ir_var(cx, "flag", BASE_BOOL), *i = index_var("i");
    const ir_buffer *out = ir_buffer_new(cx, "out", BASE_F32, &n, 1);
    ir_program *p = base_new(cx, ir_program);
    p->name = "scalars";
    p->params = (ir_param[]){{.scalar = scale}, {.scalar = flag}, {.buffer = out, .output = true}};
    p->n_params = 3;
    p->symbols = &n;
    p->n_symbols = 1;
    p->body = ir_for(cx, i, num(0), n, IR_SERIAL,
                     set(out, i, ir_select(cx, flag, ir_mul(cx, scale, ir_cast(cx, BASE_F32, i)), real(-1))));
    kernel k = compile(cx, p, "native");
    float s = 2.5f, y[6] = {7, 7, 7, 7, 7, 7};
    uint8_t yes = 1, no = 0;
    cr_assert(eq(int, call(&k, (void *[]){&s, &yes, y}, (const int64_t[]){5}), 0));
    cr_assert(y[0] == 0 && y[4] == 10 && y[5] == 7);
    cr_assert(eq(int, call(&k, (void *[]){&s, &no, y}, (const int64_t[]){1}), 0));
    cr_assert(y[0] == -1 && y[1] == 2.5f);
    cr_assert(eq(int, call(&k, (void *[]){&s, &no, NULL}, (const int64_t[]){0}), 0));
    close_kernel(&k);
}

static float add_scaled(const float *row, float scale)
{
    return row[0] + scale;
}
static void *find_function(const tec_env *env, const char *name)
{
    (void)env;
    return strcmp(name, "add_scaled") ? NULL : (void *)(uintptr_t)add_scaled;
}

Test(programs, extern_functions_come_through_the_environment)
{
    const ir_buffer *in = floats("in", 8), *out = floats("out", 8), *buffers[] = {in, out}, *operand[] = {in};
    for (int known = 0; known < 2; known++) {
        const ir_expr *i = index_var("i"), *args[] = {i, real(10)};
        const ir_expr *v =
            ir_call(cx, BASE_F32, known ? "add_scaled" : "nobody", NULL, args, 2, operand, 1, true);
        kernel k = compile(cx, program_of(cx, "calls", buffers, 2, loop(i, 8, set(out, i, v))), "native");
        const char *message = NULL;
        float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
        tec_env env = {.abi = TEC_KERNEL_ABI,
                       .n_workers = 1,
                       .fail = keep_message,
                       .extern_function = find_function,
                       .user = &message};
        int status = k.run(&env, (void *[]){x, y}, NULL);
        cr_assert(eq(int, status, known ? 0 : TEC_UNSUPPORTED));
        cr_assert(known ? y[7] == 18 : strstr(message, "'nobody' is not registered") != NULL);
        close_kernel(&k);
    }
}

static int32_t run_at_once(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t n)
{
    return body(env, closure, 0, n, 0);
}

/* The last iteration is the one whose number stays. */
Test(programs, a_loop_that_alternates_runs_backwards_in_odd_calls)
{
    const ir_buffer *in = floats("in", 8), *out = floats("out", 8), *buffers[] = {in, out};
    const ir_expr *i = index_var("i");

    for (int from = 0; from < 4; from += 3) {
        const ir_stmt *body =
            both(set(out, num(0), ir_cast(cx, BASE_F32, i)), set(out, ir_add(cx, i, num(1)), at(in, i)));
        ir_stmt *l = ir_stmt_copy(cx, ir_for(cx, i, num(from), num(4), IR_PARALLEL, body));

        l->loop.notes = ir_note_set(cx, NULL, "alternate", num(1));
        kernel k = compile(cx, program_of(cx, "turns", buffers, 2, l), "native");
        for (int turn = 0; turn < 4; turn++) {
            float x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y[8] = {0};
            tec_env env = {.abi = TEC_KERNEL_ABI, .n_workers = 1, .parallel = run_at_once, .turn = turn};

            cr_assert(eq(int, k.run(&env, (void *[]){x, y}, NULL), 0));
            cr_expect_eq(y[0], (float)(turn % 2 ? from : from + 3));
            for (int j = from; j < from + 4; j++)
                cr_expect_eq(y[j + 1], x[j]);
        }
        close_kernel(&k);
    }
}

#if defined(__x86_64__)

static int32_t watch_mode(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t n)
{
    unsigned outside = _mm_getcsr();
    _mm_setcsr(outside & ~0x8040u); /* as a worker thread would have it */
    int32_t status = body(env, closure, 0, n, 0);
    cr_assert(eq(u32, _mm_getcsr() & 0xffc0u, outside & 0x7f80u));
    _mm_setcsr(outside);
    return status;
}

Test(programs, flushes_denormals_and_gives_the_callers_mode_back)
{
    const ir_buffer *in = floats("in", 8), *out = floats("out", 8), *buffers[] = {in, out};
    const ir_expr *i = index_var("i");
    const ir_how hows[] = {IR_SERIAL, IR_PARALLEL};
    for (int h = 0; h < 2; h++) {
        const ir_stmt *body =
            ir_for(cx, i, num(0), num(8), hows[h], set(out, i, ir_mul(cx, at(in, i), real(0.5))));
        kernel k = compile(cx, program_of(cx, "flush", buffers, 2, body), "native");
        float x[8], y[8];
        for (int j = 0; j < 8; j++)
            x[j] = 0x1.8p-126f;
        unsigned before = _mm_getcsr();
        tec_env env = {.abi = TEC_KERNEL_ABI, .n_workers = 1, .parallel = watch_mode};
        cr_assert(eq(int, k.run(&env, (void *[]){x, y}, NULL), 0));
        cr_assert(eq(u32, _mm_getcsr() & 0xffc0u, before & 0xffc0u));
        cr_assert(y[0] == 0 && y[7] == 0);
        close_kernel(&k);
    }
}

#endif
