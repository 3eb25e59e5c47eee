/* lang/params.c -- see params.h. A .safetensors file is
 *
 *     8 bytes: length of the header | {"W":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}} | data
 *
 * The header is JSON, whose tokens the lexer of all text forms reads. Members of a tensor may stand in any
 * order; "__metadata__" is stepped over.
 */
#include "lang/params.h"

#include <string.h>

#include "base/lexer.h"
#include "ir/build.h"

enum { MAX_RANK = 16 };

/* One tensor of the header. */
typedef struct {
    const char *dtype;
    int rank;
    int64_t shape[MAX_RANK], from, to; /* bytes of the data */
} entry;

struct lang_params {
    const char *path;  /* NULL: all values are zero */
    base_dict entries; /* entry * */
    const char *data;
    int64_t bytes;
};

/* ---- the header ---- */

/* [1, 2]: at most `most` numbers; how many there are, -1 with an error. */
static int read_numbers(base_lexer *lx, int64_t *out, int most)
{
    int n = 0;

    if (!base_expect(lx, "["))
        return -1;
    while (!base_at(lx, "]") && !base_failed(lx->cx)) {
        if (n == most) {
            base_unexpected(lx, "']'");
            return -1;
        }
        base_expect_int(lx, "a number", &out[n++]);
        if (!base_accept(lx, ","))
            break;
    }
    return base_expect(lx, "]") ? n : -1;
}

static const char *read_string(base_lexer *lx)
{
    const char *text = lx->tok.text;

    if (lx->tok.kind != BASE_TOK_STRING) {
        base_unexpected(lx, "a string");
        return NULL;
    }
    base_advance(lx);
    return text;
}

/* "dtype":"F32" and the like; a member of another name is refused, as its meaning is unknown. */
static bool read_member(base_lexer *lx, entry *out)
{
    const base_loc loc = lx->tok.loc;
    const char *name = read_string(lx);
    int64_t range[2];

    if (!name || !base_expect(lx, ":"))
        return false;
    if (base_same(name, "dtype"))
        return (out->dtype = read_string(lx)) != NULL;
    if (base_same(name, "shape"))
        return (out->rank = read_numbers(lx, out->shape, MAX_RANK)) >= 0;
    if (!base_same(name, "data_offsets"))
        return base_fail(lx->cx, TEC_INVALID, loc, "a tensor has no member '%s'", name);
    if (read_numbers(lx, range, 2) != 2)
        return base_fail(lx->cx, TEC_INVALID, loc, "expected two offsets");
    out->from = range[0];
    out->to = range[1];
    return true;
}

static bool read_entry(base_lexer *lx, entry *out)
{
    if (!base_expect(lx, "{"))
        return false;
    do {
        if (!read_member(lx, out))
            return false;
    } while (base_accept(lx, ","));
    return base_expect(lx, "}");
}

/* Texts about the file, which do not matter here. */
static bool skip_metadata(base_lexer *lx)
{
    if (!base_expect(lx, "{"))
        return false;
    while (!base_at(lx, "}")) {
        if (!read_string(lx) || !base_expect(lx, ":") || !read_string(lx))
            return false;
        if (!base_accept(lx, ","))
            break;
    }
    return base_expect(lx, "}");
}

/* {"NAME": {...}, ...}, in any order. */
static bool read_header(lang_params *params, base_lexer *lx)
{
    if (!base_expect(lx, "{"))
        return false;
    while (!base_at(lx, "}")) {
        const char *name = read_string(lx);
        entry *e = base_new(lx->cx, entry);

        if (!name || !base_expect(lx, ":"))
            return false;
        if (base_same(name, "__metadata__") ? !skip_metadata(lx) : !read_entry(lx, e))
            return false;
        if (!base_same(name, "__metadata__"))
            base_dict_put(lx->cx, &params->entries, name, e);
        if (!base_accept(lx, ","))
            break;
    }
    return base_expect(lx, "}");
}

/* Little-endian on every machine. */
static uint64_t length_of(const unsigned char *bytes)
{
    uint64_t n = 0;

    for (int i = 0; i < 8; i++)
        n |= (uint64_t)bytes[i] << 8 * i;
    return n;
}

