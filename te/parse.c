/* te/parse.c -- `.te` text to definitions.
 *
 *     def mm(n, m, l, A: f32[n, l], B: f32[l, m]) {
 *       C[y, x] = sum[k](A[y, k] * B[k, x])          y, x and k take their extents from A and B
 *       return C
 *     }
 *
 * Expressions are parsed by ir/'s parser; a hook adds reductions, which only definitions have. Axes without
 * an extent get it from the first dimension of a tensor that they index alone, so a body is parsed before its
 * extents are known: the axis is made first, its extent set after.
 */
#include "te/parse.h"
#include "base/limit.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "te/axis.h"
#include "te/recover.h"

typedef struct {
    tec_context *cx;
    base_lexer *lx;
    te_def *def;
    base_map axes; /* of all stages so far: ir_expr * (variable) */
    ir_scope_table names;
    int depth;         /* of definitions that are meanings in definitions */
    te_errors *errors; /* of the text; NULL: the first error ends the definition */
} parser;

enum { MAX_OUTPUTS = 64 };

static const ir_expr *parse_reduction(void *user, base_lexer *lx, ir_scope_table *names);
static te_def *parse_def(tec_context *cx, base_lexer *lx, int depth, te_errors *errors);

/* An expression in which reductions may stand. A name in it means what `names` says at this moment. */
static const ir_expr *parse_body(parser *self)
{
    return ir_parse_expr_hooked(self->lx, &self->names, parse_reduction, self);
}

/* ---- axes ---- */

/* The first dimension that `axis` indexes alone. */
typedef struct {
    ir_walk w;
    const ir_expr *axis, *extent;
} extent_search;

/* A hook: the first dimension, in the order of the text, that the axis indexes alone. A[i + 1] tells nothing
 * of i. */
static bool search_load(ir_walk *walk, const ir_expr *expr)
{
    extent_search *s = (extent_search *)walk;

    /* A wrong number of indices is refused later. */
    for (int i = 0; expr->op == IR_LOAD && !s->extent && i < expr->load.n && i < expr->load.buffer->n; i++)
        if (expr->load.index[i] == s->axis)
            s->extent = expr->load.buffer->shape[i];
    return !s->extent;
}

/* Fills in the extent of an axis that was written without one; an error where no tensor tells it. */
static bool infer_extent(parser *self, const ir_expr *axis, const ir_expr *const *body, int count)
{
    extent_search s = {.w = {.expr = search_load, .cx = self->cx}, .axis = axis};

    if (te_axis_extent(axis))
        return true;
    for (int i = 0; i < count && !s.extent; i++)
        if (body[i])
            ir_walk_expr(&s.w, body[i]);
    if (!s.extent)
        base_fail(self->cx, TEC_INVALID, axis->loc,
                  "the extent of axis '%s' is not given, and no tensor is indexed by '%s' alone",
                  axis->var.name, axis->var.name);
    else
        te_axis_set_extent(axis, s.extent);
    return s.extent != NULL;
}

/* Loops are made for axes in any order, so the extent of none may depend on another. */
static const ir_expr *parse_extent(parser *self, const char *axis)
{
    base_loc loc = self->lx->tok.loc;
    const ir_expr *extent = parse_body(self);
    base_vec vars = {0};

    if (extent)
        ir_free_vars(self->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_get(&self->axes, vars.at[i]))
            return base_fail(
                self->cx, TEC_INVALID, loc,
                "the extent of axis '%s' depends on axis '%s': extents are made of symbols and numbers", axis,
                ((const ir_expr *)vars.at[i])->var.name);
    return extent;
}

/* y: n, x] -- into scope; `hidden` takes what the names meant before. An error leaves the axes that were read
 * in scope; hide_axes takes them out. A name that an outer axis of the same stage has is refused, since a
 * loop is named after each. */
