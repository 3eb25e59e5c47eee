/* lower/prefetch.c -- loops that ask for what they read later (the schedule's prefetch) get the statements
 * that do.
 *
 *     for y in 0..64 @prefetch.A(2) {         for y in 0..64 {
 *       for x in 0..32 { .. A[y, x] .. }  =>    if y + 2 < 64 { for line in 0..2 { prefetch(&A[y + 2,
 *                                                 line*16], 3) } }
 *     }                                         for x in 0..32 { .. A[y, x] .. }
 *                                             }
 *
 * requires  no block is left; loops are cut where they will be
 * provides  no note of prefetch is left
 * breaks    nothing
 *
 * What an iteration reads is a box (ir_touched); one element of each cache line of its last dimension is
 * asked for. Where the rows of the box are whole rows of the buffer, they lie side by side, and one request
 * for several lines may be enough (bytes_apart). The box may reach over the buffer; what lies inside counts.
 * A buffer that no longer is what the loop reads from is left alone: it is a hint.
 */
#include <string.h>

#include "ir/region/region.h"
#include "lower/util.h"

/* written out: beside few multiply-adds the counting of a loop over lines costs more than the requests do */
enum { LINE = 64, KEEP = 3, WRITTEN_OUT = 16 };

static const char prefix[] = "prefetch.";

typedef struct {
    tec_context *cx;
    const target *target;
    base_vec intrinsics; /* one for each dtype: the meaning has operands of that */
} prefetcher;

/* ---- the intrinsic ---- */

/* prefetch.N(a: dtype[1], locality) does nothing to values; the numbers tell the dtypes apart. One intrinsic
 * for each dtype that is prefetched, listed in the program when it is first needed. */
static const ir_intrinsic *intrinsic_for(prefetcher *self, base_dtype dtype)
{
    const ir_expr *one = ir_int(self->cx, 1);

    for (int i = 0; i < self->intrinsics.n; i++) {
        const ir_intrinsic *in = self->intrinsics.at[i];
        if (base_dtype_same(in->meaning->params[0].buffer->dtype, dtype))
            return in;
    }
    ir_program *meaning = base_new(self->cx, ir_program);
    ir_param *param = base_array(self->cx, ir_param, 2);
    ir_intrinsic *in = base_new(self->cx, ir_intrinsic);

    param[0].buffer = ir_buffer_new(self->cx, "a", dtype, &one, 1);
    param[1].scalar = ir_var(self->cx, "locality", BASE_I64);
    meaning->name = in->name = base_format(self->cx, "prefetch.%d", self->intrinsics.n);
    meaning->params = param;
    meaning->n_params = 2;
    meaning->body = ir_nothing(self->cx);
    in->meaning = meaning;
    base_push(self->cx, &self->intrinsics, in);
    return in;
}

/* ---- one box ---- */

/* The number of the element in memory: strides as given, or dense with the last dimension innermost. */
static const ir_expr *element(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index)
{
    const ir_expr *at = ir_int(cx, 0), *stride = ir_int(cx, 1);

    for (int d = buffer->n - 1; d >= 0; d--) {
        at = ir_add(cx, at, ir_mul(cx, index[d], buffer->strides ? buffer->strides[d] : stride));
        stride = ir_mul(cx, stride, buffer->shape[d]);
    }
    return at;
}

/* What lies in the buffer of min .. min+extent-1, in a dimension of that many elements: a box may reach over
 * the edge, and of an index that was loaded nothing but its type may be known. */
static void clip(const ir_facts *facts, const ir_expr *shape, const ir_expr **min, const ir_expr **extent)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *end;

    if (BASE_PLANT_ON(cx, prefetch_outside))
        return;
    end = ir_simplify(facts, ir_min(cx, ir_add(cx, *min, *extent), shape));
    *min = ir_simplify(facts, ir_max(cx, *min, ir_int(cx, 0)));
    *extent = lower_extent(facts, *min, end);
}

/* What is read of a buffer `of`: a box of `of` itself, or of a buffer of one dimension that stands for its
 * memory. */
typedef struct {
    const ir_buffer *of;
    const ir_region *box;
} reading;

/* Bytes from one request to the next. What an iteration reads is asked for line by line where it is less than
 * two wide requests bring: other operands pass between such pieces, and the CPU sees no run. BERT, whose
 * products of unknown length read two lines a step, takes 1.09 to 1.10 of the time with one request for both.
 */
static int64_t bytes_apart(const prefetcher *self, const ir_region *box)
{
    const ir_buffer *buffer = box->buffer;
    int last = buffer->n - 1;
    int64_t min, extent, apart = (int64_t)LINE * self->target->lines_fetched;
    bool whole = last > 0 && !buffer->strides && ir_is_int(box->min[last], &min) && min == 0 &&
                 ir_is_int(box->extent[last], &extent) && ir_same(box->extent[last], buffer->shape[last]);

    return whole && extent >= 2 * apart / base_dtype_bytes(buffer->dtype) ? apart : LINE;
}

