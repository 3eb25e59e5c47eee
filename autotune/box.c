/* autotune/box.c -- what a statement touches of each buffer at each of its loops: boxes, and the elements,
 * runs and cache lines in them.
 */
#include <math.h>

#include "autotune/touch.h"

enum { LINE = 64 };

/* ---- boxes ---- */

/* NULL: the statement has none yet in that direction. A buffer that is read and written has two. */
static tune_access *access_of(tune_statement *statement, const ir_buffer *buffer, bool written)
{
    for (int i = 0; i < statement->n_accesses; i++)
        if (statement->access[i].buffer == buffer && statement->access[i].written == written)
            return &statement->access[i];
    return NULL;
}

/* A new access: boxes of one element at `low`, the values of the indices where all loops are at 0. */
static tune_access *new_access(tune_scope *scope, tune_statement *statement, const ir_buffer *buffer,
                               bool written)
{
    tune_access *a = &statement->access[statement->n_accesses++];
    size_t places = (size_t)buffer->n * (size_t)(scope->n + 1);

    *a = (tune_access){.buffer = buffer, .written = written, .bytes = base_dtype_bytes(buffer->dtype)};
    a->extent = base_array(scope->cx, double, places);
    a->step = base_array(scope->cx, double, places);
    return a;
}

/* At every place: nothing is known of the index. */
static void whole_dimension(tune_scope *scope, tune_access *access, int d)
{
    for (int p = 0; p <= scope->n; p++)
        access->extent[d * (scope->n + 1) + p] = tune_value(scope, access->buffer->shape[d]);
}

/* `low` is the start of the box so far, which grows to hold the span. extent[p] is its size while the loops
 * from p on run. For A[i] and then A[i + 2] with i in 0..8:
 *
 *     A[i]        low 0     extent[0] = 8     extent[1] = 1
 *     A[i + 2]    low 0     extent[0] = 10    extent[1] = 3: two elements, with one between
 *
 * It never becomes larger than the buffer. */
