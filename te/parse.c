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

enum { MAX_DEPTH = 16, MAX_OUTPUTS = 64 };

static const ir_expr *parse_reduction(void *user, base_lexer *lx, ir_scope_table *names);
static te_def *parse_def(tec_context *cx, base_lexer *lx, int depth, te_errors *errors);

/* An expression in which reductions may stand. A name in it means what `names` says at this moment. */
static const ir_expr *parse_body(parser *p)
{
    return ir_parse_expr_hooked(p->lx, &p->names, parse_reduction, p);
}

/* ---- axes ---- */

/* The first dimension that `axis` indexes alone. */
typedef struct {
    ir_walk w;
    const ir_expr *axis, *extent;
} extent_search;

/* A hook: the first dimension, in the order of the text, that the axis indexes alone. A[i + 1] tells nothing
 * of i. */
static bool search_load(ir_walk *w, const ir_expr *e)
{
    extent_search *s = (extent_search *)w;

    /* A wrong number of indices is refused later. */
    for (int i = 0; e->op == IR_LOAD && !s->extent && i < e->load.n && i < e->load.buffer->n; i++)
        if (e->load.index[i] == s->axis)
            s->extent = e->load.buffer->shape[i];
    return !s->extent;
}

/* Fills in the extent of an axis that was written without one; an error where no tensor tells it. */
static bool infer_extent(parser *p, const ir_expr *axis, const ir_expr *const *body, int n)
{
    extent_search s = {.w = {.expr = search_load, .cx = p->cx}, .axis = axis};

    if (te_axis_extent(axis))
        return true;
    for (int i = 0; i < n && !s.extent; i++)
        if (body[i])
            ir_walk_expr(&s.w, body[i]);
    if (!s.extent)
        base_fail(p->cx, TEC_INVALID, axis->loc,
                  "the extent of axis '%s' is not given, and no tensor is indexed by '%s' alone",
                  axis->var.name, axis->var.name);
    else
        te_axis_set_extent(axis, s.extent);
    return s.extent != NULL;
}

/* Loops are made for axes in any order, so the extent of none may depend on another. */
static const ir_expr *parse_extent(parser *p, const char *axis)
{
    base_loc loc = p->lx->tok.loc;
    const ir_expr *extent = parse_body(p);
    base_vec vars = {0};

    if (extent)
        ir_free_vars(p->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_get(&p->axes, vars.at[i]))
            return base_fail(
                p->cx, TEC_INVALID, loc,
                "the extent of axis '%s' depends on axis '%s': extents are made of symbols and numbers", axis,
                ((const ir_expr *)vars.at[i])->var.name);
    return extent;
}

/* y: n, x] -- into scope; `hidden` takes what the names meant before. An error leaves the axes that were read
 * in scope; hide_axes takes them out. A name that an outer axis of the same stage has is refused, since a
 * loop is named after each. */
static void parse_more_axes(parser *p, bool reduce, base_vec *axes, base_vec *hidden)
{
    while (!base_at(p->lx, "]") && p->lx->tok.kind != BASE_TOK_END) {
        base_set_where(p->cx, p->lx->tok.loc);
        const char *name = base_expect_name(p->lx, "the name of an axis");
        if (!name)
            return;
        /* Loops are named after their axes. */
        if (base_map_get(&p->axes, base_dict_get(&p->names.vars, name))) {
            base_fail(p->cx, TEC_INVALID, base_where(p->cx), "two axes of one stage are named '%s'", name);
            return;
        }
        const ir_expr *extent = base_accept(p->lx, ":") ? parse_extent(p, name) : NULL;
        const ir_expr *axis = te_axis_open(p->cx, name, extent, reduce);

        if (axis)
            base_map_put(p->cx, &p->axes, axis, axis);
        base_push(p->cx, axes, axis);
        base_push(p->cx, hidden, base_dict_get(&p->names.vars, name));
        base_dict_put(p->cx, &p->names.vars, name, axis);
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, "]");
}

/* The opening bracket, and the axes behind it. */
static void parse_axes(parser *p, bool reduce, base_vec *axes, base_vec *hidden)
{
    base_expect(p->lx, "[");
    parse_more_axes(p, reduce, axes, hidden);
}