static void parse_more_axes(parser *self, bool reduce, base_vec *axes, base_vec *hidden)
{
    while (!base_at(self->lx, "]") && self->lx->tok.kind != BASE_TOK_END) {
        base_set_where(self->cx, self->lx->tok.loc);
        const char *name = base_expect_name(self->lx, "the name of an axis");
        if (!name)
            return;
        /* Loops are named after their axes. */
        if (base_map_get(&self->axes, base_dict_get(&self->names.vars, name))) {
            base_fail(self->cx, TEC_INVALID, base_where(self->cx), "two axes of one stage are named '%s'",
                      name);
            return;
        }
        const ir_expr *extent = base_accept(self->lx, ":") ? parse_extent(self, name) : NULL;
        const ir_expr *axis = te_axis_open(self->cx, name, extent, reduce);

        if (axis)
            base_map_put(self->cx, &self->axes, axis, axis);
        base_push(self->cx, axes, axis);
        base_push(self->cx, hidden, base_dict_get(&self->names.vars, name));
        base_dict_put(self->cx, &self->names.vars, name, axis);
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, "]");
}

/* The opening bracket, and the axes behind it. */
static void parse_axes(parser *self, bool reduce, base_vec *axes, base_vec *hidden)
{
    base_expect(self->lx, "[");
    parse_more_axes(self, reduce, axes, hidden);
}

/* In reverse order, so that a name that was hidden twice gets its first meaning back. */
static void close_axes(parser *self, const base_vec *axes, const base_vec *hidden)
{
    for (int i = axes->n - 1; i >= 0; i--)
        if (axes->at[i])
            base_dict_put(self->cx, &self->names.vars, ((const ir_expr *)axes->at[i])->var.name,
                          hidden->at[i]);
}

/* ---- reductions ---- */

/* NAME[axes where condition](sources): component 0, which `@i` behind it may change. A user's combiner of
 * that name comes before the built-in one. */
static const ir_expr *make_reduction(parser *self, base_loc loc, const char *name, const base_vec *axes,
                                     const base_vec *source, const ir_expr *condition)
{
    const ir_expr **extent = base_array(self->cx, const ir_expr *, axes->n);
    const ir_expr *const *src = (const ir_expr *const *)source->at;

    for (int i = 0; i < axes->n; i++) {
        if (!infer_extent(self, axes->at[i], src, source->n))
            return NULL;
        extent[i] = te_axis_extent(axes->at[i]);
    }
    const ir_combiner *combiner = base_dict_get(&self->names.combiners, name);
    if (!combiner)
        combiner = ir_combiner_named(self->cx, name, src[0]->dtype, source->n > 1 ? src[1]->dtype : BASE_I64);
    if (!combiner)
        return NULL;
    if (combiner->n != source->n)
        return base_fail(self->cx, TEC_INVALID, loc, "'%s' combines %d value%s, found %d", name, combiner->n,
                         combiner->n == 1 ? "" : "s", source->n);
    base_set_where(self->cx, loc);
    return ir_reduce(self->cx, combiner, src, (const ir_expr *const *)axes->at, extent, axes->n, condition,
                     0);
}

/* @i behind a reduction of tuples picks component i. */
static const ir_expr *component(parser *self, const ir_expr *expr)
{
    int64_t which;

    if (!expr || expr->reduce.combiner->n == 1 || !base_at(self->lx, "@") ||
        self->lx->next.kind != BASE_TOK_INT)
        return expr;
    base_advance(self->lx);
    if (!base_expect_int(self->lx, "the number of a component", &which))
        return NULL;
    if (which < 0 || which >= expr->reduce.combiner->n)
        return base_fail(self->cx, TEC_INVALID, expr->loc,
                         "'%s' has %d components: component %lld does not exist", expr->reduce.combiner->name,
                         expr->reduce.combiner->n, (long long)which);
    return ir_reduce(self->cx, expr->reduce.combiner, expr->reduce.source, expr->reduce.axis,
                     expr->reduce.extent, expr->reduce.n_axes, expr->reduce.condition, (int)which);
}

