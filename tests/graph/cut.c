/* tests/graph/cut.c -- minimum cuts against all cuts, on small random graphs. */
#include <criterion/criterion.h>

#include "graph/cut.h"

enum { MOST_VERTICES = 8, MOST_EDGES = 24 };

typedef struct {
    int from, to;
    int64_t weight;
} an_edge;

static uint64_t state = 12345;

static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* What the cut costs: bit v of `sink` tells the side of vertex v. */
static int64_t cost(const an_edge *edge, int n, unsigned sink)
{
    int64_t sum = 0;

    for (int i = 0; i < n; i++)
        if (!(sink >> edge[i].from & 1) && sink >> edge[i].to & 1)
            sum += edge[i].weight;
    return sum;
}

Test(cut, costs_as_little_as_the_best_of_all_cuts)
{
    tec_context *cx = tec_context_new();

    for (int round = 0; round < 2000; round++) {
        int vertices = 2 + draw(MOST_VERTICES - 1), n = draw(MOST_EDGES + 1);
        graph_cut *cut = graph_cut_new(cx, vertices);
        an_edge edge[MOST_EDGES];
        int64_t best = INT64_MAX;
        unsigned found = 0;

        for (int i = 0; i < n; i++) {
            edge[i] = (an_edge){draw(vertices), draw(vertices), 1 + draw(9)};
            graph_cut_edge(cut, edge[i].from, edge[i].to, edge[i].weight);
        }
        for (unsigned set = 0; set < 1u << (vertices - 2); set++) {
            int64_t sum = cost(edge, n, set << 2 | 1u << CUT_SINK);

            best = sum < best ? sum : best;
        }
        const bool *sink = graph_cut_minimum(cut);
        for (int v = 0; v < vertices; v++)
            found |= (unsigned)sink[v] << v;
        cr_assert_not(sink[CUT_SOURCE]);
        cr_assert(sink[CUT_SINK]);
        cr_assert_eq(cost(edge, n, found), best, "round %d: %lld instead of %lld", round,
                     (long long)cost(edge, n, found), (long long)best);
    }
    tec_context_free(cx);
}
