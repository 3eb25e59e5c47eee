/* tests/lower/pass.h -- programs as text through passes, for shape; the interpreter before and after, for
 * meaning.
 *
 *     cr_assert_str_eq(after("unroll", AVX512, "program ..."), "program ...");
 *     same_meaning(AVX512, "init,blocks", text, SIZES(n, 0, 1, 7));
 *
 * Data are small integers, so that results match bit for bit whatever the order of a sum.
 */
#ifndef TESTS_LOWER_PASS_H
#define TESTS_LOWER_PASS_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/interp/interp.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "tests/plain.h"

#define AVX512 "llvm -mcpu=x86-64-v4"
#define AVX2 "llvm -mcpu=x86-64-v3"
#define SSE2 "llvm -mcpu=x86-64"
#define CUDA "cuda"
#define OPENCL "opencl"

static tec_context *cx;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

static inline const ir_program *parse(const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s", tec_context_error(cx));
    return p;
}

/* The program after the passes of a comma-separated list ("" : none, "all": the pipeline); NULL with an error
 * in cx. */
static inline const ir_program *through(const char *passes, const char *cpu, const ir_program *p, bool strict)
{
    const char *names[32];
    char *list = base_strdup(cx, passes), *rest = NULL;
    int n = 0;
    lower_options o = {.cx = cx, .target = target_parse(cx, cpu), .strict = strict};

    cr_assert(o.target, "%s", tec_context_error(cx));
    if (base_same(passes, "all"))
        return lower_run(&o, p);
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        names[n++] = name;
    return lower_run_passes(&o, p, names, n);
}

static inline const char *after(const char *passes, const char *cpu, const char *text)
{
    const ir_program *p = through(passes, cpu, parse(text), false);

    cr_assert(p, "%s", tec_context_error(cx));
    return ir_program_text(cx, p);
}

/* The first error of a pass. */
static inline const char *refusal(const char *passes, const char *cpu, const char *text)
{
    cr_assert_not(through(passes, cpu, parse(text), false), "it was not refused");
    return tec_context_error(cx);
}

static base_text log_text;
static inline void keep_log(void *user, int level, const char *text)
{
    (void)level;
    base_addf(user, &log_text, "%s\n", text);
}

/* What passes say at level 1. */
static inline const char *logged(const char *passes, const char *cpu, const ir_program *p, bool strict)
{
    log_text = (base_text){0};
    tec_context_set_log(cx, keep_log, cx, 1);
    cr_assert(through(passes, cpu, p, strict), "%s", tec_context_error(cx));
    tec_context_set_log(cx, NULL, NULL, 0);
    return base_text_str(cx, &log_text);
}

#define SHOWS(expected, text)                                                                                \
    do {                                                                                                     \
        const char *found_ = (text), *expected_ = (expected);                                                \
        cr_assert(strcmp(found_, expected_) == 0, "expected:\n%s\nfound:\n%s", expected_, found_);           \
    } while (0)
#define HAS(part, text)                                                                                      \
    do {                                                                                                     \
        const char *found_ = plain(cx, (text));                                                              \
        cr_assert(strstr(found_, (part)), "expected a part:\n%s\nfound:\n%s", (part), found_);               \
    } while (0)
#define HAS_NOT(part, text)                                                                                  \
    do {                                                                                                     \
        const char *found_ = (text);                                                                         \
        cr_assert_not(strstr(found_, (part)), "unexpected part:\n%s\nfound:\n%s", (part), found_);           \
    } while (0)

/* ---- meaning ---- */

/* The memory of all parameters: enough for both programs, since flattening changes shapes and not
 * elements. */
typedef struct {
    int64_t size; /* value of every symbol */
    uint64_t seed;
    void *data[16];
    int64_t bytes[16];
} memory;

static inline int64_t value_of(const ir_program *p, const ir_expr *e, int64_t size)
{
    ir_subst map = {0};
    int64_t n = 0;

    for (int i = 0; i < p->n_symbols; i++)
        base_map_put(cx, &map.vars, p->symbols[i], ir_int(cx, size));
    const ir_facts *f = ir_facts_new(cx, NULL);
    e = ir_simplify(f, ir_apply(cx, &map, e));
    cr_assert(ir_is_int(e, &n), "no number: %s", ir_expr_text(cx, e));
    return n;
}

static inline ir_array array_of(const ir_program *p, const ir_buffer *b, int64_t size)
{
    ir_array a = {.dtype = b->dtype, .n = b->n};

    for (int d = 0; d < b->n; d++) {
        a.shape[d] = value_of(p, b->shape[d], size);
        if (b->strides)
            a.strides[d] = value_of(p, b->strides[d], size);
    }
    return a;
}

static inline int64_t elements_of(const ir_program *p, const ir_buffer *b, int64_t size)
{
    int64_t n = 1, last = b->offset ? value_of(p, b->offset, size) : 0;

    for (int d = 0; d < b->n; d++) {
        int64_t extent = value_of(p, b->shape[d], size);

        n *= extent;
        last += b->strides ? (extent - 1) * value_of(p, b->strides[d], size) : 0;
    }
    return b->strides ? (n > 0 ? last + 1 : 0) : last + n;
}