/* sum[k: n](A[k]), argmax[k](A[k], k)@1, sum[k](A[k] where k < m). A hook of the parser of expressions, which
 * asks it before each operand: NULL without an error means that no reduction begins here. */
static const ir_expr *parse_reduction(void *user, base_lexer *lx, ir_scope_table *names)
{
    parser *p = user;
    base_vec axes = {0}, hidden = {0}, source = {0};
    base_loc loc = lx->tok.loc;
    const char *name = lx->tok.text;

    if (lx->tok.kind != BASE_TOK_NAME || lx->next.kind != BASE_TOK_SYMBOL || !base_same(lx->next.text, "[") ||
        (!base_dict_has(&names->combiners, name) && !ir_names_combiner(name)))
        return NULL;
    base_advance(lx);
    parse_axes(p, true, &axes, &hidden);
    base_expect(lx, "(");
    do
        base_push(p->cx, &source, parse_body(p));
    while (base_accept(lx, ","));
    const ir_expr *condition = base_accept(lx, "where") ? parse_body(p) : NULL;
    base_expect(lx, ")");
    close_axes(p, &axes, &hidden);
    return base_failed(p->cx) ? NULL : component(p, make_reduction(p, loc, name, &axes, &source, condition));
}

/* n, 8] */
static bool parse_shape(parser *self, base_vec *shape)
{
    while (!base_at(self->lx, "]") && self->lx->tok.kind != BASE_TOK_END) {
        base_push(self->cx, shape, parse_body(self));
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, "]");
    return !base_failed(self->cx);
}

/* ---- stages ---- */

/* @key(value) or @role(word) behind a stage. */
static void parse_note(parser *self, te_stage *stage)
{
    const char *key = base_expect_name(self->lx, "the key of a note");

    base_expect(self->lx, "(");
    if (base_same(key, "role")) {
        const char *text = base_expect_name(self->lx, "a role");
        ir_role role = IR_ROLE_NONE;

        if (text && !ir_role_parse(text, &role))
            base_fail(self->cx, TEC_INVALID, self->lx->tok.loc, "there is no role '%s'", text);
        stage->role = role;
    } else if (key) {
        const ir_expr *value = parse_body(self);

        if (value)
            stage->notes = ir_note_set(self->cx, stage->notes, key, value);
    }
    base_expect(self->lx, ")");
}

/* The bodies of a stage with count outputs: one reduction gives all of them. */
static const ir_expr **parse_bodies(parser *self, int count)
{
    const ir_expr **body = base_array(self->cx, const ir_expr *, count);

    for (int i = 0; i < count; i++) {
        body[i] = parse_body(self);
        if (!body[i])
            return NULL;
        if (i == 0 && count > 1 && body[0]->op == IR_REDUCE && !base_at(self->lx, ",")) {
            const ir_expr *r = body[0];

            for (i = 1; i < count; i++)
                body[i] = ir_reduce(self->cx, r->reduce.combiner, r->reduce.source, r->reduce.axis,
                                    r->reduce.extent, r->reduce.n_axes, r->reduce.condition, i);
        } else if (i + 1 < count && !base_expect(self->lx, ","))
            return NULL;
    }
    return body;
}

static void parse_output_names(parser *self, base_vec *names)
{
    do
        base_push(self->cx, names, base_expect_name(self->lx, "the name of an output"));
    while (base_accept(self->lx, ","));
    base_expect(self->lx, ")");
}

/* A stage as it is written: of the definition, or the first steps or an update of a scan. */
typedef struct {
    te_scan *scan; /* NULL: of the definition */
    bool init;
    base_loc loc;
    const char *name;
    base_vec names, axes;
    const ir_expr **body;
} written;

/* Through the constructor that fits: they all check, and the place of the line is the place of their
 * errors. */
