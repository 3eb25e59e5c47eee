/* autotune/box.c -- what a statement touches of each buffer at each of its loops: boxes, and the elements,
 * runs and cache lines in them.
 */
#include <math.h>

#include "autotune/touch.h"

enum { LINE = 64 };

/* ---- boxes ---- */

/* NULL: the statement has none yet in that direction. A buffer that is read and written has two. */
static tune_access *access_of(tune_statement *l, const ir_buffer *b, bool written)
{
    for (int i = 0; i < l->n_accesses; i++)
        if (l->access[i].buffer == b && l->access[i].written == written)
            return &l->access[i];
    return NULL;
}

/* A new access: boxes of one element at `low`, the values of the indices where all loops are at 0. */
static tune_access *new_access(tune_scope *s, tune_statement *l, const ir_buffer *b, bool written)
{
    tune_access *a = &l->access[l->n_accesses++];
    size_t places = (size_t)b->n * (size_t)(s->n + 1);

    *a = (tune_access){.buffer = b, .written = written, .bytes = base_dtype_bytes(b->dtype)};
    a->extent = base_array(s->cx, double, places);
    a->step = base_array(s->cx, double, places);
    return a;
}

/* At every place: nothing is known of the index. */
static void whole_dimension(tune_scope *s, tune_access *a, int d)
{
    for (int p = 0; p <= s->n; p++)
        a->extent[d * (s->n + 1) + p] = tune_value(s, a->buffer->shape[d]);
}

/* `low` is the start of the box so far, which grows to hold the span. extent[p] is its size while the loops
 * from p on run. For A[i] and then A[i + 2] with i in 0..8:
 *
 *     A[i]        low 0     extent[0] = 8     extent[1] = 1
 *     A[i + 2]    low 0     extent[0] = 10    extent[1] = 3: two elements, with one between
 *
 * It never becomes larger than the buffer. */
static void grow(tune_scope *s, tune_access *a, int d, const tune_span *span, double *low)
{
    double *extent = a->extent + d * (s->n + 1), size = tune_value(s, a->buffer->shape[d]),
           lift = fmax(0, *low - span->at);

    for (int p = 0; p <= s->n; p++)
        extent[p] = fmin(size, fmax(extent[p] + lift, span->at + span->width[p] + 1 - fmin(*low, span->at)));
    *low = fmin(*low, span->at);
}

/* Several accesses of one buffer in one direction, one after the other. */
typedef struct {
    tune_access *access;
    double *low; /* by dimension */
} box;

/* Takes one load or store into the access record of its buffer: the box at the innermost place grows to hold
 * the new element. index NULL, or an index that is not linear: the whole buffer may be touched. */
static void add_access(tune_scope *s, tune_statement *l, box *boxes, const ir_buffer *b,
                       const ir_expr *const *index, bool written)
{
    tune_access *a = access_of(l, b, written);
    bool first = !a;

    a = a ? a : new_access(s, l, b, written);
    box *x = &boxes[a - l->access];
    a->count++;
    x->low = first ? base_array(s->cx, double, b->n + 1) : x->low;
    for (int d = 0; d < b->n; d++) {
        tune_span span = index ? tune_span_of(s, index[d]) : (tune_span){.odd = true};

        a->odd = a->odd || span.odd;
        if (span.odd) {
            whole_dimension(s, a, d);
            continue;
        }
        if (first) {
            x->low[d] = span.at;
            for (int i = 0; i < s->n; i++)
                a->step[d * (s->n + 1) + i] = span.step[i];
        }
        grow(s, a, d, &span, &x->low[d]);
    }
}

/* An upper bound of how many accesses there are: those of one buffer are joined. */
static int count_buffers(const base_vec *loads)
{
    int n = 0;

    for (int i = 0; i < loads->n; i++) {
        const ir_expr *e = loads->at[i];
        n += e->op == IR_LOAD ? 1 : e->call.n_buffers;
    }
    return n;
}