static inline void put_number(base_dtype t, void *at, int64_t v)
{
    if (t.code == kDLFloat && t.bits == 32)
        *(float *)at = (float)v;
    else if (t.code == kDLFloat && t.bits == 64)
        *(double *)at = (double)v;
    else if (t.bits == 8)
        *(int8_t *)at = (int8_t)(base_is_bool(t) ? v & 1 : v);
    else if (t.bits == 32)
        *(int32_t *)at = (int32_t)v;
    else if (t.bits == 64)
        *(int64_t *)at = v;
    else
        cr_assert_fail("no data of this dtype");
}

/* Inputs get random integers from -4 to 4 (unsigned ones and bools: 0 to 4), outputs a mark. */
static inline memory fill(const ir_program *p, int64_t size, uint64_t seed)
{
    memory m = {.size = size, .seed = seed};
    uint64_t state = seed;

    for (int i = 0; i < p->n_params; i++) {
        const ir_buffer *b = p->params[i].buffer;
        int64_t n = b ? elements_of(p, b, size) : 0;
        int bytes = b ? base_dtype_bytes(b->dtype) : 0;

        m.bytes[i] = n * bytes;
        m.data[i] = base_alloc_array(cx, (size_t)n + 1, (size_t)bytes + 1);
        for (int64_t j = 0; j < n; j++) {
            bool is_signed = base_is_float(b->dtype) || base_is_signed(b->dtype);
            int64_t v =
                p->params[i].output ? 99 : base_random_below(&state, is_signed ? 9 : 5) - (is_signed ? 4 : 0);

            put_number(b->dtype, (char *)m.data[i] + j * bytes, v);
        }
    }
    return m;
}

/* Whether p runs; the message is in cx where not. */
static inline bool runs(const ir_program *p, const memory *m)
{
    ir_array arrays[16];
    ir_arg args[16] = {{0}};
    const char *names[16];
    int64_t values[16];

    for (int i = 0; i < p->n_params; i++) {
        if (!p->params[i].buffer) {
            args[i] = (ir_arg){.scalar_int = 3, .scalar_float = 3};
            continue;
        }
        arrays[i] = array_of(p, p->params[i].buffer, m->size);
        arrays[i].data = m->data[i];
        args[i].array = &arrays[i];
    }
    for (int i = 0; i < p->n_symbols; i++) {
        names[i] = p->symbols[i]->var.name;
        values[i] = m->size;
    }
    return ir_interpret(
        cx, p,
        &(ir_run){.args = args, .symbol_name = names, .symbol_value = values, .n_symbols = p->n_symbols});
}

static inline void interpret(const ir_program *p, const memory *m, const char *what)
{
    cr_assert(runs(p, m), "%s fails for size %lld, seed %llu: %s\n%s", what, (long long)m->size,
              (unsigned long long)m->seed, tec_context_error(cx), ir_program_text(cx, p));
}

static inline void same_results(const ir_program *before, const ir_program *now, int64_t size, uint64_t seed,
                                const char *what)
{
    memory a = fill(before, size, seed), b = fill(before, size, seed);

    interpret(before, &a, "the program before");
    interpret(now, &b, what);
    for (int i = 0; i < before->n_params; i++) {
        cr_assert(a.bytes[i] == 0 || memcmp(a.data[i], b.data[i], (size_t)a.bytes[i]) == 0,
                  "parameter %d differs after %s for size %lld, seed %llu:\n%s=>\n%s", i, what,
                  (long long)size, (unsigned long long)seed, ir_program_text(cx, before),
                  ir_program_text(cx, now));
    }
}

/* Lowers text by the passes, and compares results for each size of its symbols. */
static inline const ir_program *same_meaning(const char *passes, const char *cpu, const char *text,
                                             const int64_t *sizes, int n)
{
    const ir_program *before = parse(text), *now = through(passes, cpu, before, false);

    cr_assert(now, "%s\n%s", tec_context_error(cx), text);
    for (int i = 0; i < n; i++)
        same_results(before, now, sizes[i], 7 + (uint64_t)i, passes);
    return now;
}
/* Threads that meet: the program with barriers alone, and with those of a pass before them, which gives the
 * same results. Races and divergence are reported. */
static inline void same_with_barriers(const char *pass, const char *gpu, const char *text,
                                      const int64_t *sizes, int n)
{
    const ir_program *before = through("barriers", gpu, parse(text), false),
                     *now = through(base_format(cx, "%s,barriers", pass), gpu, parse(text), false);

    cr_assert(before && now, "%s\n%s", tec_context_error(cx), text);
    for (int i = 0; i < n; i++)
        same_results(before, now, sizes[i], 1 + (uint64_t)i, pass);
}

/* Why the interpreter refuses the program, with that size and seed; NULL where it runs. */
static inline const char *fault(const ir_program *p, int64_t size, uint64_t seed)
{
    memory m = fill(p, size, seed);
    const char *text = runs(p, &m) ? NULL : base_strdup(cx, tec_context_error(cx));

    tec_context_clear(cx);
    return text;
}
#define SIZES(...)                                                                                           \
    (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

#endif