static bool make_stage(parser *self, const written *words, te_tensor **out)
{
    const char *const *names = (const char *const *)words->names.at;
    const ir_expr *const *axes = (const ir_expr *const *)words->axes.at;

    base_set_where(self->cx, words->loc);
    if (!words->scan)
        return te_compute_named(self->def, words->name, names, axes, words->axes.n, words->body,
                                words->names.n, out);
    if (!words->init)
        return te_scan_step_named(words->scan, words->name, names, axes, words->axes.n, words->body,
                                  words->names.n, out);
    out[0] = te_scan_state(words->scan, words->name, axes, words->axes.n, words->body[0]);
    return out[0] != NULL;
}

/* The update of a state runs over the axes that its first steps have. */
static void take_extents(const parser *self, const written *words)
{
    const ir_buffer *b =
        words->scan && !words->init ? base_dict_get(&self->names.buffers, words->name) : NULL;

    for (int i = 1; b && i < words->axes.n && i < b->n; i++)
        if (!te_axis_extent(words->axes.at[i]))
            te_axis_set_extent(words->axes.at[i], b->shape[i]);
}

/* The stage of one written line; its outputs can be read from here on. The order matters: extents of the
 * state's first steps, then those from the body, then the stage. */
static void add_stage(parser *self, const written *words)
{
    te_tensor **out = base_array(self->cx, te_tensor *, words->names.n);

    take_extents(self, words);
    for (int i = 0; i < words->axes.n; i++)
        if (!infer_extent(self, words->axes.at[i], words->body, words->names.n))
            return;
    if (!make_stage(self, words, out))
        return;
    for (int i = 0; i < words->names.n; i++)
        base_dict_put(self->cx, &self->names.buffers, words->names.at[i], out[i]->buffer);
    while (base_accept(self->lx, "@"))
        parse_note(self, (te_stage *)out[0]->stage);
}

/* [t, j: 8] of an update, where t is the time of the scan. */
static void parse_update_axes(parser *self, written *words, base_vec *hidden)
{
    const char *time = words->scan->time->var.name;

    base_expect(self->lx, "[");
    if (!base_at(self->lx, time))
        base_unexpected(self->lx,
                        base_format(self->cx, "'%s', the time of scan '%s'", time, words->scan->name));
    base_advance(self->lx);
    base_push(self->cx, &words->axes, words->scan->time);
    base_vec more = {0};
    if (base_accept(self->lx, ","))
        parse_more_axes(self, false, &more, hidden);
    else
        base_expect(self->lx, "]");
    for (int i = 0; i < more.n; i++)
        base_push(self->cx, &words->axes, more.at[i]);
}

/* A stage without brackets is refused, with the form of a scalar: brackets without axes. A tensor of a scan
 * is no scalar, since time is its first axis. */
static void expect_axes(parser *self, const written *words)
{
    bool several = words->names.n > 1 || words->names.at[0] != words->name;
    base_text expected = {0};

    if (base_failed(self->cx) || base_at(self->lx, "["))
        return;
    base_addf(self->cx, &expected, "'[' and the axes of '%s'", words->name);
    if (!words->scan) {
        base_addf(self->cx, &expected, " (a scalar has none: %s", words->name);
        for (int i = 0; several && i < words->names.n; i++)
            base_addf(self->cx, &expected, "%s%s", i ? ", " : "(", (const char *)words->names.at[i]);
        base_addf(self->cx, &expected, "%s[] = ...)", several ? ")" : "");
    }
    base_unexpected(self->lx, base_text_str(self->cx, &expected));
}

/* C[y: n, x] = ...      S(V, I)[i] = argmax[k](A[i, k], k)      and behind `init` and `update` of a scan */
static void parse_stage(parser *self, te_scan *scan, bool init)
{
    base_vec hidden = {0};
    written w = {.scan = scan, .init = init, .loc = self->lx->tok.loc};
    int timed = scan && !init;

    w.name = base_expect_name(self->lx, scan ? "a tensor" : "a stage or 'return'");
    if (!init && base_accept(self->lx, "("))
        parse_output_names(self, &w.names);
    else
        base_push(self->cx, &w.names, w.name);
    expect_axes(self, &w);
    if (timed)
        parse_update_axes(self, &w, &hidden);
    else
        parse_axes(self, false, &w.axes, &hidden);
    base_expect(self->lx, "=");
    w.body = base_failed(self->cx) ? NULL : parse_bodies(self, w.names.n);
    base_vec own = {.at = w.axes.at + timed, .n = w.axes.n - timed};
    close_axes(self, &own, &hidden);
    if (w.body && !base_failed(self->cx))
        add_stage(self, &w);
}

