/* tests/graph/plan.c -- memory plans: what lives at the same time never overlaps, and little is wasted. */
#include "graph/plan.h"
#include "tests/graph/kit.h"

TestSuite(plan, .init = open_context, .fini = close_context);

typedef struct {
    int64_t begin, end;
    int first, last;
} span;

static int spans_of(const graph_module *m, const graph_plan *p, span *out)
{
    const graph_body *body = main_body(m);
    int n = 0;

    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_out; k++) {
            const graph_place *at = graph_place_of(p, node->out[k]);

            if (at->storage != RT_IN_POOL || at->root != node->out[k] || at->whole)
                continue;
            cr_assert(ir_is_int(at->offset, &out[n].begin));
            cr_assert_eq(out[n].begin % 64, 0);
            out[n].end = out[n].begin + elements(&node->out[k]->type) * 4;
            out[n].first = at->first;
            out[n++].last = at->last;
        }
    }
    return n;
}

/* The most bytes that live at one step: no plan can do with less. */
static int64_t lower_bound(const span *s, int n, int steps)
{
    int64_t most = 0;

    for (int t = 0; t < steps; t++) {
        int64_t live = 0;

        for (int i = 0; i < n; i++)
            if (s[i].first <= t && t <= s[i].last)
                live += (s[i].end - s[i].begin + 63) / 64 * 64;
        most = live > most ? live : most;
    }
    return most;
}

enum { NODES = 40 };

static graph_module *random_graph(uint64_t *seed)
{
    graph_module *m = graph_new(cx, "g");
    graph_function *f = graph_function_new(m, "main");
    graph_value *v[NODES + 1];

    for (int i = 0; i <= NODES; i++) {
        if (i == 0) {
            v[0] = graph_input(f, "x", (op_type){BASE_F32, 1, (const ir_expr *const[]){ir_int(cx, 100)}});
            continue;
        }
        graph_value *a = v[base_random_below(seed, i)], *b = v[i - 1];
        op_attr axis = op_attr_int("axis", 0),
                crop[] = {op_attr_ints(cx, "before", (const int64_t[]){-base_random_below(seed, 90)}, 1),
                          op_attr_ints(cx, "after", (const int64_t[]){base_random_below(seed, 200)}, 1)};

        v[i] = base_random_below(seed, 3) ? GRAPH_ADD(f, "pad", base_format(cx, "p%d", i), crop, 2, a)
                                          : GRAPH_ADD(f, "concat", base_format(cx, "c%d", i), &axis, 1, a, b);
        if (!v[i]) {
            tec_context_clear(cx);
            v[i] = GRAPH_ADD(f, "neg", base_format(cx, "n%d", i), NULL, 0, a);
        }
        if (elements(&v[i]->type) > 100000)
            v[i] = v[0];
    }
    graph_output(f, "y", v[NODES]);
    graph_output(f, "z", v[NODES / 2]);
    return m;
}

Test(plan, values_that_live_at_the_same_time_never_overlap)
{
    uint64_t seed = 99;
    int64_t total = 0, least = 0;

    for (int round = 0; round < 60; round++) {
        graph_module *m = graph_remove_dead(random_graph(&seed), NULL);
        span s[NODES + 1];
        graph_plan p;
        int64_t pool;

        cr_assert(graph_plan_memory(m, main_body(m), &p), "%s", tec_context_error(cx));
        int n = spans_of(m, &p, s);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++)
                cr_assert(s[i].last < s[j].first || s[j].last < s[i].first || s[i].end <= s[j].begin ||
                              s[j].end <= s[i].begin,
                          "round %d: [%lld, %lld) of steps %d..%d meets [%lld, %lld) of steps %d..%d", round,
                          (long long)s[i].begin, (long long)s[i].end, s[i].first, s[i].last,
                          (long long)s[j].begin, (long long)s[j].end, s[j].first, s[j].last);
        cr_assert(ir_is_int(p.pool[0], &pool));
        int64_t bound = lower_bound(s, n, p.steps.n);
        cr_assert_geq(pool, bound);
        cr_assert_leq(pool, bound + bound / 2 + 64, "round %d: %lld bytes where %lld may do", round,
                      (long long)pool, (long long)bound);
        total += pool;
        least += bound;
    }
    cr_assert_leq(total, least + least / 10, "%lld bytes where %lld may do", (long long)total,
                  (long long)least);
}

/* Every operand is kept until its last reader ran. */
Test(plan, lifetimes_reach_every_reader_through_reshapes)
{
    graph_module *m = lines("input v0: f32[4, 8]\nv1: f32[4, 8] = op neg \"a\"(v0)\nv2: f32[32] = op reshape "
                            "\"r\"(v1) @shape(exprs [32])\nv3: f32[4, 8] = op exp \"b\"(v0)\n"
                            "v4: f32[32] = op relu \"c\"(v2)\nv5: f32[4, 8] = op relu \"d\"(v3)\noutput "
                            "\"y\" v4\noutput \"z\" v5\n");
    graph_plan p;

    cr_assert(graph_plan_memory(m, main_body(m), &p));
    const graph_node *a = main_body(m)->nodes.at[0], *r = main_body(m)->nodes.at[1];
    cr_assert_eq(p.steps.n, 4, "a reshape is no step");
    cr_assert_eq(graph_place_of(&p, r->out[0]), graph_place_of(&p, a->out[0]));
    cr_assert_eq(graph_place_of(&p, a->out[0])->first, 0);
    cr_assert_eq(graph_place_of(&p, a->out[0])->last, 2);
}

Test(plan, values_of_symbolic_size_share_places_of_equal_size)
{
    graph_module *m =
        lines("input v0: f32[n]\nv1: f32[n] = op neg \"a\"(v0)\nv2: f32[n] = op exp \"b\"(v1)\nv3: f32[n] = "
              "op relu \"c\"(v2)\nv4: f32[n] = op neg \"d\"(v3)\noutput \"y\" v4\n");
    graph_plan p;

    cr_assert(graph_plan_memory(m, main_body(m), &p));
    const ir_expr *offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = graph_place_of(&p, ((const graph_node *)main_body(m)->nodes.at[i])->out[0])->offset;
    cr_assert_neq(offset[0], offset[1]);
    cr_assert_eq(offset[0], offset[2]);
}

Test(plan, outputs_that_are_inputs_constants_or_twice_the_same_are_copied)
{
    graph_module *m =
        lines("constant v0: f32[2] = [1.0, 2.0]\ninput v1: f32[2]\nv2: f32[2] = op neg \"a\"(v1)\noutput "
              "\"w\" v2\noutput \"x\" v2\noutput \"y\" v1\noutput \"z\" v0\n");
    graph_plan p;

    cr_assert(graph_plan_memory(m, main_body(m), &p));
    cr_assert_eq(p.copies.n, 3);
    cr_assert_eq(graph_place_of(&p, main_body(m)->outputs.at[0])->storage, RT_IN_OUTPUT);
}
