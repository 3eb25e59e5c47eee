/* tree/padding.c -- whether the blocks that write a buffer write all of it, padding included.
 *
 * A copy of a buffer reads all that lies between its first and its last written element, and a loop that is
 * rounded up reads behind the last one. Both need that no element there is left unwritten:
 *
 *     for i in 0..4 { for j in 0..4 { block P(v = i, w = j) writes P[v, w] } }              P: [8, 8]
 *     for i in 0..4 { for j in 0..4 { block Q(v = i, w = j) writes P[v + 4, w + 4] } }
 *
 *     rows 0..4:  P P . .        P ends at row 4 and column 4, and Q begins there and goes on to the end of
 *     rows 4..8:  . . Q Q        the buffer in both dimensions. Still the two corners are left.
 *
 * So it is not enough to look at each dimension by itself. The blocks are taken away from the buffer one
 * after the other, and nothing may be left:
 *
 *     [0..8, 0..8] less [0..4, 0..4] is [4..8, 0..8] and [0..4, 4..8]: what is behind P in each dimension
 *     [4..8, 0..8] less [4..8, 4..8] is [4..8, 0..4], which no block is left for: padding
 *
 * With the columns of both blocks in 0..8, the first step leaves [4..8, 0..8] alone, and Q takes all of it.
 *
 * What is assumed. Where a block stands in several pieces (after a `cut`), each piece has the block's whole
 * domain though it runs only its part of it, and the pieces together run all of the domain; a step that
 * moves a block keeps what its readers need (schedule/depend.c). A piece may have been given a larger domain
 * than the others, to fill padding in its part. So pieces, which begin at the same element, count as one
 * block whose domain is what they have in common.
 *
 * Elements in front of the first written one do not count: a tensor of a scan that has no first steps begins
 * behind them, and te refuses every other read of such a tensor.
 */
#include "tree/depend.h"
#include "tree/touch.h"

/* Elements from start[d] on, to before end[d]. */
typedef struct {
    const ir_expr **start, **end;
} part;

/* Parts that are written; `boxes` is what may still be looked at before the question is given up. */
typedef struct {
    const tree_view *view;
    const ir_buffer *buffer;
    part *at;
    int n;
    int boxes;
} cover;

enum { MAX_BOXES = 1000 };

static bool is_le(const cover *self, const ir_expr *left, const ir_expr *right)
{
    return ir_prove_le(self->view->facts, left, right);
}

/* ---- what one block writes ---- */

/* The body is a function of others (an opaque block), which is taken at its word: it writes all of its box.
 */
static bool is_foreign(const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_OPAQUE)
            return true;
    return false;
}

static bool mentions_iters(tec_context *cx, const ir_block *block, const ir_expr *expr)
{
    for (int i = 0; i < block->n_iters; i++)
        if (ir_uses_var(cx, expr, block->iters[i].var))
            return true;
    return false;
}

/* The box as it is written down; false where it depends on the instance. */
static bool read_box(const tree_view *view, const ir_block *block, const ir_region *written, part *out)
{
    for (int d = 0; d < written->buffer->n; d++) {
        out->start[d] = written->min[d];
        out->end[d] = ir_add(view->cx, written->min[d], written->extent[d]);
        if (mentions_iters(view->cx, block, out->start[d]) || mentions_iters(view->cx, block, out->end[d]))
            return false;
    }
    return true;
}

/* Stores with one variable in each dimension. */
static void read_plain(const tree_view *view, const ir_block *block, const ir_region *written,
                       const int *dim_of, part *out)
{
    for (int d = 0; d < written->buffer->n; d++) {
        out->start[d] = written->min[d];
        out->end[d] = ir_add(view->cx, written->min[d], ir_int(view->cx, 1));
    }
    for (int i = 0; i < block->n_iters; i++)
        if (dim_of[i] >= 0) {
            int d = dim_of[i];

            out->start[d] = ir_int(view->cx, tree_store_shift(written, d));
            out->end[d] = ir_add(view->cx, block->iters[i].extent, out->start[d]);
        }
}

/* What the block writes over its domain. False where that is no box, or not known: a layout that pads, or a
 * block of blocks. */
static bool read_part(const tree_view *view, const ir_block *block, const ir_region *written, part *out)
{
    int *dim_of = base_array(view->cx, int, block->n_iters), n = written->buffer->n;
    tree_layout layout;

    out->start = base_array(view->cx, const ir_expr *, n);
    out->end = base_array(view->cx, const ir_expr *, n);
    for (int d = 0; d < n; d++)
        if (!ir_is_value(written->extent[d], 1))
            return is_foreign(block) && read_box(view, block, written, out);
    if (tree_store_dims(view, block, written, dim_of)) {
        read_plain(view, block, written, dim_of, out);
        return true;
    }
    for (int d = 0; d < n; d++) {
        out->start[d] = ir_int(view->cx, 0);
        out->end[d] = written->buffer->shape[d];
    }
    return tree_invert_store(view, block, written, &layout) && !tree_is_padded(view, block, &layout);
}

/* ---- what all of them write ---- */