/* In reverse order, so that a name that was hidden twice gets its first meaning back. */
static void close_axes(parser *p, const base_vec *axes, const base_vec *hidden)
{
    for (int i = axes->n - 1; i >= 0; i--)
        if (axes->at[i])
            base_dict_put(p->cx, &p->names.vars, ((const ir_expr *)axes->at[i])->var.name, hidden->at[i]);
}

/* ---- reductions ---- */

/* NAME[axes where condition](sources): component 0, which `@i` behind it may change. A user's combiner of
 * that name comes before the built-in one. */
static const ir_expr *make_reduction(parser *p, base_loc loc, const char *name, const base_vec *axes,
                                     const base_vec *source, const ir_expr *condition)
{
    const ir_expr **extent = base_array(p->cx, const ir_expr *, axes->n);
    const ir_expr *const *src = (const ir_expr *const *)source->at;

    for (int i = 0; i < axes->n; i++) {
        if (!infer_extent(p, axes->at[i], src, source->n))
            return NULL;
        extent[i] = te_axis_extent(axes->at[i]);
    }
    const ir_combiner *c = base_dict_get(&p->names.combiners, name);
    if (!c)
        c = ir_combiner_named(p->cx, name, src[0]->dtype, source->n > 1 ? src[1]->dtype : BASE_I64);
    if (!c)
        return NULL;
    if (c->n != source->n)
        return base_fail(p->cx, TEC_INVALID, loc, "'%s' combines %d value%s, found %d", name, c->n,
                         c->n == 1 ? "" : "s", source->n);
    base_set_where(p->cx, loc);
    return ir_reduce(p->cx, c, src, (const ir_expr *const *)axes->at, extent, axes->n, condition, 0);
}

