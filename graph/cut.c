/* graph/cut.c -- see cut.h. */
#include "graph/cut.h"

/* An edge, and the one against its direction: edges 2k and 2k + 1 belong together. */
typedef struct {
    int to, next; /* the next edge of the same vertex; -1: none */
    int64_t room; /* how much more may flow */
} edge;

struct graph_cut {
    tec_context *cx;
    int n;
    int *first;     /* edge of each vertex; -1: none */
    base_vec edges; /* edge * */
};

graph_cut *graph_cut_new(tec_context *cx, int vertices)
{
    graph_cut *cut = base_new(cx, graph_cut);

    *cut = (graph_cut){.cx = cx, .n = vertices, .first = base_array(cx, int, vertices)};
    for (int i = 0; i < vertices; i++)
        cut->first[i] = -1;
    return cut;
}

static void add_half(graph_cut *cut, int from, int to, int64_t room)
{
    edge *e = base_new(cut->cx, edge);

    *e = (edge){to, cut->first[from], room};
    cut->first[from] = cut->edges.n;
    base_push(cut->cx, &cut->edges, e);
}

void graph_cut_edge(graph_cut *cut, int from, int to, int64_t weight)
{
    if (from == to)
        return;
    add_half(cut, from, to, weight);
    add_half(cut, to, from, 0);
}

/* The edge by which each vertex is reached first from the source; -1: it is not reached. */
static void search(const graph_cut *cut, int *by, int *queue)
{
    int n = 0;

    for (int i = 0; i < cut->n; i++)
        by[i] = -1;
    queue[n++] = CUT_SOURCE;
    for (int k = 0; k < n; k++)
        for (int e = cut->first[queue[k]]; e >= 0; e = ((const edge *)cut->edges.at[e])->next) {
            const edge *out = cut->edges.at[e];

            if (out->room == 0 || by[out->to] >= 0 || out->to == CUT_SOURCE)
                continue;
            by[out->to] = e;
            queue[n++] = out->to;
        }
}

/* As much as the path to the sink has room for flows along. */
static void augment(const graph_cut *cut, const int *by)
{
    int64_t room = INT64_MAX;

    for (int v = CUT_SINK; v != CUT_SOURCE; v = ((const edge *)cut->edges.at[by[v] ^ 1])->to) {
        const edge *e = cut->edges.at[by[v]];

        room = e->room < room ? e->room : room;
    }
    for (int v = CUT_SINK; v != CUT_SOURCE; v = ((const edge *)cut->edges.at[by[v] ^ 1])->to) {
        ((edge *)cut->edges.at[by[v]])->room -= room;
        ((edge *)cut->edges.at[by[v] ^ 1])->room += room;
    }
}

/* When nothing more flows, what the source still reaches is its side. */
const bool *graph_cut_minimum(graph_cut *cut)
{
    int *by = base_array(cut->cx, int, cut->n), *queue = base_array(cut->cx, int, cut->n);
    bool *sink = base_array(cut->cx, bool, cut->n);

    for (search(cut, by, queue); by[CUT_SINK] >= 0; search(cut, by, queue))
        augment(cut, by);
    for (int i = 0; i < cut->n; i++)
        sink[i] = i != CUT_SOURCE && by[i] < 0;
    return sink;
}