/* Behind `scan`: NAME[t: n] { init h[...] = ...   update h[t, ...] = ... } */
static void parse_scan(parser *self)
{
    base_vec axes = {0}, hidden = {0};
    base_loc loc = self->lx->tok.loc;
    const char *name = base_expect_name(self->lx, "the name of a scan");

    parse_axes(self, false, &axes, &hidden);
    base_expect(self->lx, "{");
    if (base_failed(self->cx))
        return;
    base_set_where(self->cx, loc);
    if (axes.n != 1 || !te_axis_extent(axes.at[0])) {
        base_fail(self->cx, TEC_INVALID, loc,
                  "scan '%s' has %d axes; expected its time with an extent, as in %s[t: n]", name, axes.n,
                  name);
        return;
    }
    te_scan *scan = te_scan_new(self->def, name, axes.at[0]);
    base_map_put(self->cx, &self->axes, axes.at[0], NULL); /* its updates name the time again */
    while (!base_at(self->lx, "}") && self->lx->tok.kind != BASE_TOK_END && !base_failed(self->cx)) {
        bool init = base_at(self->lx, "init");

        if (init || base_at(self->lx, "update")) {
            base_advance(self->lx);
            parse_stage(self, scan, init);
        } else
            base_unexpected(self->lx, "'init', 'update' or '}'");
    }
    base_expect(self->lx, "}");
    close_axes(self, &axes, &hidden);
    te_scan_close(scan);
}

/* A: f32[n] */
static bool parse_extern_output(parser *self, const char *name, te_extern_output *out)
{
    base_vec shape = {0};

    base_expect(self->lx, ":");
    base_dtype t = ir_parse_dtype(self->lx);
    if (!base_expect(self->lx, "[") || !parse_shape(self, &shape))
        return false;
    *out =
        (te_extern_output){.name = name, .dtype = t, .shape = (const ir_expr *const *)shape.at, .n = shape.n};
    return true;
}

/* S: f32[n]      S(V: f32[n], I: i64[n]) */
static bool parse_extern_outputs(parser *self, te_call *call)
{
    te_extern_output *output = base_array(self->cx, te_extern_output, MAX_OUTPUTS);

    call->output = output;
    call->name = base_expect_name(self->lx, "the name of an extern stage");
    call->n_outputs = 1;
    if (!base_accept(self->lx, "("))
        return parse_extern_output(self, call->name, output);
    for (call->n_outputs = 0; call->n_outputs < MAX_OUTPUTS;) {
        const char *name = base_expect_name(self->lx, "the name of an output");

        if (!parse_extern_output(self, name, &output[call->n_outputs++]))
            return false;
        if (!base_accept(self->lx, ","))
            break;
    }
    if (call->n_outputs == MAX_OUTPUTS && !base_at(self->lx, ")"))
        return base_fail(self->cx, TEC_INVALID, self->lx->tok.loc, "an extern stage has at most %d outputs",
                         MAX_OUTPUTS);
    return base_expect(self->lx, ")");
}

