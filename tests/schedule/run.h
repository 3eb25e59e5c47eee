/* tests/schedule/run.h -- definitions as text, schedules as traces; the interpreter says whether two trees
 * mean the same. */
#ifndef TESTS_SCHEDULE_RUN_H
#define TESTS_SCHEDULE_RUN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/interp/interp.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/sched.h"
#include "te/text.h"
#include "tests/plain.h"

static tec_context *cx;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

/* The schedule of a definition, or of a printed tree. */
static inline sched *schedule_of(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    const ir_program *p = te_tree(cx, f->defs.at[0]);
    cr_assert(p, "%s", tec_context_error(cx));
    return sched_new(cx, p, NULL);
}

static inline sched *schedule_of_tree(const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s", tec_context_error(cx));
    return sched_new(cx, p, NULL);
}

/* ---- meaning ---- */

enum { MAX_PARAMS = 8, MAX_SYMBOLS = 4 };

typedef struct {
    int n_symbols;
    const char *name[MAX_SYMBOLS];
    int64_t value[MAX_SYMBOLS];
    base_map vars;
} sizes;

static inline bool facts_hold(const ir_program *p, const sizes *s)
{
    ir_value v;

    for (int i = 0; i < p->n_facts; i++)
        if (!ir_eval(cx, p->facts[i], &s->vars, &v) || !v.i)
            return false;
    return true;
}

/* Values for the symbols that fit the facts. */
static inline sizes choose_sizes(const ir_program *p, uint64_t *seed)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        sizes s = {.n_symbols = p->n_symbols};

        for (int i = 0; i < p->n_symbols; i++) {
            ir_value *v = base_new(cx, ir_value);

            s.name[i] = p->symbols[i]->var.name;
            v->i = s.value[i] = 1 + base_random_below(seed, 13);
            base_map_put(cx, &s.vars, p->symbols[i], v);
        }
        if (facts_hold(p, &s))
            return s;
    }
    cr_assert_fail("no sizes fit the facts");
    return (sizes){0};
}

static inline void fill(ir_array *a, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) {
        int v = (int)base_random_below(seed, 9) - 4;

        if (a->dtype.code == kDLFloat && a->dtype.bits == 32)
            ((float *)a->data)[i] = (float)v;
        else if (a->dtype.code == kDLFloat && a->dtype.bits == 64)
            ((double *)a->data)[i] = v;
        else
            for (int b = 0; b < base_dtype_bytes(a->dtype); b++)
                ((signed char *)a->data)[i * base_dtype_bytes(a->dtype) + b] =
                    (signed char)(b ? (v < 0 ? -1 : 0) : v);
    }
}

static inline int64_t make_array(ir_array *a, const ir_buffer *b, const sizes *s, uint64_t *seed)
{
    int64_t n = 1;

    *a = (ir_array){.dtype = b->dtype, .n = b->n};
    for (int d = 0; d < b->n; d++) {
        ir_value v;

        cr_assert(ir_eval(cx, b->shape[d], &s->vars, &v));
        a->shape[d] = v.i;
        n *= v.i;
    }
    a->data = base_alloc(cx, (size_t)(n * base_dtype_bytes(b->dtype)) + 1);
    fill(a, n, seed);
    return n * base_dtype_bytes(b->dtype);
}

/* Runs p on data of the seed; the outputs' bytes one after the other. NULL where the interpreter finds a
 * fault (in *fault). */
static inline base_text run_program(const ir_program *p, uint64_t seed, const char **fault)
{
    sizes s = choose_sizes(p, &seed);
    ir_array array[MAX_PARAMS];
    int64_t bytes[MAX_PARAMS];
    ir_arg arg[MAX_PARAMS] = {{0}};
    base_text out = {0};

    for (int i = 0; i < p->n_params; i++) {
        arg[i].scalar_int = 3;
        arg[i].scalar_float = 3;
        if (!p->params[i].buffer)
            continue;
        bytes[i] = make_array(&array[i], p->params[i].buffer, &s, &seed);
        arg[i].array = &array[i];
    }
    ir_run run = {.args = arg,
                  .parallel_seed = (int64_t)(seed >> 40) + 1,
                  .symbol_name = s.name,
                  .symbol_value = s.value,
                  .n_symbols = s.n_symbols};
    *fault = NULL;
    if (!ir_interpret(cx, p, &run)) {
        *fault = base_strdup(cx, tec_context_error(cx));
        tec_context_clear(cx);
        return out;
    }
    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].output)
            base_addn(cx, &out, array[i].data, (size_t)bytes[i]);
    return out;
}

/* NULL where both compute the same from the data of the seed, otherwise what differs. */
static inline const char *difference(const ir_program *before, const ir_program *after, uint64_t seed)
{
    const char *fault;
    base_text a = run_program(before, seed, &fault);

    if (fault)
        return base_format(cx, "the tree before: %s", fault);
    base_text b = run_program(after, seed, &fault);
    if (fault)
        return fault;
    return a.n == b.n && memcmp(a.data, b.data, a.n) == 0 ? NULL : "the outputs differ";
}

static inline void means_the_same(const ir_program *before, const ir_program *after)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const char *d = difference(before, after, seed);

        cr_assert(!d, "seed %d: %s\nbefore:\n%s\nafter:\n%s", (int)seed, d, ir_program_text(cx, before),
                  ir_program_text(cx, after));
    }
}

/* ---- steps ---- */

/* Every line of the trace is accepted and keeps the meaning. */
static inline void does(sched *s, const char *trace)
{
    const ir_program *before = sched_tree(s);

    cr_assert(sched_replay(s, "test", trace), "%s\n%s", sched_error(s), ir_program_text(cx, sched_tree(s)));
    means_the_same(before, sched_tree(s));
}

/* The last line of the trace is refused for this reason; the tree is as before it, and steps go on. */
static inline void refuses(sched *s, const char *trace, const char *reason)
{
    const ir_program *before = sched_tree(s);
    const char *found;

    cr_assert(!sched_replay(s, "test", trace), "it was accepted:\n%s", ir_program_text(cx, sched_tree(s)));
    found = strstr(plain(cx, sched_error(s)), ": ");
    found = strstr(found + 2, "): ");
    cr_assert(found && strcmp(found + 3, reason) == 0, "expected: %s\nfound:    %s", reason, sched_error(s));
    cr_assert(sched_tree(s) == before);
    cr_assert(tec_context_status(cx) == TEC_OK);
    sched_clear(s);
}

/* The loop tree alone, as text. */
static inline const char *tree_text(const sched *s)
{
    return ir_stmt_text(cx, sched_tree(s)->body);
}

static inline void looks(const sched *s, const char *expected)
{
    cr_assert(strcmp(tree_text(s), expected) == 0, "expected:\n%s\nfound:\n%s", expected, tree_text(s));
}

#endif
