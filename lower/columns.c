/* lower/columns.c -- a column of a square of a local buffer is shuffled together from rows.
 *
 *     B[ramp(j, 1, 4)] = T[ramp(1, 4, 4)]       =>       B[ramp(j, 1, 4)] = column 1 of
 *                                                            T[ramp(0, 1, 4)], T[ramp(4, 1, 4)],
 *                                                            T[ramp(8, 1, 4)], T[ramp(12, 1, 4)]
 *
 * requires  flat buffers, no vectorised or unrolled loop
 * provides  no load of a local buffer gathers a column of a square whose side is a power of two, at most 16
 * breaks    nothing
 *
 * All columns of a square come from log2(n) rounds over its n rows. A round interleaves row i with row
 * i + n/2, lanes of the lower halves to row 2i and lanes of the upper halves to row 2i + 1:
 *
 *     a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
 *     b0 b1 b2 b3  =>  a2 c2 a3 c3  =>  a1 b1 c1 d1
 *     c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
 *     d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
 *
 * With the bits of a row's number in front of those of a lane's, a round rotates the number of each element
 * by one bit, so that log2(n) rounds exchange row and lane. Each load of a column is written with all the
 * shuffles that it needs, 15 for 16 rows; what columns have in common is computed once after lower/share.c
 * and in LLVM: 64 shuffles of two vectors for 16 columns, where gathers took 256 loads. With the loads of
 * rows the buffer has contiguous accesses alone, and lower/promote.c makes registers of it.
 */
#include "lower/cells.h"

enum { LEAST_SIDE = 4, MOST_SIDE = 16 };

/* The square of n rows, `stride` elements apart, in which a load reads lane `lane` of each. */
typedef struct {
    tec_context *cx;
    const ir_buffer *buffer;
    int64_t first, stride;
    int n, lane, used; /* rows from `used` on are under the mask, and count as zeros */
} square;

/* Whether the load, of a constant place in a local buffer, is a column of a square. The rows need not be
 * neighbours, but each begins at a multiple of its length. */
static bool is_column(tec_context *cx, const ir_expr *load, square *out)
{
    const ir_expr *index = load->load.index[0];
    int n = index->dtype.lanes;
    int64_t at;

    *out = (square){.cx = cx, .buffer = load->load.buffer, .n = n};
    out->used = lower_lanes_left(load->load.mask, n);
    if (load->load.buffer->scope != IR_LOCAL || (load->load.mask && out->used == n) || index->op != IR_RAMP ||
        !ir_is_int(index->ramp.base, &at) || !ir_is_int(index->ramp.stride, &out->stride))
        return false;
    if (n < LEAST_SIDE || n > MOST_SIDE || (n & (n - 1)) != 0 || at < 0 || out->stride < n ||
        out->stride % n != 0)
        return false;
    out->first = at / n * n;
    out->lane = (int)(at % n);
    return out->first + (out->used - 1) * out->stride + n <= lower_constant_elements(out->buffer);
}

/* Row `row` after so many rounds. */
static const ir_expr *row_after(const square *self, int rounds, int row)
{
    tec_context *cx = self->cx;
    int pick[MOST_SIDE], n = self->n;

    if (rounds == 0 && row >= self->used)
        return ir_imm(cx, base_dtype_lanes(self->buffer->dtype, n), 0);
    if (rounds == 0) {
        const ir_expr *at = ir_ramp(cx, ir_int(cx, self->first + row * self->stride), ir_int(cx, 1), n);

        return ir_load(cx, self->buffer, &at, 1);
    }
    const ir_expr *pair[] = {row_after(self, rounds - 1, row / 2),
                             row_after(self, rounds - 1, row / 2 + n / 2)};
    for (int i = 0; i < n; i++)
        pick[i] = i % 2 * n + row % 2 * (n / 2) + i / 2;
    return ir_shuffle(cx, pair, 2, pick, n);
}

static const ir_expr *visit(ir_rewrite *rw, const ir_expr *expr)
{
    square s;
    int rounds = 0;

    expr = ir_rewrite_children(rw, expr);
    if (!expr || expr->op != IR_LOAD || !is_column(rw->cx, expr, &s))
        return expr;
    ir_at(rw->cx, expr->loc);
    while (1 << rounds < s.n)
        rounds++;
    return row_after(&s, rounds, s.lane);
}

const ir_program *lower_columns(const lower_options *options, const ir_program *program)
{
    ir_rewrite rw = {.cx = options->cx, .expr = visit, .kinds = IR_KIND_ACCESS};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&rw, program->body));
}