/* (A, B, n + 1): tensors, then other arguments. */
static void parse_extern_inputs(parser *self, te_call *call)
{
    base_vec inputs = {0}, args = {0};

    base_expect(self->lx, "(");
    while (!base_at(self->lx, ")") && self->lx->tok.kind != BASE_TOK_END) {
        te_tensor *tensor = self->lx->tok.kind == BASE_TOK_NAME && !args.n
                                ? te_tensor_named(self->def, self->lx->tok.text)
                                : NULL;

        if (tensor && !base_same(self->lx->next.text, "[")) {
            base_advance(self->lx);
            base_push(self->cx, &inputs, tensor);
        } else
            base_push(self->cx, &args, parse_body(self));
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, ")");
    call->input = (te_tensor *const *)inputs.at;
    call->n_inputs = inputs.n;
    call->arg = (const ir_expr *const *)args.at;
    call->n_args = args.n;
}

/* Behind `extern`: S: f32[n] = sort(A, n) means def ...      S(V: f32[n], I: i64[n]) = sort(A, n) */
static void parse_extern(parser *self)
{
    te_call c = {0};
    base_loc loc = self->lx->tok.loc;

    if (!parse_extern_outputs(self, &c))
        return;
    base_expect(self->lx, "=");
    c.function = base_expect_name(self->lx, "the name of an extern function");
    parse_extern_inputs(self, &c);
    if (base_accept(self->lx, "means") && base_expect(self->lx, "def"))
        c.meaning = parse_def(self->cx, self->lx, self->depth + 1, NULL);
    if (base_failed(self->cx))
        return;
    te_tensor **out = base_array(self->cx, te_tensor *, c.n_outputs);
    base_set_where(self->cx, loc);
    if (!te_extern(self->def, &c, out))
        return;
    for (int i = 0; i < c.n_outputs; i++)
        base_dict_put(self->cx, &self->names.buffers, c.output[i].name, out[i]->buffer);
    while (base_accept(self->lx, "@"))
        parse_note(self, (te_stage *)out[0]->stage);
}

static void parse_item(parser *self)
{
    if (base_at(self->lx, "extern") && self->lx->next.kind == BASE_TOK_NAME) {
        base_advance(self->lx);
        parse_extern(self);
        return;
    }
    if (base_at(self->lx, "scan") && self->lx->next.kind == BASE_TOK_NAME) {
        base_advance(self->lx);
        parse_scan(self);
    } else
        parse_stage(self, NULL, false);
}

/* ---- definitions ---- */

static void parse_tensor(parser *self, const char *name, base_dtype dtype)
{
    base_vec shape = {0};

    if (!parse_shape(self, &shape))
        return;
    te_tensor *tensor = te_input(self->def, name, dtype, (const ir_expr *const *)shape.at, shape.n);
    if (tensor)
        base_dict_put(self->cx, &self->names.buffers, name, tensor->buffer);
}

/* n      A: f32[n, 8]      alpha: f32. A name alone is a symbol, one with brackets a tensor, one with a type
 * alone a scalar. */
static void parse_param(parser *self)
{
    base_set_where(self->cx, self->lx->tok.loc);
    const char *name = base_expect_name(self->lx, "a parameter");
    if (!name)
        return;
    if (!base_accept(self->lx, ":")) {
        base_dict_put(self->cx, &self->names.vars, name, te_symbol(self->def, name));
        return;
    }
    base_dtype t = ir_parse_dtype(self->lx);
    if (base_accept(self->lx, "["))
        parse_tensor(self, name, t);
    else if (!base_failed(self->cx))
        base_dict_put(self->cx, &self->names.vars, name, te_scalar(self->def, name, t));
}

/* The order is that in which a kernel takes its outputs. */
static void parse_return(parser *self)
{
    do {
        base_loc loc = self->lx->tok.loc;
        const char *name = base_expect_name(self->lx, "the name of an output");
        te_tensor *tensor = name ? te_tensor_named(self->def, name) : NULL;

        base_set_where(self->cx, loc);
        if (name && !tensor)
            base_fail(self->cx, TEC_INVALID, loc, "'%s' is not a tensor of '%s'%s", name, self->def->name,
                      base_did_you_mean(self->cx, name, &self->names.buffers.order));
        te_output(self->def, tensor);
    } while (base_accept(self->lx, ","));
}

