/* targets/source/instruction.c -- instructions that several threads do together, and the registers they work
 * on.
 *
 * In the program every thread of the group has the whole of an operand in local memory, a *fragment*: all of
 * them hold the same values, since nothing but instructions of the group writes there. In the text each
 * thread has its share of the elements, in registers; which elements these are is known to the instructions
 * alone.
 *
 *     allocate C: f32[256] @local                             uint C[8];             // 256 for 32 threads
 *     evaluate call<i32> mma(&A, &B, &C, 0, 0, 128, ...)  =>  tec_mma_f16(&A[0], &B[0], &C[4]);
 *
 * A fragment consists of tiles: an operand of an instruction is one of them. Tiles of 16 x 8 in a fragment
 * with rows of 16 elements: the tile at element 8 is the second one of the first row. A tile of 128 elements
 * of f32 is 4 words of each of 32 threads.
 *
 * That all threads of the group come to an instruction together is checked here: the launch has as many
 * threads along x as the group has, and no loop over x is around.
 */
#include "ir/intrinsic.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "targets/source/printer.h"

enum { WORD = 4 };

/* ---- which buffers are fragments ---- */

typedef struct {
    ir_walk walk;
    source_printer *p;
} finder;

static bool find_fragments(ir_walk *walk, const ir_expr *expr)
{
    source_printer *p = ((finder *)walk)->p;
    int group = 1;

    if (expr->op != IR_CALL || !expr->call.intrinsic ||
        !ir_intrinsic_instruction(p->cx, expr->call.intrinsic, &group) || group == 1)
        return true;
    for (int i = 0; i < expr->call.n_buffers; i++)
        if (expr->call.buffer[i]->scope == IR_LOCAL)
            base_map_put(p->cx, &p->fragments, expr->call.buffer[i], (void *)(intptr_t)group);
    return true;
}

void source_find_fragments(source_printer *printer, const ir_stmt *stmt)
{
    finder f = {.walk = {.cx = printer->cx, .expr = find_fragments}, .p = printer};

    ir_walk_stmt(&f.walk, stmt);
}

int source_fragment(const source_printer *printer, const ir_buffer *buffer)
{
    return (int)(intptr_t)base_map_get(&printer->fragments, buffer);
}

bool source_is_plain(source_printer *printer, const ir_buffer *buffer, base_loc loc)
{
    if (!source_fragment(printer, buffer))
        return true;
    base_fail(printer->cx, TEC_UNSUPPORTED, loc,
              "'%s' lies in the registers of %d threads, where instructions of these alone read and write it",
              buffer->name, source_fragment(printer, buffer));
    return false;
}

int64_t source_fragment_words(source_printer *printer, const ir_buffer *buffer, int64_t elements)
{
    int64_t bytes = elements * base_dtype_bytes(buffer->dtype), all = WORD * source_fragment(printer, buffer);

    if (bytes % all == 0)
        return bytes / all;
    base_fail(printer->cx, TEC_UNSUPPORTED, buffer->loc,
              "'%s' holds %lld bytes, which %d threads cannot share in whole words", buffer->name,
              (long long)bytes, source_fragment(printer, buffer));
    return 0;
}

/* ---- operands ---- */

/* The call under way. */
typedef struct {
    source_printer *p;
    const ir_expr *call;
    const ir_program *meaning;
    ir_subst values; /* what the call gives for symbols, scalars and strides */
} instruction;

/* The distance of the elements of an operand along its dimension d; -1: no constant. */
static int64_t stride_of(instruction *self, const ir_buffer *param, int d)
{
    int64_t stride = 1, extent;

    if (param->strides)
        return ir_is_int(ir_apply(self->p->cx, &self->values, param->strides[d]), &stride) ? stride : -1;
    for (int i = param->n - 1; i > d; i--)
        stride *= ir_is_int(param->shape[i], &extent) ? extent : -1;
    return stride;
}

