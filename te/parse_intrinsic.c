/* te/parse_intrinsic.c -- the text of tensor intrinsics: a definition, how its operands lie in memory, and
 * its forms.
 *
 *     intrinsic gemm(m, a: f32[m, 4], b: f32[4, 8]) { c[...] = ... return c  strides a[lda,
 *         1]  update "call gemm" }
 */
#include "te/parse.h"

#include "ir/build.h"
#include "ir/text.h"

typedef struct {
    tec_context *cx;
    base_lexer *lx;
    te_def *def;
    base_vec operands; /* te_operand * */
    base_vec strides;  /* variables */
} reader;

/* ---- operands ---- */

/* The operand for a tensor of the behaviour, made at its first mention. */
static te_operand *find_operand(reader *r)
{
    base_loc loc = r->lx->tok.loc;
    const char *name = base_expect_name(r->lx, "the name of a tensor");
    const te_tensor *t = name ? te_tensor_named(r->def, name) : NULL;

    if (name && !t)
        return base_fail(r->cx, TEC_INVALID, loc, "'%s' is no tensor of '%s'", name, r->def->name);
    for (int i = 0; t && i < r->operands.n; i++)
        if (((te_operand *)r->operands.at[i])->buffer == t->buffer)
            return r->operands.at[i];
    if (!t)
        return NULL;
    te_operand *o = base_new(r->cx, te_operand);
    o->buffer = t->buffer;
    base_push(r->cx, &r->operands, o);
    return o;
}

/* Two operands with one name for a stride have the same stride. A symbol's name is refused, or a call could
 * not tell the two apart. */
static const ir_expr *stride_named(reader *r, const char *name)
{
    for (int i = 0; i < r->strides.n; i++)
        if (base_same(((const ir_expr *)r->strides.at[i])->var.name, name))
            return r->strides.at[i];
    for (int i = 0; i < r->def->symbols.n; i++)
        if (base_same(((const ir_expr *)r->def->symbols.at[i])->var.name, name))
            return base_fail(r->cx, TEC_INVALID, base_where(r->cx), "stride '%s' has the name of a symbol",
                             name);
    const ir_expr *var = ir_var(r->cx, name, BASE_I64);
    base_push(r->cx, &r->strides, (void *)var);
    return var;
}

static const ir_expr *read_stride(reader *r)
{
    int64_t n;

    base_set_where(r->cx, r->lx->tok.loc);
    if (r->lx->tok.kind == BASE_TOK_NAME)
        return stride_named(r, base_expect_name(r->lx, "a stride"));
    return base_expect_int(r->lx, "a stride: a name or a number", &n) ? ir_int(r->cx, n) : NULL;
}

/* Behind `strides`: a[lda, 1] */
static void read_strides(reader *r)
{
    base_loc loc = r->lx->tok.loc;
    te_operand *o = find_operand(r);
    base_vec strides = {0};

    base_expect(r->lx, "[");
    do
        base_push(r->cx, &strides, (void *)read_stride(r));
    while (base_accept(r->lx, ","));
    if (!base_expect(r->lx, "]") || !o)
        return;
    if (strides.n != o->buffer->n)
        base_fail(r->cx, TEC_INVALID, loc, "'%s' has %d dimensions, %d strides are given", o->buffer->name,
                  o->buffer->n, strides.n);
    o->strides = (const ir_expr *const *)strides.at;
}

/* Behind `align`: a 64 */
static void read_align(reader *r)
{
    te_operand *o = find_operand(r);
    base_loc loc = r->lx->tok.loc;
    int64_t bytes;

    if (!base_expect_int(r->lx, "a number of bytes", &bytes) || !o)
        return;
    if (bytes < 1 || bytes > 4096 || (bytes & (bytes - 1)))
        base_fail(r->cx, TEC_INVALID, loc, "an alignment is a power of two up to 4096, found %lld",
                  (long long)bytes);
    o->align = (int)bytes;
}

/* Behind `scope`: a local */
static void read_scope(reader *r)
{
    te_operand *o = find_operand(r);
    base_loc loc = r->lx->tok.loc;
    const char *word = base_expect_name(r->lx, "a scope");

    if (o && word && !ir_scope_parse(word, &o->scope))
        base_fail(r->cx, TEC_INVALID, loc, "there is no scope '%s'", word);
}

/* ---- forms ---- */

/* One string, or several that stand one after the other: a line each. */
static const char *parse_lines(tec_context *cx, base_lexer *lx)
{
    base_text t = {0};

    if (lx->tok.kind != BASE_TOK_STRING)
        base_unexpected(lx, "a text in quotes");
    for (int n = 0; lx->tok.kind == BASE_TOK_STRING; n++) {
        base_addf(cx, &t, "%s%s", n ? "\n" : "", lx->tok.text);
        base_advance(lx);
    }
    return base_text_str(cx, &t);
}

/* body "..." */
static bool parse_form(tec_context *cx, base_lexer *lx, const char *text[TE_N_FORMS])
{
    for (int i = 0; i < TE_N_FORMS; i++) {
        if (!base_at(lx, te_form_text((te_form)i)))
            continue;
        if (text[i])
            base_fail(cx, TEC_INVALID, lx->tok.loc, "'%s' is given twice", te_form_text((te_form)i));
        base_advance(lx);
        text[i] = parse_lines(cx, lx);
        return !base_failed(cx);
    }
    return false;
}

/* False: there is none here, or an error. */
static bool read_operand(reader *r)
{
    if (base_accept(r->lx, "strides"))
        read_strides(r);
    else if (base_accept(r->lx, "align"))
        read_align(r);
    else if (base_accept(r->lx, "scope"))
        read_scope(r);
    else
        return false;
    return !base_failed(r->cx);
}

/* Operands and forms may stand in any order, between the outputs and the closing brace. */
void te_parse_intrinsic(tec_context *cx, base_lexer *lx, te_intrinsics *table)
{
    reader r = {.cx = cx, .lx = lx, .def = te_parse_open_def(cx, lx, 0)};
    const char *text[TE_N_FORMS] = {0};

    while (r.def && (read_operand(&r) || parse_form(cx, lx, text)))
        ;
    if (base_expect(lx, "}"))
        te_intrinsic_new(cx, table, r.def, &r.operands, &r.strides, text);
}

te_intrinsics *te_intrinsics_parse(tec_context *cx, const char *file, const char *text)
{
    te_intrinsics *table = base_new(cx, te_intrinsics);
    base_lexer *lx = base_lexer_new(cx, file, text);

    while (lx->tok.kind != BASE_TOK_END && !base_failed(cx))
        if (base_expect(lx, "intrinsic"))
            te_parse_intrinsic(cx, lx, table);
    if (!base_failed(cx) && table->list.n == 0)
        base_fail(cx, TEC_INVALID, (base_loc){.file = file},
                  "no intrinsic found: expected 'intrinsic NAME(...) { ... }'");
    return base_failed(cx) ? NULL : table;
}