/* Parameters up to the closing parenthesis. Behind an error the next parameter is read. */
static void parse_params(parser *self)
{
    while (!base_at(self->lx, ")") && self->lx->tok.kind != BASE_TOK_END) {
        const char *from = self->errors ? te_place(self->lx) : NULL;

        parse_param(self);
        if (base_failed(self->cx) && from)
            te_go_on(self->errors, self->lx, from, te_next_param(from));
        if (!base_accept(self->lx, ","))
            break;
    }
    base_expect(self->lx, ")");
}

/* Steps over an item that names what an earlier error may have kept from being defined; true if it did. */
static bool skip_item(parser *self, const char *from)
{
    const char *next = from && self->errors->unknown.n ? te_next_item(from) : NULL;

    if (!next || !te_names_unknown(self->errors, self->cx, from, next))
        return false;
    te_skip(self->errors, self->cx, from, next);
    base_lexer_go(self->lx, next);
    return true;
}

/* An error may leave axes of its stage in scope. */
static void hide_axes(parser *self)
{
    for (int i = 0; i < self->names.vars.order.n; i++) {
        const char *name = self->names.vars.order.at[i];

        if (base_map_has(&self->axes, base_dict_get(&self->names.vars, name)))
            base_dict_put(self->cx, &self->names.vars, name, NULL);
    }
}

/* Stages up to `return`. Behind an error the next stage is read. */
static void parse_items(parser *self)
{
    while (!base_at(self->lx, "return") && self->lx->tok.kind != BASE_TOK_END && !base_failed(self->cx)) {
        const char *from = self->errors ? te_place(self->lx) : NULL;

        if (skip_item(self, from))
            continue;
        parse_item(self);
        if (base_failed(self->cx) && from) {
            hide_axes(self);
            te_go_on(self->errors, self->lx, from, te_next_item(from));
        }
    }
}

/* Behind `return`, where outputs may be unknown. */
static void parse_outputs(parser *self)
{
    if (!self->errors || !self->errors->unknown.n) {
        parse_return(self);
        return;
    }
    while (!base_at(self->lx, "}") && self->lx->tok.kind != BASE_TOK_END)
        base_advance(self->lx);
}

/* NAME(...) { ... return ... -- but for the closing brace. */
static te_def *open_def(tec_context *cx, base_lexer *lx, int depth, te_errors *errors)
{
    parser p = {.cx = cx, .lx = lx, .depth = depth, .errors = errors};

    if (errors)
        errors->known = &p.names;
    if (depth > base_limit(cx, BASE_LIMIT_definitions))
        return base_fail(cx, TEC_INVALID, lx->tok.loc, "definitions are nested too deeply; %s",
                         base_limit_text(cx, BASE_LIMIT_definitions));
    base_set_where(cx, lx->tok.loc);
    p.def = te_def_new(cx, base_expect_name(lx, "the name of a definition"));
    if (!p.def)
        return NULL;
    base_expect(lx, "(");
    parse_params(&p);
    if (base_accept(lx, "where"))
        do
            te_fact(p.def, parse_body(&p));
        while (base_accept(lx, ","));
    base_expect(lx, "{");
    while (base_accept(lx, "combiner") && ir_parse_combiner(lx, &p.names))
        ;
    parse_items(&p);
    if (base_expect(lx, "return"))
        parse_outputs(&p);
    return base_failed(cx) ? NULL : p.def;
}

/* An intrinsic goes on behind the definition, before the brace; its first error ends it. */
te_def *te_parse_open_def(tec_context *cx, base_lexer *lx, int depth)
{
    return open_def(cx, lx, depth, NULL);
}

static te_def *parse_def(tec_context *cx, base_lexer *lx, int depth, te_errors *errors)
{
    te_def *d = open_def(cx, lx, depth, errors);

    return base_expect(lx, "}") ? d : NULL;
}