/* @i behind a reduction of tuples picks component i. */
static const ir_expr *component(parser *p, const ir_expr *e)
{
    int64_t which;

    if (!e || e->reduce.combiner->n == 1 || !base_at(p->lx, "@") || p->lx->next.kind != BASE_TOK_INT)
        return e;
    base_advance(p->lx);
    if (!base_expect_int(p->lx, "the number of a component", &which))
        return NULL;
    if (which < 0 || which >= e->reduce.combiner->n)
        return base_fail(p->cx, TEC_INVALID, e->loc, "'%s' has %d components, there is no component %lld",
                         e->reduce.combiner->name, e->reduce.combiner->n, (long long)which);
    return ir_reduce(p->cx, e->reduce.combiner, e->reduce.source, e->reduce.axis, e->reduce.extent,
                     e->reduce.n_axes, e->reduce.condition, (int)which);
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
static bool parse_shape(parser *p, base_vec *shape)
{
    while (!base_at(p->lx, "]") && p->lx->tok.kind != BASE_TOK_END) {
        base_push(p->cx, shape, parse_body(p));
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, "]");
    return !base_failed(p->cx);
}

/* ---- stages ---- */

/* @key(value) or @role(word) behind a stage. */
static void parse_note(parser *p, te_stage *s)
{
    const char *key = base_expect_name(p->lx, "the key of a note");

    base_expect(p->lx, "(");
    if (base_same(key, "role")) {
        const char *text = base_expect_name(p->lx, "a role");
        ir_role role = IR_ROLE_NONE;

        if (text && !ir_role_parse(text, &role))
            base_fail(p->cx, TEC_INVALID, p->lx->tok.loc, "there is no role '%s'", text);
        s->role = role;
    } else if (key) {
        const ir_expr *value = parse_body(p);

        if (value)
            s->notes = ir_note_set(p->cx, s->notes, key, value);
    }
    base_expect(p->lx, ")");
}

/* The bodies of a stage with n outputs: one reduction gives all of them. */
static const ir_expr **parse_bodies(parser *p, int n)
{
    const ir_expr **body = base_array(p->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        body[i] = parse_body(p);
        if (!body[i])
            return NULL;
        if (i == 0 && n > 1 && body[0]->op == IR_REDUCE && !base_at(p->lx, ",")) {
            const ir_expr *r = body[0];

            for (i = 1; i < n; i++)
                body[i] = ir_reduce(p->cx, r->reduce.combiner, r->reduce.source, r->reduce.axis,
                                    r->reduce.extent, r->reduce.n_axes, r->reduce.condition, i);
        } else if (i + 1 < n && !base_expect(p->lx, ","))
            return NULL;
    }
    return body;
}

static void parse_output_names(parser *p, base_vec *names)
{
    do
        base_push(p->cx, names, base_expect_name(p->lx, "the name of an output"));
    while (base_accept(p->lx, ","));
    base_expect(p->lx, ")");
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
static bool make_stage(parser *p, const written *w, te_tensor **out)
{
    const char *const *names = (const char *const *)w->names.at;
    const ir_expr *const *axes = (const ir_expr *const *)w->axes.at;

    base_set_where(p->cx, w->loc);
    if (!w->scan)
        return te_compute_named(p->def, w->name, names, axes, w->axes.n, w->body, w->names.n, out);
    if (!w->init)
        return te_scan_step_named(w->scan, w->name, names, axes, w->axes.n, w->body, w->names.n, out);
    out[0] = te_scan_state(w->scan, w->name, axes, w->axes.n, w->body[0]);
    return out[0] != NULL;
}

/* The update of a state runs over the axes that its first steps have. */
static void take_extents(const parser *p, const written *w)
{
    const ir_buffer *b = w->scan && !w->init ? base_dict_get(&p->names.buffers, w->name) : NULL;

    for (int i = 1; b && i < w->axes.n && i < b->n; i++)
        if (!te_axis_extent(w->axes.at[i]))
            te_axis_set_extent(w->axes.at[i], b->shape[i]);
}

/* The stage of one written line; its outputs can be read from here on. The order matters: extents of the
 * state's first steps, then those from the body, then the stage. */
static void add_stage(parser *p, const written *w)
{
    te_tensor **out = base_array(p->cx, te_tensor *, w->names.n);

    take_extents(p, w);
    for (int i = 0; i < w->axes.n; i++)
        if (!infer_extent(p, w->axes.at[i], w->body, w->names.n))
            return;
    if (!make_stage(p, w, out))
        return;
    for (int i = 0; i < w->names.n; i++)
        base_dict_put(p->cx, &p->names.buffers, w->names.at[i], out[i]->buffer);
    while (base_accept(p->lx, "@"))
        parse_note(p, (te_stage *)out[0]->stage);
}

/* [t, j: 8] of an update, where t is the time of the scan. */
static void parse_update_axes(parser *p, written *w, base_vec *hidden)
{
    const char *time = w->scan->time->var.name;

    base_expect(p->lx, "[");
    if (!base_at(p->lx, time))
        base_unexpected(p->lx, base_format(p->cx, "'%s', the time of scan '%s'", time, w->scan->name));
    base_advance(p->lx);
    base_push(p->cx, &w->axes, w->scan->time);
    base_vec more = {0};
    if (base_accept(p->lx, ","))
        parse_more_axes(p, false, &more, hidden);
    else
        base_expect(p->lx, "]");
    for (int i = 0; i < more.n; i++)
        base_push(p->cx, &w->axes, more.at[i]);
}

/* C[y: n, x] = ...      S(V, I)[i] = argmax[k](A[i, k], k)      and behind `init` and `update` of a scan */
static void parse_stage(parser *p, te_scan *scan, bool init)
{
    base_vec hidden = {0};
    written w = {.scan = scan, .init = init, .loc = p->lx->tok.loc};
    int timed = scan && !init;

    w.name = base_expect_name(p->lx, scan ? "a tensor" : "a stage or 'return'");
    if (!init && base_accept(p->lx, "("))
        parse_output_names(p, &w.names);
    else
        base_push(p->cx, &w.names, w.name);
    if (timed)
        parse_update_axes(p, &w, &hidden);
    else
        parse_axes(p, false, &w.axes, &hidden);
    base_expect(p->lx, "=");
    w.body = base_failed(p->cx) ? NULL : parse_bodies(p, w.names.n);
    base_vec own = {.at = w.axes.at + timed, .n = w.axes.n - timed};
    close_axes(p, &own, &hidden);
    if (w.body && !base_failed(p->cx))
        add_stage(p, &w);
}

/* Behind `scan`: NAME[t: n] { init h[...] = ...   update h[t, ...] = ... } */
static void parse_scan(parser *p)
{
    base_vec axes = {0}, hidden = {0};
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of a scan");

    parse_axes(p, false, &axes, &hidden);
    base_expect(p->lx, "{");
    if (base_failed(p->cx))
        return;
    base_set_where(p->cx, loc);
    if (axes.n != 1 || !te_axis_extent(axes.at[0])) {
        base_fail(p->cx, TEC_INVALID, loc,
                  "scan '%s' has %d axes; expected its time with an extent, as in %s[t: n]", name, axes.n,
                  name);
        return;
    }
    te_scan *scan = te_scan_new(p->def, name, axes.at[0]);
    base_map_put(p->cx, &p->axes, axes.at[0], NULL); /* its updates name the time again */
    while (!base_at(p->lx, "}") && p->lx->tok.kind != BASE_TOK_END && !base_failed(p->cx)) {
        bool init = base_at(p->lx, "init");

        if (init || base_at(p->lx, "update")) {
            base_advance(p->lx);
            parse_stage(p, scan, init);
        } else
            base_unexpected(p->lx, "'init', 'update' or '}'");
    }
    base_expect(p->lx, "}");
    close_axes(p, &axes, &hidden);
    te_scan_close(scan);
}

/* A: f32[n] */
static bool parse_extern_output(parser *p, const char *name, te_extern_output *out)
{
    base_vec shape = {0};

    base_expect(p->lx, ":");
    base_dtype t = ir_parse_dtype(p->lx);
    if (!base_expect(p->lx, "[") || !parse_shape(p, &shape))
        return false;
    *out =
        (te_extern_output){.name = name, .dtype = t, .shape = (const ir_expr *const *)shape.at, .n = shape.n};
    return true;
}

/* S: f32[n]      S(V: f32[n], I: i64[n]) */
static bool parse_extern_outputs(parser *p, te_call *c)
{
    te_extern_output *output = base_array(p->cx, te_extern_output, MAX_OUTPUTS);

    c->output = output;
    c->name = base_expect_name(p->lx, "the name of an extern stage");
    c->n_outputs = 1;
    if (!base_accept(p->lx, "("))
        return parse_extern_output(p, c->name, output);
    for (c->n_outputs = 0; c->n_outputs < MAX_OUTPUTS;) {
        const char *name = base_expect_name(p->lx, "the name of an output");

        if (!parse_extern_output(p, name, &output[c->n_outputs++]))
            return false;
        if (!base_accept(p->lx, ","))
            break;
    }
    return base_expect(p->lx, ")");
}

/* (A, B, n + 1): tensors, then other arguments. */
static void parse_extern_inputs(parser *p, te_call *c)
{
    base_vec inputs = {0}, args = {0};

    base_expect(p->lx, "(");
    while (!base_at(p->lx, ")") && p->lx->tok.kind != BASE_TOK_END) {
        te_tensor *t =
            p->lx->tok.kind == BASE_TOK_NAME && !args.n ? te_tensor_named(p->def, p->lx->tok.text) : NULL;

        if (t && !base_same(p->lx->next.text, "[")) {
            base_advance(p->lx);
            base_push(p->cx, &inputs, t);
        } else
            base_push(p->cx, &args, parse_body(p));
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, ")");
    c->input = (te_tensor *const *)inputs.at;
    c->n_inputs = inputs.n;
    c->arg = (const ir_expr *const *)args.at;
    c->n_args = args.n;
}

/* Behind `extern`: S: f32[n] = sort(A, n) means def ...      S(V: f32[n], I: i64[n]) = sort(A, n) */
static void parse_extern(parser *p)
{
    te_call c = {0};
    base_loc loc = p->lx->tok.loc;

    if (!parse_extern_outputs(p, &c))
        return;
    base_expect(p->lx, "=");
    c.function = base_expect_name(p->lx, "the name of an extern function");
    parse_extern_inputs(p, &c);
    if (base_accept(p->lx, "means") && base_expect(p->lx, "def"))
        c.meaning = parse_def(p->cx, p->lx, p->depth + 1, NULL);
    if (base_failed(p->cx))
        return;
    te_tensor **out = base_array(p->cx, te_tensor *, c.n_outputs);
    base_set_where(p->cx, loc);
    if (!te_extern(p->def, &c, out))
        return;
    for (int i = 0; i < c.n_outputs; i++)
        base_dict_put(p->cx, &p->names.buffers, c.output[i].name, out[i]->buffer);
    while (base_accept(p->lx, "@"))
        parse_note(p, (te_stage *)out[0]->stage);
}

static void parse_item(parser *p)
{
    if (base_at(p->lx, "extern") && p->lx->next.kind == BASE_TOK_NAME) {
        base_advance(p->lx);
        parse_extern(p);
        return;
    }
    if (base_at(p->lx, "scan") && p->lx->next.kind == BASE_TOK_NAME) {
        base_advance(p->lx);
        parse_scan(p);
    } else
        parse_stage(p, NULL, false);
}

/* ---- definitions ---- */

static void parse_tensor(parser *p, const char *name, base_dtype t)
{
    base_vec shape = {0};

    if (!parse_shape(p, &shape))
        return;
    te_tensor *tensor = te_input(p->def, name, t, (const ir_expr *const *)shape.at, shape.n);
    if (tensor)
        base_dict_put(p->cx, &p->names.buffers, name, tensor->buffer);
}

/* n      A: f32[n, 8]      alpha: f32. A name alone is a symbol, one with brackets a tensor, one with a type
 * alone a scalar. */
static void parse_param(parser *p)
{
    base_set_where(p->cx, p->lx->tok.loc);
    const char *name = base_expect_name(p->lx, "a parameter");
    if (!name)
        return;
    if (!base_accept(p->lx, ":")) {
        base_dict_put(p->cx, &p->names.vars, name, te_symbol(p->def, name));
        return;
    }
    base_dtype t = ir_parse_dtype(p->lx);
    if (base_accept(p->lx, "["))
        parse_tensor(p, name, t);
    else if (!base_failed(p->cx))
        base_dict_put(p->cx, &p->names.vars, name, te_scalar(p->def, name, t));
}

/* The order is that in which a kernel takes its outputs. */
static void parse_return(parser *p)
{
    do {
        base_loc loc = p->lx->tok.loc;
        const char *name = base_expect_name(p->lx, "the name of an output");
        te_tensor *t = name ? te_tensor_named(p->def, name) : NULL;

        base_set_where(p->cx, loc);
        if (name && !t)
            base_fail(p->cx, TEC_INVALID, loc, "'%s' is no tensor of '%s'%s", name, p->def->name,
                      base_did_you_mean(p->cx, name, &p->names.buffers.order));
        te_output(p->def, t);
    } while (base_accept(p->lx, ","));
}

/* Parameters up to the closing parenthesis. Behind an error the next parameter is read. */
static void parse_params(parser *p)
{
    while (!base_at(p->lx, ")") && p->lx->tok.kind != BASE_TOK_END) {
        const char *from = p->errors ? te_place(p->lx) : NULL;

        parse_param(p);
        if (base_failed(p->cx) && from)
            te_go_on(p->errors, p->lx, from, te_next_param(from));
        if (!base_accept(p->lx, ","))
            break;
    }
    base_expect(p->lx, ")");
}

/* Steps over an item that names what an earlier error may have kept from being defined; true if it did. */
static bool skip_item(parser *p, const char *from)
{
    const char *next = from && p->errors->unknown.n ? te_next_item(from) : NULL;

    if (!next || !te_names_unknown(p->errors, p->cx, from, next))
        return false;
    te_skip(p->errors, p->cx, from, next);
    base_lexer_go(p->lx, next);
    return true;
}

/* An error may leave axes of its stage in scope. */
static void hide_axes(parser *p)
{
    for (int i = 0; i < p->names.vars.order.n; i++) {
        const char *name = p->names.vars.order.at[i];

        if (base_map_has(&p->axes, base_dict_get(&p->names.vars, name)))
            base_dict_put(p->cx, &p->names.vars, name, NULL);
    }
}

/* Stages up to `return`. Behind an error the next stage is read. */
static void parse_items(parser *p)
{
    while (!base_at(p->lx, "return") && p->lx->tok.kind != BASE_TOK_END && !base_failed(p->cx)) {
        const char *from = p->errors ? te_place(p->lx) : NULL;

        if (skip_item(p, from))
            continue;
        parse_item(p);
        if (base_failed(p->cx) && from) {
            hide_axes(p);
            te_go_on(p->errors, p->lx, from, te_next_item(from));
        }
    }
}

/* Behind `return`, where outputs may be unknown. */
static void parse_outputs(parser *p)
{
    if (!p->errors || !p->errors->unknown.n) {
        parse_return(p);
        return;
    }
    while (!base_at(p->lx, "}") && p->lx->tok.kind != BASE_TOK_END)
        base_advance(p->lx);
}

/* NAME(...) { ... return ... -- but for the closing brace. */
static te_def *open_def(tec_context *cx, base_lexer *lx, int depth, te_errors *errors)
{
    parser p = {.cx = cx, .lx = lx, .depth = depth, .errors = errors};

    if (errors)
        errors->known = &p.names;
    if (depth > MAX_DEPTH)
        return base_fail(cx, TEC_INVALID, lx->tok.loc, "more than %d definitions lie in each other",
                         MAX_DEPTH);
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
static const te_def *def_named(const te_file *f, const char *name)
{
    for (int i = 0; i < f->defs.n; i++)
        if (f->defs.at[i] && base_same(((const te_def *)f->defs.at[i])->name, name))
            return f->defs.at[i];
    return NULL;
}

/* Behind `def`: the commands pick a definition by its name, so a name stands for one. */
static void parse_own_def(te_file *f, tec_context *cx, base_lexer *lx, te_errors *errors)
{
    base_loc loc = lx->tok.loc;

    errors->unknown = (base_dict){0};
    te_def *d = parse_def(cx, lx, 0, errors);
    errors->known = NULL;
    const te_def *first = d ? def_named(f, d->name) : NULL;

    if (first) {
        base_fail(cx, TEC_INVALID, loc, "there are two definitions '%s'", d->name);
        base_note(cx, first->loc, "the first is here");
    }
    base_push(cx, &f->defs, d);
}

/* The trace's text is kept as it is, up to the closing brace; schedule/ parses it. */
static void parse_schedule(te_file *f, tec_context *cx, base_lexer *lx)
{
    base_loc loc = lx->tok.loc;
    const char *name = base_expect_name(lx, "the name of a definition");
    const base_loc *first = name ? base_dict_get(&f->schedule_at, name) : NULL;

    if (first) {
        base_fail(cx, TEC_INVALID, loc, "there are two schedules of '%s'", name);
        base_note(cx, *first, "the first is here");
        return;
    }
    if (!name || !base_at(lx, "{"))
        base_expect(lx, "{");
    else {
        base_dict_put(cx, &f->schedule_at, name, base_copy(cx, &lx->tok.loc, sizeof lx->tok.loc));
        base_dict_put(cx, &f->schedules, name, base_lexer_raw_block(lx));
    }
}

/* A schedule may stand before its definition, so this is looked at last. */
static void check_schedules(tec_context *cx, const te_file *f)
{
    base_vec names = {0};

    for (int i = 0; i < f->defs.n && f->defs.at[i]; i++)
        base_push(cx, &names, ((const te_def *)f->defs.at[i])->name);
    for (int i = 0; i < f->schedules.order.n; i++) {
        const char *name = f->schedules.order.at[i];

        if (!def_named(f, name))
            base_fail(cx, TEC_INVALID, *(base_loc *)base_dict_get(&f->schedule_at, name),
                      "a schedule of '%s', but there is no definition of this name%s", name,
                      base_did_you_mean(cx, name, &names));
    }
}

/* What stands at the top of a file. An error in one part does not keep the next from being read. */
static void parse_part(te_file *f, tec_context *cx, base_lexer *lx, te_errors *errors)
{
    if (base_accept(lx, "def"))
        parse_own_def(f, cx, lx, errors);
    else if (base_accept(lx, "schedule"))
        parse_schedule(f, cx, lx);
    else if (base_accept(lx, "intrinsic"))
        te_parse_intrinsic(cx, lx, &f->intrinsics);
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