static void grow(tune_scope *scope, tune_access *access, int d, const tune_span *span, double *low)
{
    double *extent = access->extent + d * (scope->n + 1), size = tune_value(scope, access->buffer->shape[d]),
           lift = fmax(0, *low - span->at);

    for (int p = 0; p <= scope->n; p++)
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
static void add_access(tune_scope *scope, tune_statement *statement, box *boxes, const ir_buffer *buffer,
                       const ir_expr *const *index, bool written)
{
    tune_access *access = access_of(statement, buffer, written);
    bool first = !access;

    access = access ? access : new_access(scope, statement, buffer, written);
    box *x = &boxes[access - statement->access];
    access->count++;
    x->low = first ? base_array(scope->cx, double, buffer->n + 1) : x->low;
    for (int d = 0; d < buffer->n; d++) {
        tune_span span = index ? tune_span_of(scope, index[d]) : (tune_span){.odd = true};

        access->odd = access->odd || span.odd;
        if (span.odd) {
            whole_dimension(scope, access, d);
            continue;
        }
        if (first) {
            x->low[d] = span.at;
            for (int i = 0; i < scope->n; i++)
                access->step[d * (scope->n + 1) + i] = span.step[i];
        }
        grow(scope, access, d, &span, &x->low[d]);
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
void tune_read_accesses(tune_scope *scope, tune_statement *statement, const ir_buffer *const *written,
                        int n_written, const ir_expr *const *index, const base_vec *loads)
{
    int most = n_written + count_buffers(loads) + 1;
    box *boxes = base_array(scope->cx, box, most);

    statement->access = base_array(scope->cx, tune_access, most);
    for (int i = 0; i < n_written; i++)
        add_access(scope, statement, boxes, written[i], index, true);
    for (int i = 0; i < loads->n; i++) {
        const ir_expr *expr = loads->at[i];

        if (expr->op == IR_LOAD)
            add_access(scope, statement, boxes, expr->load.buffer, expr->load.index, false);
        for (int j = 0; expr->op == IR_CALL && j < expr->call.n_buffers; j++)
            add_access(scope, statement, boxes, expr->call.buffer[j], NULL, !expr->call.pure);
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
static place *place_of(tune_scope *scope, base_map *places, const ir_buffer *buffer)
{
    place *x = base_map_get(places, buffer);

    if (!x) {
        x = base_new(scope->cx, place);
        x->shape = base_array(scope->cx, double, buffer->n + 1);
        x->stride = base_array(scope->cx, double, buffer->n + 1);
        base_map_put(scope->cx, places, buffer, x);
    }
    return x;
}

/* Shapes of the program's parameters in elements, with the sizes that the scope gives to symbols; their bytes
 * sum up to what a run must at least move. */
static void place_parameters(tune_scope *scope, const ir_program *program, base_map *places, tune_nest *nest)
{
    for (int i = 0; i < program->n_params; i++) {
        const ir_buffer *buffer = program->params[i].buffer;
        double bytes = buffer ? base_dtype_bytes(buffer->dtype) : 0;

        if (!buffer)
            continue;
        place *x = place_of(scope, places, buffer);
        x->common = -1;
        for (int d = 0; d < buffer->n; d++)
            bytes *= x->shape[d] = tune_value(scope, buffer->shape[d]);
        nest->parameters += bytes;
    }
}

/* Statements come in the order of the tree, so each one can only shorten what is common. */
static void find_common(tune_scope *scope, tune_nest *nest, base_map *places)
{
    for (int i = 0; i < nest->n; i++)
        for (int j = 0; j < nest->statement[i]->n_accesses; j++) {
            place *x = place_of(scope, places, nest->statement[i]->access[j].buffer);

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
            const tune_access *access = &nest->statement[i]->access[j];
            place *x = base_map_get(places, access->buffer);

            for (int d = 0; x->common >= 0 && d < access->buffer->n; d++)
                x->shape[d] =
                    fmax(x->shape[d], access->extent[d * (nest->statement[i]->n_loops + 1) + x->common]);
        }
}

/* Row-major, but for parameters that say otherwise. */
static void find_strides(tune_scope *scope, const ir_buffer *buffer, place *at)
{
    double stride = 1;

    for (int d = buffer->n - 1; d >= 0; d--) {
        at->stride[d] = buffer->strides && at->common < 0 ? tune_value(scope, buffer->strides[d]) : stride;
        stride *= at->shape[d];
    }
}

/* Contiguous elements in the box at a position. For a buffer [8, 16]: the box [4, 16] is one run of 64, the
 * box [4, 8] four runs of 8. A dimension that is not covered ends the run, because the next row begins
 * elsewhere. */
static double run_at(const tune_access *access, const place *at, int dims, int parameter)
{
    double run = 1;

    for (int d = access->buffer->n - 1; d >= 0; d--) {
        double extent = access->extent[d * (dims + 1) + parameter];

        if (extent > 1 && at->stride[d] != run)
            return run;
        run *= extent;
        if (extent < at->shape[d])
            return run;
    }
    return run;
}

/* An element counts once, and no more of them than there are accesses; no more lines than elements. */
static void touch_at(const tune_statement *statement, tune_access *access, const place *at, int parameter)
{
    double elements = 1;

    for (int d = 0; d < access->buffer->n; d++)
        elements *= fmax(1, access->extent[d * (statement->n_loops + 1) + parameter]);
    access->run[parameter] = fmax(1, run_at(access, at, statement->n_loops, parameter));
    access->elements[parameter] = fmin(elements, statement->steps[parameter] * access->count);
    double runs = fmin(elements / access->run[parameter], access->elements[parameter]);
    access->lines[parameter] =
        fmin(runs * ceil(access->run[parameter] * access->bytes / LINE), access->elements[parameter]) * LINE;
}

/* Per loop of the statement: elements touched below it, lines of the cache they lie in, lengths of their
 * runs. */
static void finish_access(tec_context *cx, const tune_statement *statement, tune_access *access,
                          const place *at)
{
    access->elements = base_array(cx, double, statement->n_loops + 1);
    access->lines = base_array(cx, double, statement->n_loops + 1);
    access->run = base_array(cx, double, statement->n_loops + 1);
    access->stride = base_array(cx, double, statement->n_loops + 1);
    access->size = 1;
    for (int d = 0; d < access->buffer->n; d++) {
        access->size *= at->shape[d];
        for (int i = 0; i < statement->n_loops; i++)
            access->stride[i] += access->step[d * (statement->n_loops + 1) + i] * at->stride[d];
    }
    for (int p = 0; p <= statement->n_loops; p++)
        touch_at(statement, access, at, p);
}

/* touched[p]: the bytes of all lines of all accesses, which is what has to fit a cache while the loops from p
 * on run. */
static void finish_statement(tune_scope *scope, tune_statement *statement, base_map *places)
{
    statement->touched = base_array(scope->cx, double, statement->n_loops + 1);
    for (int i = 0; i < statement->n_accesses; i++) {
        tune_access *access = &statement->access[i];
        place *x = base_map_get(places, access->buffer);

        find_strides(scope, access->buffer, x);
        finish_access(scope->cx, statement, access, x);
        for (int p = 0; p <= statement->n_loops; p++)
            statement->touched[p] += access->lines[p];
    }
}

/* Finds the loop inside of which all uses of a temporary buffer lie: its memory is as large as what they
 * touch there, and it is likely to be still in the cache. */
void tune_place_buffers(tune_scope *scope, const ir_program *program, tune_nest *nest)
{
    base_map places = {0};

    place_parameters(scope, program, &places, nest);
    find_common(scope, nest, &places);
    find_shapes(nest, &places);
    for (int i = 0; i < nest->n; i++)
        finish_statement(scope, nest->statement[i], &places);
    for (int i = 0; i < program->n_buffers; i++) {
        const place *x = base_map_get(&places, program->buffers[i]);
        double bytes = base_dtype_bytes(program->buffers[i]->dtype);

        for (int d = 0; x && d < program->buffers[i]->n; d++)
            bytes *= x->shape[d];
        nest->temporaries += x ? bytes : 0;
    }
}