/* Loops over the lines of the box with loop variable `var` at `later`. Rows by loops over the outer
 * dimensions, lines by steps in the last one. The bounds are those of the iteration `later`, so they are
 * substituted before they are clipped to the buffer. */
static const ir_stmt *ask_for(prefetcher *self, const ir_facts *facts, const reading *what,
                              const ir_expr *var, const ir_expr *later)
{
    tec_context *cx = self->cx;
    const ir_region *box = what->box;
    const ir_buffer *buffer = box->buffer;
    const ir_expr **index = base_array(cx, const ir_expr *, buffer->n),
                  **loop = base_array(cx, const ir_expr *, buffer->n),
                  **lines = base_array(cx, const ir_expr *, buffer->n);
    int64_t per_line = bytes_apart(self, box) / base_dtype_bytes(buffer->dtype);

    for (int d = 0; d < buffer->n; d++) {
        const ir_expr *by = ir_int(cx, d == buffer->n - 1 && per_line > 1 ? per_line : 1),
                      *min = ir_substitute(cx, box->min[d], var, later),
                      *extent = ir_substitute(cx, box->extent[d], var, later);

        clip(facts, buffer->shape[d], &min, &extent);
        loop[d] = ir_var(cx, d == buffer->n - 1 ? "line" : "row", BASE_I64);
        lines[d] = ir_simplify(facts, ir_ceildiv(cx, extent, by));
        index[d] = ir_add(cx, min, ir_mul(cx, loop[d], by));
    }
    const ir_expr *arg[] = {element(cx, buffer, index), ir_int(cx, KEEP)};
    const ir_intrinsic *in = intrinsic_for(self, buffer->dtype);
    const ir_stmt *stmt = ir_evaluate(cx, ir_call(cx, BASE_I32, in->name, in, arg, 2, &what->of, 1, false));
    int64_t asked = 1, n;

    for (int d = buffer->n - 1; d >= 0; d--) {
        asked = ir_is_int(lines[d], &n) && n > 0 && n <= WRITTEN_OUT / asked ? asked * n : WRITTEN_OUT + 1;
        stmt = ir_for(cx, loop[d], ir_int(cx, 0), lines[d], asked <= WRITTEN_OUT ? IR_UNROLLED : IR_SERIAL,
                      stmt);
    }
    return stmt;
}

/* ---- loops ---- */

/* NULL also where the box depends on data: which element a later iteration reads is not known before it
 * loads it. */
static const ir_region *read_of(const base_vec *reads, const char *name)
{
    for (int i = 0; i < reads->n; i++) {
        const ir_region *region = reads->at[i];
        bool loads = false;

        for (int d = 0; d < region->buffer->n; d++)
            loads = loads || (region->min[d]->has & IR_HAS_LOAD) || (region->extent[d]->has & IR_HAS_LOAD);
        if (strcmp(region->buffer->name, name) == 0)
            return loads || region->buffer->n == 0 ? NULL : region;
    }
    return NULL;
}

typedef struct {
    ir_rewrite rw;
    const char *name;
    const ir_buffer *of, *memory; /* NULL so far: no call reads the buffer */
} operand_finder;

/* The elements of an operand that lie next to each other; 0: they do not, or their number is not constant. */
static int64_t count_elements(const ir_buffer *param)
{
    int64_t n = 1, extent;

    for (int d = 0; d < param->n; d++)
        n = ir_is_int(param->shape[d], &extent) ? n * extent : 0;
    return param->strides ? 0 : n;
}

/* The first and the last element that the operand is, as loads from memory. */
static const ir_expr *load_ends(operand_finder *self, const ir_buffer *of, const ir_buffer *param,
                                const ir_expr *offset)
{
    tec_context *cx = self->rw.cx;
    int64_t n = count_elements(param);
    const ir_expr *size = ir_int(cx, 1), *last = ir_add(cx, offset, ir_int(cx, n - 1));

    for (int d = 0; d < of->n; d++)
        size = ir_mul(cx, size, of->shape[d]);
    if (n < 1 || of->strides)
        return NULL;
    if (!self->memory)
        self->memory = ir_buffer_new(cx, of->name, of->dtype, &size, 1);
    self->of = of;
    return ir_add(cx, ir_load(cx, self->memory, &offset, 1), ir_load(cx, self->memory, &last, 1));
}

