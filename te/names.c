/* te/names.c -- the names of axes: each axis keeps the name that it was made with, unless the text of the
 * stage would then mean something else.
 *
 *     axes i of extent n and n of extent m, body A[i, n] + n:     C[i: n, n'2: m] = A[i, n'2] + n
 *
 * In the text of a stage, an axis hides the symbols and scalars of its name in all that follows it: in the
 * extents of the axes behind it and in the bodies, but not in its own extent. An axis gets another name,
 * n'2, n'3, ..., where
 *
 * - a symbol or scalar of its name is mentioned in what follows it: above, `n` in the body would be the axis;
 * - an earlier axis of the stage has the name, since the parser refuses two axes of one name.
 *
 * Read again, such a text has no axis that needs another name: the names that it was printed with are all
 * different and hide nothing. So the names stay the same from then on.
 */
#include "te/names.h"

#include "ir/text.h"
#include "ir/walk.h"

/* Names that an axis cannot have. */
typedef struct {
    tec_context *cx;
    base_dict earlier; /* of the axes before it, */
    base_dict body;    /* and of the symbols and scalars that the bodies mention, */
    base_dict behind;  /* and the extents of the axes behind it */
} naming;

/* Adds the names of the symbols and scalars in an expression; all other variables are axes. */
static void mention(tec_context *cx, base_dict *names, const ir_expr *expr)
{
    base_vec vars = {0};

    if (!expr)
        return;
    ir_free_vars(cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!te_axis_extent(vars.at[i]))
            base_dict_put(cx, names, ir_expr_text(cx, vars.at[i]), vars.at[i]);
}

static void mention_all(tec_context *cx, base_dict *names, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        mention(cx, names, expr[i]);
}

/* The text of the variable is its name, or a similar name that the parser reads. */
static const char *name_axis(naming *self, const ir_expr *axis)
{
    const char *wanted = ir_expr_text(self->cx, axis), *name = wanted;

    for (int k = 2; base_dict_has(&self->earlier, name) || base_dict_has(&self->body, name) ||
                    base_dict_has(&self->behind, name);
         k++)
        name = base_format(self->cx, "%s'%d", wanted, k);
    base_dict_put(self->cx, &self->earlier, name, axis);
    return name;
}

/* Names the axes from `first` on; those before it have their names. */
static void name_axes(naming *self, const ir_expr *const *axis, const ir_expr *const *extent, int first,
                      int count, const char **out)
{
    for (int i = first; i < count; i++) {
        self->behind = (base_dict){0};
        mention_all(self->cx, &self->behind, extent + i + 1, count - i - 1);
        out[i] = name_axis(self, axis[i]);
    }
}

/* The time stands in front of everything that belongs to the scan, first steps included. The first axes there
 * are the time again, or have a number as their extent. */
const char *te_time_name(tec_context *cx, const te_scan *scan)
{
    naming self = {.cx = cx};

    for (int i = 0; i < scan->steps.n; i++)
        for (const te_stage *stage = scan->steps.at[i]; stage; stage = stage->init) {
            mention_all(cx, &self.body, stage->extent + 1, stage->n_axes - 1);
            mention_all(cx, &self.body, stage->reduce_extent, stage->n_reduce);
            mention_all(cx, &self.body, stage->body, stage->n_outputs);
        }
    return name_axis(&self, scan->time);
}

/* The axes of the stage come first, then those that it reduces over, which stand in its body. */
te_axis_names te_name_axes(tec_context *cx, const te_stage *stage)
{
    const char **axis = base_array(cx, const char *, stage->n_axes),
               **reduce = base_array(cx, const char *, stage->n_reduce);
    int timed = stage->scan != NULL;
    naming self = {.cx = cx};

    if (timed) {
        axis[0] = te_time_name(cx, stage->scan);
        base_dict_put(cx, &self.earlier, axis[0], stage->scan);
    }
    mention_all(cx, &self.body, stage->body, stage->n_outputs);
    if (stage->n_reduce)
        mention_all(cx, &self.body, stage->reduce_extent, stage->n_reduce);
    name_axes(&self, stage->axis, stage->extent, timed, stage->n_axes, axis);
    self.body = (base_dict){0};
    for (int i = 0; i < stage->n_outputs && stage->n_reduce; i++) {
        const ir_expr *body = stage->body[i];

        mention_all(cx, &self.body, body->reduce.source, body->reduce.combiner->n);
        mention(cx, &self.body, body->reduce.condition);
    }
    name_axes(&self, stage->reduce_axis, stage->reduce_extent, 0, stage->n_reduce, reduce);
    return (te_axis_names){axis, reduce};
}