/* The accesses of one statement: what it writes, what its expressions load, and the buffers of calls. */
void tune_read_accesses(tune_scope *s, tune_statement *l, const ir_buffer *const *written, int n_written,
                        const ir_expr *const *index, const base_vec *loads)
{
    int most = n_written + count_buffers(loads) + 1;
    box *boxes = base_array(s->cx, box, most);

    l->access = base_array(s->cx, tune_access, most);
    for (int i = 0; i < n_written; i++)
        add_access(s, l, boxes, written[i], index, true);
    for (int i = 0; i < loads->n; i++) {
        const ir_expr *e = loads->at[i];

        if (e->op == IR_LOAD)
            add_access(s, l, boxes, e->load.buffer, e->load.index, false);
        for (int j = 0; e->op == IR_CALL && j < e->call.n_buffers; j++)
            add_access(s, l, boxes, e->call.buffer[j], NULL, !e->call.pure);
    }
}

/* ---- places ---- */

/* Where a buffer is allocated: inside of the first `common` loops of `statement`; -1: it is a parameter. */
typedef struct {
    const tune_statement *statement;
    int common;
    double *shape, *stride;
} place;

/* How many of the first n loops of `a` are around `b` too. */
static int common_loops(const tune_statement *a, int n, const tune_statement *b)
{
    int i = 0;

    while (i < n && i < b->n_loops && a->loop[i].var == b->loop[i].var)
        i++;
    return i;
}

/* The one place of the buffer, made when it is first asked for, with no statement yet. */
static place *place_of(tune_scope *s, base_map *places, const ir_buffer *b)
{
    place *x = base_map_get(places, b);

    if (!x) {
        x = base_new(s->cx, place);
        x->shape = base_array(s->cx, double, b->n + 1);
        x->stride = base_array(s->cx, double, b->n + 1);
        base_map_put(s->cx, places, b, x);
    }
    return x;
}

/* Shapes of the program's parameters in elements, with the sizes that the scope gives to symbols; their bytes
 * sum up to what a run must at least move. */
static void place_parameters(tune_scope *s, const ir_program *p, base_map *places, tune_nest *nest)
{
    for (int i = 0; i < p->n_params; i++) {
        const ir_buffer *b = p->params[i].buffer;
        double bytes = b ? base_dtype_bytes(b->dtype) : 0;

        if (!b)
            continue;
        place *x = place_of(s, places, b);
        x->common = -1;
        for (int d = 0; d < b->n; d++)
            bytes *= x->shape[d] = tune_value(s, b->shape[d]);
        nest->parameters += bytes;
    }
}

/* Statements come in the order of the tree, so each one can only shorten what is common. */
static void find_common(tune_scope *s, tune_nest *nest, base_map *places)
{
    for (int i = 0; i < nest->n; i++)
        for (int j = 0; j < nest->statement[i]->n_accesses; j++) {
            place *x = place_of(s, places, nest->statement[i]->access[j].buffer);

            if (x->common < 0)
                continue;
            x->common = x->statement ? common_loops(x->statement, x->common, nest->statement[i])
                                     : nest->statement[i]->n_loops;
            x->statement = nest->statement[i];
        }
}

/* As large as what is touched inside of the common loops. */
static void find_shapes(tune_nest *nest, base_map *places)
{
    for (int i = 0; i < nest->n; i++)
        for (int j = 0; j < nest->statement[i]->n_accesses; j++) {
            const tune_access *a = &nest->statement[i]->access[j];
            place *x = base_map_get(places, a->buffer);

            for (int d = 0; x->common >= 0 && d < a->buffer->n; d++)
                x->shape[d] = fmax(x->shape[d], a->extent[d * (nest->statement[i]->n_loops + 1) + x->common]);
        }
}

