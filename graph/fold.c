/* graph/fold.c -- computes what depends on constants alone.
 *
 * Only values that something else needs are computed, each by one kernel that holds the expression behind it,
 * cut where that expression has too many terms (graph/terms.h). What is cut off is computed in an earlier
 * round; all kernels of a round are compiled together. Nodes that only served those are left to
 * graph_remove_dead.
 */
#include "graph/emit.h"
#include "graph/evaluate.h"
#include "graph/pass.h"
#include "graph/rewrite.h"
#include "graph/terms.h"

typedef struct {
    const graph_module *m;
    base_map computable;
    base_map frontier; /* old value -> itself: computable, and read by what is not, or cut off */
    base_vec order;    /* the same, in order of discovery */
    base_map terms;    /* computable value -> int64_t *: of its expression */
    base_map round;    /* computable value -> in which round at the earliest, plus one */
    base_map results;  /* old value -> graph_value * (constant) */
    int rounds;
} state;

/* A use by what is not computed, or a cut: the value needs a kernel of its own. Called again for each reader,
 * noted once. */
static void note_use(state *st, const graph_value *value)
{
    tec_context *cx = st->m->cx;

    if (!value || value->constant || !graph_is_computable(cx, value, &st->computable) ||
        base_map_has(&st->frontier, value))
        return;
    base_map_put(cx, &st->frontier, value, value);
    base_push(cx, &st->order, value);
}

/* One load for a value of the frontier, which is a constant by then; the whole expression for others. */
static int64_t terms_of(const state *st, const graph_value *value)
{
    const int64_t *terms =
        value && !base_map_has(&st->frontier, value) ? base_map_get(&st->terms, value) : NULL;

    return terms ? *terms : 1;
}

/* The round of what reads value: the next, where value is computed by itself. */
static intptr_t round_behind(const state *st, const graph_value *value)
{
    return value && !value->constant
               ? (intptr_t)base_map_get(&st->round, value) + base_map_has(&st->frontier, value)
               : 1;
}

/* Counts the terms of a computable node; where there are too many, its operands are cut off: they join the
 * frontier, and the node reads them as constants. With a limit of 100, for additions, whose own terms are 2:
 *
 *     v1 = c + c            2 + 1 + 1 = 4                  round 1
 *     v2 = v1 + v1          2 + 4 + 4 = 10                 round 1
 *     ...
 *     v5 = v4 + v4          94                             round 1
 *     v6 = v5 + v5          190: v5 is cut off, so 2       round 2
 *
 * A value's round is one more than that of a cut operand, and that of an operand otherwise, whichever is
 * latest: in the end rounds run one after the other, and no kernel reads what is not computed yet. */
static void measure(state *st, const graph_node *node)
{
    tec_context *cx = st->m->cx;
    int *reads = base_array(cx, int, node->n_in), own = graph_own_terms(st->m, node, reads);
    int64_t *terms = base_new(cx, int64_t);
    intptr_t round = 1;

    *terms = own;
    for (int k = 0; k < node->n_in; k++)
        *terms = graph_add_terms(*terms, reads[k], terms_of(st, node->in[k]));
    for (int k = 0; *terms > GRAPH_MOST_TERMS && k < node->n_in; k++)
        note_use(st, node->in[k]);
    if (*terms > GRAPH_MOST_TERMS)
        *terms = own;
    for (int k = 0; k < node->n_in; k++) {
        intptr_t behind = round_behind(st, node->in[k]);

        round = behind > round ? behind : round;
    }
    st->rounds = round > st->rounds ? (int)round : st->rounds;
    for (int k = 0; k < node->n_out; k++) {
        base_map_put(cx, &st->terms, node->out[k], terms);
        base_map_put(cx, &st->round, node->out[k], (void *)round);
    }
}

/* The frontier are the values that depend on constants alone and that something else reads: only those are
 * computed. */
static void find_frontier(state *st, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        bool computed = node->n_bodies == 0 && node->n_out > 0;

        for (int k = 0; k < node->n_out; k++)
            computed = computed && graph_is_computable(st->m->cx, node->out[k], &st->computable);
        if (computed)
            measure(st, node);
        for (int k = 0; !computed && k < node->n_in; k++)
            note_use(st, node->in[k]);
        for (int k = 0; k < node->n_bodies; k++)
            find_frontier(st, node->body[k]);
    }
    for (int i = 0; i < body->outputs.n; i++)
        note_use(st, body->outputs.at[i]);
}

/* The definition of the value's expression, and the bytes of the constants at its ends, in the order in which
 * the definition takes its inputs. */
static bool prepare_one(state *st, const graph_value *value, const target *machine,
                        graph_evaluation *evaluation)
{
    base_vec leaves = {0};
    const op_constant **in;

    evaluation->def = graph_constant_definition(st->m, value, machine, &st->results, &leaves);
    in = base_array(st->m->cx, const op_constant *, leaves.n);
    for (int i = 0; i < leaves.n; i++)
        in[i] = ((const graph_value *)leaves.at[BASE_PLANT_ON(st->m->cx, fold_leaf) ? 0 : i])->constant;
    evaluation->in = in;
    return evaluation->def != NULL;
}

/* Computes the values of one round and remembers each result for the values that are built from it. */
static bool compute_round(state *st, const base_vec *values, const target *machine)
{
    tec_context *cx = st->m->cx;
    graph_evaluation *evaluation = base_array(cx, graph_evaluation, values->n);

    for (int i = 0; i < values->n; i++)
        if (!prepare_one(st, values->at[i], machine, &evaluation[i]))
            return false;
    if (!graph_evaluate(st->m, evaluation, values->n))
        return false;
    for (int i = 0; i < values->n; i++) {
        const graph_value *old = values->at[i];
        graph_value *value = graph_value_new(cx, old->name, old->type);

        value->constant = evaluation[i].out;
        base_map_put(cx, &st->results, old, value);
    }
    return true;
}

/* Every value of the frontier was measured, so none is in round 0: the rounds begin with 1. */
static bool compute(state *st, const target *machine)
{
    base_vec *values = base_array(st->m->cx, base_vec, st->rounds + 1);

    for (int i = 0; i < st->order.n; i++)
        base_push(st->m->cx, &values[(intptr_t)base_map_get(&st->round, st->order.at[i])], st->order.at[i]);
    for (int r = 0; r <= st->rounds; r++)
        if (values[r].n && !compute_round(st, &values[r], machine))
            return false;
    return true;
}

/* A node whose outputs were all computed is left out; other nodes read the constants in its place. A node
 * with two results of which one was computed stays, for the other; its readers take the constant. */
static bool replace(graph_rewrite *rw, const graph_node *node)
{
    state *st = rw->user;
    bool all = node->n_out > 0;

    for (int k = 0; k < node->n_out; k++) {
        graph_value *value = base_map_get(&st->results, node->out[k]);

        all = all && value;
        if (value)
            graph_replace(rw, node->out[k], value);
    }
    if (all)
        return true;
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);
    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    graph_node *copy = graph_copy_node(rw, node, in);
    for (int k = 0; k < node->n_out; k++)
        if (!base_map_has(&rw->values, node->out[k]))
            base_map_put(rw->cx, &rw->values, node->out[k], copy->out[k]);
    return true;
}

graph_module *graph_fold_constants(graph_module *module, const target *machine)
{
    state st = {.m = module};

    for (int i = 0; i < module->functions.n; i++)
        find_frontier(&st, ((const graph_function *)module->functions.at[i])->body);
    if (st.order.n == 0)
        return module;
    return compute(&st, machine) ? graph_rewrite_module(module, replace, NULL, &st) : NULL;
}