/* A tile as rows of elements that lie next to each other: a contiguous one is one row. */
typedef struct {
    int64_t rows, columns, distance; /* of rows */
} tile;

/* The innermost dimensions that lie next to each other make the columns; one more dimension, of any distance,
 * may be the rows. False: strides are no constants, or the tile has another form. */
static bool tile_of(instruction *self, const ir_buffer *param, tile *out)
{
    int64_t extent;

    *out = (tile){1, 1, 0};
    for (int d = param->n - 1; d >= 0; d--) {
        int64_t stride = stride_of(self, param, d);

        if (!ir_is_int(param->shape[d], &extent) || extent < 1 || stride < 1)
            return false;
        if (out->rows == 1 && stride == out->columns)
            out->columns *= extent;
        else if (d == 0 && stride % out->columns == 0)
            *out = (tile){extent, out->columns, stride};
        else
            return false;
    }
    out->distance = out->rows == 1 ? out->columns : out->distance;
    return true;
}

/* Whether the operand begins where a tile begins. */
static bool is_aligned(instruction *self, const ir_expr *at, const tile *t)
{
    tec_context *cx = self->p->cx;
    ir_modular m = ir_modulus(self->p->facts, at);
    const ir_expr *line = ir_floordiv(cx, at, ir_int(cx, t->distance));

    return m.coefficient % t->columns == 0 && m.base % t->columns == 0 &&
           ir_prove_equal(self->p->facts, ir_floormod(cx, line, ir_int(cx, t->rows)), ir_int(cx, 0));
}

/* "&C[4]": where this thread's share of the tile at element `at` begins. */
static const char *fragment_operand(instruction *self, const ir_buffer *param, const ir_buffer *buffer,
                                    const ir_expr *at)
{
    tec_context *cx = self->p->cx;
    tile t;

    if (!tile_of(self, param, &t) || !is_aligned(self, at, &t)) {
        base_fail(cx, TEC_UNSUPPORTED, self->call->loc,
                  "the operand '%s' of '%s' at '%s' is not proven to be one of the tiles that its fragment "
                  "consists of",
                  buffer->name, self->call->call.name, ir_expr_text(cx, at));
        return NULL;
    }
    int64_t words = source_fragment_words(self->p, buffer, t.rows * t.columns);
    const ir_expr *down = ir_floordiv(cx, at, ir_int(cx, t.distance * t.rows)),
                  *along =
                      ir_floordiv(cx, ir_floormod(cx, at, ir_int(cx, t.distance)), ir_int(cx, t.columns));
    const ir_expr *number = ir_add(cx, ir_mul(cx, down, ir_int(cx, t.distance / t.columns)), along);
    number = BASE_PLANT_ON(cx, source_tile) ? ir_int(cx, 0) : number;
    const ir_expr *first = ir_simplify(self->p->facts, ir_mul(cx, number, ir_int(cx, words)));
    const char *index = first ? source_expr(self->p, first, SOURCE_ANY) : NULL;

    return index ? base_format(cx, "&%s[%s]", source_name_of(self->p, buffer), index) : NULL;
}

/* An operand that has to be aligned has all its rows at such addresses. */
static bool rows_are_aligned(instruction *self, const ir_buffer *param, const ir_buffer *buffer,
                             const ir_expr *stride)
{
    int bytes = base_dtype_bytes(buffer->dtype);
    ir_modular m = ir_modulus(self->p->facts, ir_mul(self->p->cx, stride, ir_int(self->p->cx, bytes)));

    if (!param->align || (m.coefficient % param->align == 0 && m.base % param->align == 0))
        return true;
    base_fail(
        self->p->cx, TEC_UNSUPPORTED, self->call->loc,
        "the rows of '%s' are '%s' elements apart, which is no multiple of the %d bytes that '%s' wants",
        buffer->name, ir_expr_text(self->p->cx, stride), param->align, self->call->call.name);
    return false;
}

