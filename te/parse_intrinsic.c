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
static te_operand *find_operand(reader *in)
{
    base_loc loc = in->lx->tok.loc;
    const char *name = base_expect_name(in->lx, "the name of a tensor");
    const te_tensor *tensor = name ? te_tensor_named(in->def, name) : NULL;

    if (name && !tensor)
        return base_fail(in->cx, TEC_INVALID, loc, "'%s' is not a tensor of '%s'", name, in->def->name);
    for (int i = 0; tensor && i < in->operands.n; i++)
        if (((te_operand *)in->operands.at[i])->buffer == tensor->buffer)
            return in->operands.at[i];
    if (!tensor)
        return NULL;
    te_operand *operand = base_new(in->cx, te_operand);
    operand->buffer = tensor->buffer;
    base_push(in->cx, &in->operands, operand);
    return operand;
}

/* Two operands with one name for a stride have the same stride. A symbol's name is refused, or a call could
 * not tell the two apart. */
static const ir_expr *stride_named(reader *in, const char *name)
{
    for (int i = 0; i < in->strides.n; i++)
        if (base_same(((const ir_expr *)in->strides.at[i])->var.name, name))
            return in->strides.at[i];
    for (int i = 0; i < in->def->symbols.n; i++)
        if (base_same(((const ir_expr *)in->def->symbols.at[i])->var.name, name))
            return base_fail(in->cx, TEC_INVALID, base_where(in->cx),
                             "stride '%s' has the same name as a symbol", name);
    const ir_expr *var = ir_var(in->cx, name, BASE_I64);
    base_push(in->cx, &in->strides, (void *)var);
    return var;
}

static const ir_expr *read_stride(reader *in)
{
    int64_t n;

    base_set_where(in->cx, in->lx->tok.loc);
    if (in->lx->tok.kind == BASE_TOK_NAME)
        return stride_named(in, base_expect_name(in->lx, "a stride"));
    return base_expect_int(in->lx, "a stride: a name or a number", &n) ? ir_int(in->cx, n) : NULL;
}

/* Behind `strides`: a[lda, 1] */
static void read_strides(reader *in)
{
    base_loc loc = in->lx->tok.loc;
    te_operand *operand = find_operand(in);
    base_vec strides = {0};

    base_expect(in->lx, "[");
    do
        base_push(in->cx, &strides, (void *)read_stride(in));
    while (base_accept(in->lx, ","));
    if (!base_expect(in->lx, "]") || !operand)
        return;
    if (strides.n != operand->buffer->n)
        base_fail(in->cx, TEC_INVALID, loc, "'%s' has %d dimensions, but %d strides are given",
                  operand->buffer->name, operand->buffer->n, strides.n);
    operand->strides = (const ir_expr *const *)strides.at;
}

/* Behind `align`: a 64 */
static void read_align(reader *in)
{
    te_operand *operand = find_operand(in);
    base_loc loc = in->lx->tok.loc;
    int64_t bytes;

    if (!base_expect_int(in->lx, "a number of bytes", &bytes) || !operand)
        return;
    if (bytes < 1 || bytes > 4096 || (bytes & (bytes - 1)))
        base_fail(in->cx, TEC_INVALID, loc, "expected a power of two up to 4096 as the alignment, found %lld",
                  (long long)bytes);
    operand->align = (int)bytes;
}

/* Behind `scope`: a local */
static void read_scope(reader *in)
{
    te_operand *o = find_operand(in);
    base_loc loc = in->lx->tok.loc;
    const char *word = base_expect_name(in->lx, "a scope");

    if (o && word && !ir_scope_parse(word, &o->scope))
        base_fail(in->cx, TEC_INVALID, loc, "there is no scope '%s'", word);
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
static bool read_operand(reader *in)
{
    if (base_accept(in->lx, "strides"))
        read_strides(in);
    else if (base_accept(in->lx, "align"))
        read_align(in);
    else if (base_accept(in->lx, "scope"))
        read_scope(in);
    else
        return false;
    return !base_failed(in->cx);
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