/* Row-major, but for parameters that say otherwise. */
static void find_strides(tune_scope *s, const ir_buffer *b, place *x)
{
    double stride = 1;

    for (int d = b->n - 1; d >= 0; d--) {
        x->stride[d] = b->strides && x->common < 0 ? tune_value(s, b->strides[d]) : stride;
        stride *= x->shape[d];
    }
}

/* Contiguous elements in the box at a position. For a buffer [8, 16]: the box [4, 16] is one run of 64, the
 * box [4, 8] four runs of 8. A dimension that is not covered ends the run, because the next row begins
 * elsewhere. */
static double run_at(const tune_access *a, const place *x, int n, int p)
{
    double run = 1;

    for (int d = a->buffer->n - 1; d >= 0; d--) {
        double extent = a->extent[d * (n + 1) + p];

        if (extent > 1 && x->stride[d] != run)
            return run;
        run *= extent;
        if (extent < x->shape[d])
            return run;
    }
    return run;
}

/* An element counts once, and no more of them than there are accesses; no more lines than elements. */
static void touch_at(const tune_statement *l, tune_access *a, const place *x, int p)
{
    double elements = 1;

    for (int d = 0; d < a->buffer->n; d++)
        elements *= fmax(1, a->extent[d * (l->n_loops + 1) + p]);
    a->run[p] = fmax(1, run_at(a, x, l->n_loops, p));
    a->elements[p] = fmin(elements, l->steps[p] * a->count);
    double runs = fmin(elements / a->run[p], a->elements[p]);
    a->lines[p] = fmin(runs * ceil(a->run[p] * a->bytes / LINE), a->elements[p]) * LINE;
}

/* Per loop of the statement: elements touched below it, lines of the cache they lie in, lengths of their
 * runs. */
static void finish_access(tec_context *cx, const tune_statement *l, tune_access *a, const place *x)
{
    a->elements = base_array(cx, double, l->n_loops + 1);
    a->lines = base_array(cx, double, l->n_loops + 1);
    a->run = base_array(cx, double, l->n_loops + 1);
    a->stride = base_array(cx, double, l->n_loops + 1);
    a->size = 1;
    for (int d = 0; d < a->buffer->n; d++) {
        a->size *= x->shape[d];
        for (int i = 0; i < l->n_loops; i++)
            a->stride[i] += a->step[d * (l->n_loops + 1) + i] * x->stride[d];
    }
    for (int p = 0; p <= l->n_loops; p++)
        touch_at(l, a, x, p);
}

/* touched[p]: the bytes of all lines of all accesses, which is what has to fit a cache while the loops from p
 * on run. */
static void finish_statement(tune_scope *s, tune_statement *l, base_map *places)
{
    l->touched = base_array(s->cx, double, l->n_loops + 1);
    for (int i = 0; i < l->n_accesses; i++) {
        tune_access *a = &l->access[i];
        place *x = base_map_get(places, a->buffer);

        find_strides(s, a->buffer, x);
        finish_access(s->cx, l, a, x);
        for (int p = 0; p <= l->n_loops; p++)
            l->touched[p] += a->lines[p];
    }
}

/* Finds the loop inside of which all uses of a temporary buffer lie: its memory is as large as what they
 * touch there, and it is likely to be still in the cache. */
void tune_place_buffers(tune_scope *s, const ir_program *p, tune_nest *nest)
{
    base_map places = {0};

    place_parameters(s, p, &places, nest);
    find_common(s, nest, &places);
    find_shapes(nest, &places);
    for (int i = 0; i < nest->n; i++)
        finish_statement(s, nest->statement[i], &places);
    for (int i = 0; i < p->n_buffers; i++) {
        const place *x = base_map_get(&places, p->buffers[i]);
        double bytes = base_dtype_bytes(p->buffers[i]->dtype);

        for (int d = 0; x && d < p->buffers[i]->n; d++)
            bytes *= x->shape[d];
        nest->temporaries += x ? bytes : 0;
    }
}