/* "&A[i], 64": the address of the first element, and those strides that the instruction leaves open. */
static const char *memory_operand(instruction *self, const ir_buffer *param, const ir_buffer *buffer,
                                  const ir_expr *at)
{
    tec_context *cx = self->p->cx;
    const char *index = source_expr(self->p, at, SOURCE_ANY);
    base_text text = {0};

    if (!index)
        return NULL;
    base_addf(cx, &text, "&%s[%s]", source_name_of(self->p, buffer), index);
    for (int d = 0; param->strides && d < param->n; d++) {
        const ir_expr *stride =
            param->strides[d]->op == IR_VAR ? ir_apply(cx, &self->values, param->strides[d]) : NULL;
        const char *words = stride ? source_expr(self->p, stride, SOURCE_ANY) : NULL;

        if (stride && (!words || !rows_are_aligned(self, param, buffer, stride)))
            return NULL;
        if (stride)
            base_addf(cx, &text, ", %s", words);
    }
    return base_text_str(cx, &text);
}

/* Addresses and open strides of all operands, in the order of the meaning's parameters. */
static const char *operands(instruction *self)
{
    tec_context *cx = self->p->cx;
    base_text text = {0};

    for (int i = 0; i < self->call->call.n_buffers; i++) {
        int k = BASE_PLANT_ON(cx, source_operands) && i < 2 && self->call->call.n_buffers > 2 ? 1 - i : i;
        const ir_buffer *buffer = self->call->call.buffer[k], *param = self->meaning->params[k].buffer;
        const ir_expr *at = self->call->call.arg[k];
        const char *one = source_fragment(self->p, buffer) ? fragment_operand(self, param, buffer, at)
                                                           : memory_operand(self, param, buffer, at);

        if (!one)
            return NULL;
        base_addf(cx, &text, i ? ", %s" : "%s", one);
    }
    return base_text_str(cx, &text);
}

/* ---- the call ---- */

/* Whether the threads of the group, and no others, come to this place together. */
static bool come_together(source_printer *printer, const ir_stmt *stmt, int group)
{
    const char *name = stmt->value->call.name;

    if (group > 1 && printer->axis[IR_THREAD_X] != group)
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc,
                  "'%s' is done by %d threads together, and the launch has %lld along x", name, group,
                  (long long)printer->axis[IR_THREAD_X]);
    else if (group > 1 && printer->along_x)
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc,
                  "'%s' is done by %d threads together, and stands in the loop '%s' over %s", name, group,
                  printer->along_x->var.name, ir_how_text(IR_THREAD_X));
    return !base_failed(printer->cx);
}

bool source_is_instruction(source_printer *printer, const ir_stmt *stmt, int *group)
{
    const ir_expr *expr = stmt->kind == IR_EVALUATE ? stmt->value : NULL;

    return expr && expr->op == IR_CALL && expr->call.intrinsic &&
           ir_intrinsic_instruction(printer->cx, expr->call.intrinsic, group);
}

/* The operands by address, in the order of the meaning's parameters. */
void source_instruction(source_printer *printer, const ir_stmt *stmt)
{
    const ir_expr *call = stmt->value;
    instruction self = {.p = printer, .call = call, .meaning = call->call.intrinsic->meaning};
    const char *text;
    int group, known = printer->n_known;

    if (!printer->d->has_instructions) {
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc, "'%s' has no words in %s", call->call.name,
                  printer->d->what);
        return;
    }
    const char *name = ir_intrinsic_instruction(printer->cx, call->call.intrinsic, &group);
    if (!come_together(printer, stmt, group))
        return;
    for (int i = call->call.n_buffers; i < call->call.n; i++)
        base_map_put(printer->cx, &self.values.vars, self.meaning->params[i].scalar,
                     (void *)call->call.arg[i]);
    source_forget(printer);
    for (int i = 0; i < call->call.n_buffers; i++)
        source_count(printer, call->call.arg[i]);
    text = operands(&self);
    source_forget(printer);
    printer->n_known = known;
    if (text)
        source_line(printer, "%s(%s);", name, text);
}