/* The file stays in memory: values are copied out of it when they are asked for. */
lang_params *lang_params_read(tec_context *cx, const char *path)
{
    lang_params *params = base_new(cx, lang_params);
    size_t size;
    const char *bytes = base_read_file(cx, path, &size);

    if (!bytes)
        return NULL;
    uint64_t header = size >= 8 ? length_of((const unsigned char *)bytes) : UINT64_MAX;
    if (header > size - 8 || size < 8)
        return base_fail(cx, TEC_INVALID, (base_loc){path, 0, 0, NULL}, "is no .safetensors file"), NULL;
    *params = (lang_params){
        .path = base_strdup(cx, path), .data = bytes + 8 + header, .bytes = (int64_t)(size - 8 - header)};
    const char *text = base_format(cx, "%.*s", (int)header, bytes + 8);
    return read_header(params, base_lexer_new(cx, params->path, text)) ? params : NULL;
}

lang_params *lang_params_zero(tec_context *cx)
{
    return base_new(cx, lang_params);
}

/* ---- values ---- */

/* "F32" and the like; false: tec has no such type. */
static bool dtype_of(const char *name, base_dtype *out)
{
    const struct {
        const char *name;
        base_dtype dtype;
    } all[] = {{"F64", BASE_F64},  {"F32", BASE_F32}, {"F16", BASE_F16}, {"BF16", BASE_BF16},
               {"I64", BASE_I64},  {"I32", BASE_I32}, {"I16", BASE_I16}, {"I8", BASE_I8},
               {"U64", BASE_U64},  {"U32", BASE_U32}, {"U16", BASE_U16}, {"U8", BASE_U8},
               {"BOOL", BASE_BOOL}};

    for (int i = 0; name && i < BASE_COUNT(all); i++)
        if (base_same(all[i].name, name)) {
            *out = all[i].dtype;
            return true;
        }
    return false;
}

static bool is_of_type(const entry *found, const op_type *type)
{
    base_dtype dtype;
    bool same =
        dtype_of(found->dtype, &dtype) && base_dtype_same(dtype, type->dtype) && found->rank == type->n;
    int64_t extent;

    for (int d = 0; same && d < type->n; d++)
        same = ir_is_int(type->dim[d], &extent) && extent == found->shape[d];
    return same;
}

static const char *shape_text(tec_context *cx, const entry *found)
{
    base_text text = {0};

    base_addf(cx, &text, "%s[", found->dtype ? found->dtype : "?");
    for (int d = 0; d < found->rank; d++)
        base_addf(cx, &text, "%s%lld", d ? ", " : "", (long long)found->shape[d]);
    base_addf(cx, &text, "]");
    return base_text_str(cx, &text);
}

/* The extents are numbers: lang_parse has looked. */
static int64_t bytes_of(const op_type *type)
{
    int64_t bytes = base_dtype_bytes(type->dtype), extent;

    for (int d = 0; d < type->n; d++)
        bytes *= ir_is_int(type->dim[d], &extent) ? extent : 0;
    return bytes;
}

/* A copy, since the bytes of the file are not aligned. */
const op_constant *lang_param(tec_context *cx, const lang_params *params, const char *name,
                              const op_type *type)
{
    op_constant *c = base_new(cx, op_constant);
    const entry *found = params->path ? base_dict_get(&params->entries, name) : NULL;

    *c = (op_constant){.type = *type, .bytes = bytes_of(type)};
    if (!params->path) {
        c->data = base_zeros(cx, (size_t)c->bytes);
        return c;
    }
    if (!found)
        return base_fail(cx, TEC_INVALID, base_where(cx), "%s has no tensor '%s'", params->path, name), NULL;
    if (!is_of_type(found, type))
        return base_fail(cx, TEC_INVALID, base_where(cx), "the parameter '%s' is %s in %s", name,
                         shape_text(cx, found), params->path),
               NULL;
    if (found->from < 0 || found->to > params->bytes || found->to - found->from != c->bytes)
        return base_fail(cx, TEC_INVALID, base_where(cx), "the bytes of '%s' do not lie in %s", name,
                         params->path),
               NULL;
    c->data = base_copy(cx, params->data + found->from, (size_t)c->bytes);
    return c;
}