static bool begin_alike(const cover *self, const part *left, const part *right)
{
    for (int d = 0; d < self->buffer->n; d++)
        if (!ir_prove_equal(self->view->facts, left->start[d], right->start[d]))
            return false;
    return true;
}

/* What two pieces have in common, in `into`; false where it is not known which of them ends first. */
static bool keep_common(const cover *self, part *into, const part *other)
{
    for (int d = 0; d < self->buffer->n; d++) {
        if (is_le(self, into->end[d], other->end[d]))
            continue;
        if (!is_le(self, other->end[d], into->end[d]))
            return false;
        into->end[d] = other->end[d];
    }
    return true;
}

static bool add_part(cover *self, const part *written)
{
    for (int i = 0; i < self->n; i++)
        if (begin_alike(self, &self->at[i], written))
            return keep_common(self, &self->at[i], written);
    self->at[self->n++] = *written;
    return true;
}

/* Where no part begins earlier in this dimension; 0 if that is not known. */
static const ir_expr *first_start(const cover *self, int d)
{
    for (int i = 0; i < self->n; i++) {
        bool first = true;

        for (int k = 0; first && k < self->n; k++)
            first = is_le(self, self->at[i].start[d], self->at[k].start[d]);
        if (first)
            return self->at[i].start[d];
    }
    return ir_int(self->view->cx, 0);
}

/* The bounds of the part are known to lie within the box or beyond its ends. */
static bool cuts(const cover *self, const part *cut, const part *box)
{
    for (int d = 0; d < self->buffer->n; d++) {
        const ir_expr *low = box->start[d], *high = box->end[d];
        bool front = is_le(self, cut->start[d], low) ||
                     (is_le(self, low, cut->start[d]) && is_le(self, cut->start[d], high)),
             back = is_le(self, high, cut->end[d]) ||
                    (is_le(self, low, cut->end[d]) && is_le(self, cut->end[d], high));

        if (!front || !back)
            return false;
    }
    return true;
}

static part copy_part(const cover *self, const part *box)
{
    size_t size = (size_t)self->buffer->n * sizeof *box->start;

    return (part){base_copy(self->view->cx, box->start, size), base_copy(self->view->cx, box->end, size)};
}

static bool is_covered(cover *self, const part *box, int next);

/* The box less part number `next`: in one dimension after the other, what lies in front of the part and what
 * lies behind it must be covered by the parts that follow. What is left in the end lies in the part. */
static bool is_rest_covered(cover *self, const part *box, int next)
{
    const part *cut = &self->at[next];
    part left = copy_part(self, box);

    for (int d = 0; d < self->buffer->n; d++) {
        part front = copy_part(self, &left), back = copy_part(self, &left);

        if (!is_le(self, cut->start[d], left.start[d])) {
            left.start[d] = back.start[d] = cut->start[d];
            front.end[d] = cut->start[d];
            if (!is_covered(self, &front, next + 1))
                return false;
        }
        if (!is_le(self, left.end[d], cut->end[d])) {
            left.end[d] = back.start[d] = cut->end[d];
            if (!is_covered(self, &back, next + 1))
                return false;
        }
    }
    return true;
}

/* Every element of the box lies in one of the parts from number `next` on. A part whose bounds cannot be
 * compared with those of the box takes nothing away. */
static bool is_covered(cover *self, const part *box, int next)
{
    for (int d = 0; d < self->buffer->n; d++)
        if (is_le(self, box->end[d], box->start[d]))
            return true;
    if (next == self->n || self->boxes-- == 0)
        return false;
    return cuts(self, &self->at[next], box) ? is_rest_covered(self, box, next)
                                            : is_covered(self, box, next + 1);
}

/* The site has run, in part at least, when the reader begins: it comes before it, or in an earlier iteration
 * of a loop around both. */
static bool is_in_time(const tree_site *site, const tree_site *reader)
{
    return !reader || site->order < reader->order || tree_common_loops(site, reader) > 0;
}

/* The parts that are written must cover the box from the first written element to the end of the buffer. */
bool tree_leaves_padding(const tree_view *view, const ir_stmt *root, const ir_buffer *buffer,
                         const char *reader)
{
    tree_sites all = tree_all_sites(view->cx, root);
    const tree_site *asks = reader ? tree_site_named(&all, reader) : NULL;
    cover self = {
        .view = view, .buffer = buffer, .at = base_array(view->cx, part, all.n), .boxes = MAX_BOXES};

    for (int i = 0; i < all.n; i++) {
        const ir_block *block = all.at[i].block;
        const ir_region *written = tree_access(block->writes, block->n_writes, buffer);
        part one;

        if (written && (block->init || !tree_combiner(block)) && is_in_time(&all.at[i], asks) &&
            (!read_part(view, block, written, &one) || !add_part(&self, &one)))
            return true;
    }
    if (!self.n)
        return false;
    part whole = {base_array(view->cx, const ir_expr *, buffer->n),
                  base_array(view->cx, const ir_expr *, buffer->n)};
    for (int d = 0; d < buffer->n; d++) {
        whole.start[d] = first_start(&self, d);
        whole.end[d] = buffer->shape[d];
    }
    return !is_covered(&self, &whole, 0);
}