/* Definitions with errors are NULL in the list and have no name. */
static const te_def *def_named(const te_file *file, const char *name)
{
    for (int i = 0; i < file->defs.n; i++)
        if (file->defs.at[i] && base_same(((const te_def *)file->defs.at[i])->name, name))
            return file->defs.at[i];
    return NULL;
}

/* Behind `def`: the commands pick a definition by its name, so a name stands for one. */
static void parse_own_def(te_file *file, tec_context *cx, base_lexer *lx, te_errors *errors)
{
    base_loc loc = lx->tok.loc;

    errors->unknown = (base_dict){0};
    te_def *def = parse_def(cx, lx, 0, errors);
    errors->known = NULL;
    const te_def *first = def ? def_named(file, def->name) : NULL;

    if (first) {
        base_fail(cx, TEC_INVALID, loc, "there are two definitions '%s'", def->name);
        base_note(cx, first->loc, "the first is here");
    }
    base_push(cx, &file->defs, def);
}

/* The trace's text is kept as it is, up to the closing brace; schedule/ parses it. */
static void parse_schedule(te_file *file, tec_context *cx, base_lexer *lx)
{
    base_loc loc = lx->tok.loc;
    const char *name = base_expect_name(lx, "the name of a definition");
    const base_loc *first = name ? base_dict_get(&file->schedule_at, name) : NULL;

    if (first) {
        base_fail(cx, TEC_INVALID, loc, "there are two schedules of '%s'", name);
        base_note(cx, *first, "the first is here");
        return;
    }
    if (!name || !base_at(lx, "{"))
        base_expect(lx, "{");
    else {
        base_dict_put(cx, &file->schedule_at, name, base_copy(cx, &lx->tok.loc, sizeof lx->tok.loc));
        base_dict_put(cx, &file->schedules, name, base_lexer_raw_block(lx));
    }
}

/* A schedule may stand before its definition, so this is looked at last. */
static void check_schedules(tec_context *cx, const te_file *file)
{
    base_vec names = {0};

    for (int i = 0; i < file->defs.n && file->defs.at[i]; i++)
        base_push(cx, &names, ((const te_def *)file->defs.at[i])->name);
    for (int i = 0; i < file->schedules.order.n; i++) {
        const char *name = file->schedules.order.at[i];

        if (!def_named(file, name))
            base_fail(cx, TEC_INVALID, *(base_loc *)base_dict_get(&file->schedule_at, name),
                      "a schedule of '%s', but there is no definition of this name%s", name,
                      base_did_you_mean(cx, name, &names));
    }
}

/* What stands at the top of a file. An error in one part does not keep the next from being read. */
static void parse_part(te_file *file, tec_context *cx, base_lexer *lx, te_errors *errors)
{
    if (base_accept(lx, "def"))
        parse_own_def(file, cx, lx, errors);
    else if (base_accept(lx, "schedule"))
        parse_schedule(file, cx, lx);
    else if (base_accept(lx, "intrinsic"))
        te_parse_intrinsic(cx, lx, &file->intrinsics);
    else
        base_unexpected(lx, "'def', 'schedule' or 'intrinsic'");
}

/* A file is any number of definitions, schedules of them, and intrinsics. */
te_file *te_parse(tec_context *cx, const char *file, const char *text)
{
    te_file *f = base_new(cx, te_file);
    base_lexer *lx = base_lexer_new(cx, file, text);
    te_errors errors = {0};

    while (lx->tok.kind != BASE_TOK_END && !base_failed(cx)) {
        const char *from = te_place(lx);

        parse_part(f, cx, lx, &errors);
        if (base_failed(cx) && from)
            te_go_on(&errors, lx, from, te_next_def(from));
    }
    if (!base_failed(cx) && !errors.n && f->defs.n == 0)
        base_fail(cx, TEC_INVALID, (base_loc){.file = file},
                  "no definition found: expected 'def NAME(...) { ... }'");
    if (!errors.n)
        check_schedules(cx, f);
    te_hand_in(&errors, cx);
    return base_failed(cx) ? NULL : f;
}