/* An operand of a call is elements from an offset on, whatever dimensions its buffer has. */
static const ir_expr *show_operand(ir_rewrite *rw, const ir_expr *expr)
{
    operand_finder *self = (operand_finder *)rw;
    const ir_program *meaning =
        expr->op == IR_CALL && expr->call.intrinsic ? expr->call.intrinsic->meaning : NULL;

    for (int i = 0, n = 0; meaning && i < meaning->n_params && n < expr->call.n_buffers; i++) {
        const ir_buffer *param = meaning->params[i].buffer;
        const ir_expr *ends = param && base_same(expr->call.buffer[n]->name, self->name)
                                  ? load_ends(self, expr->call.buffer[n], param, expr->call.arg[i])
                                  : NULL;

        if (ends)
            return ends;
        n += param != NULL;
    }
    return ir_rewrite_children(rw, expr);
}

/* What the body reads of the named buffer. The box of a tensorized body's operands is one of memory, where a
 * box of the buffer would be all of it. A buffer of that name inside of the loop is another one. */
static bool find_reading(prefetcher *self, const ir_facts *inside, const ir_stmt *body, const char *name,
                         reading *out)
{
    operand_finder o = {.rw = {.cx = self->cx, .expr = show_operand}, .name = name};
    base_vec reads = {0}, operands = {0}, writes = {0};

    ir_touched(inside, body, &reads, &writes);
    out->box = read_of(&reads, name);
    const ir_stmt *shown = out->box ? ir_rewrite_stmt(&o.rw, body) : NULL;
    out->of = out->box ? out->box->buffer : NULL;
    if (!shown || o.of != out->of)
        return out->box != NULL;
    ir_touched(inside, shown, &operands, &writes);
    out->box = read_of(&operands, name);
    return out->box != NULL;
}

static const ir_stmt *without_notes(tec_context *cx, const ir_stmt *loop, const ir_stmt *body)
{
    ir_stmt *out = ir_stmt_copy(cx, loop);

    out->loop.body = body;
    out->loop.notes = NULL;
    for (const ir_note *note = loop->loop.notes; note; note = note->next)
        if (!base_starts_with(note->key, prefix))
            out->loop.notes = ir_note_set(cx, out->loop.notes, note->key, note->value);
    return out;
}

/* A hint is not worth a division by zero: where the box cannot be computed in any case, nothing is asked
 * for. */
static bool is_safe(const ir_facts *facts, const ir_region *box)
{
    for (int d = 0; d < box->buffer->n; d++)
        if (lower_may_fail(facts, box->min[d]) || lower_may_fail(facts, box->extent[d]))
            return false;
    return true;
}

/* The statements stand in front of the body, under the condition that the iteration exists. */
static const ir_stmt *visit_loop(prefetcher *self, const ir_facts *facts, const ir_stmt *loop,
                                 const ir_stmt *body)
{
    tec_context *cx = self->cx;
    const ir_facts *inside = lower_inside(facts, loop);
    const ir_expr *end = ir_add(cx, loop->loop.min, loop->loop.extent);
    const ir_stmt *all = body;
    bool any = false;

    for (const ir_note *note = loop->loop.notes; note; note = note->next)
        any = any || base_starts_with(note->key, prefix);
    if (!any)
        return lower_with_inner(cx, loop, body);
    for (const ir_note *note = loop->loop.notes; note; note = note->next) {
        reading what;

        if (!base_starts_with(note->key, prefix) ||
            !find_reading(self, inside, all, note->key + strlen(prefix), &what) || !is_safe(inside, what.box))
            continue;
        const ir_expr *later = ir_add(cx, loop->loop.var, note->value), *runs = ir_lt(cx, later, end);
        ir_facts *there = ir_facts_new(cx, inside);
        ir_facts_assume(there, runs);
        body = ir_seq2(cx, ir_if(cx, runs, ask_for(self, there, &what, loop->loop.var, later), NULL), body);
    }
    return without_notes(cx, loop, body);
}

/* The body first: the region that the loop reads is that of what stands inside now. */
static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_stmt *out = lower_visit_children(facts, stmt, visit, user);

    return out && stmt->kind == IR_FOR ? visit_loop(user, facts, stmt, out->loop.body) : out;
}

static const ir_program *with_intrinsics(prefetcher *self, const ir_program *program)
{
    ir_program *out = ir_program_copy(self->cx, program);
    base_vec all = {0};

    for (int i = 0; i < program->n_intrinsics; i++)
        base_push(self->cx, &all, program->intrinsics[i]);
    for (int i = 0; i < self->intrinsics.n; i++)
        base_push(self->cx, &all, self->intrinsics.at[i]);
    out->intrinsics = (const ir_intrinsic *const *)all.at;
    out->n_intrinsics = all.n;
    return out;
}

const ir_program *lower_prefetch(const lower_options *options, const ir_program *program)
{
    prefetcher p = {.cx = options->cx, .target = options->target};
    const ir_program *out = lower_with_body(
        options->cx, program, visit(&p, ir_facts_of_program(options->cx, program), program->body));

    return out && p.intrinsics.n ? with_intrinsics(&p, out) : out;
}
