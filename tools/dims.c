/* tools/dims.c -- see dims.h. */
#include "tools/dims.h"

#include <stdlib.h>
#include <string.h>

#include "tools/data.h"

/* Whether one of the first n dimensions has that name. */
static bool is_given(const tool_dims *dims, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(dims->at[i].name, name) == 0)
            return true;
    return false;
}

/* NAME=N as given to --dim. False after a message. */
static bool read_dim(const char *command, const char *text, tool_dims *out)
{
    tool_dim *dim = &out->at[out->n];
    const char *value;

    if (!tool_pair(command, text, &dim->name, &value))
        return false;
    if (!tool_number(value, &dim->value) || dim->value < 0) {
        tool_misuse(command, "--dim %s: expected an extent of 0 or more, found '%s'", dim->name, value);
        return false;
    }
    if (is_given(out, out->n, dim->name)) {
        tool_misuse(command, "--dim %s is given twice", dim->name);
        return false;
    }
    out->n++;
    return true;
}

bool tool_read_dims(const char *command, const tool_list *list, tool_dims *out)
{
    *out = (tool_dims){.at = calloc((size_t)list->n + 1, sizeof *out->at)};
    for (int i = 0; i < list->n; i++)
        if (!out->at || !read_dim(command, list->at[i], out))
            return false;
    return true;
}

/* Notes that the dimension was of use, for tool_unused_dim. */
const int64_t *tool_find_dim(tool_dims *dims, const char *name)
{
    for (int i = 0; i < dims->n; i++)
        if (strcmp(dims->at[i].name, name) == 0) {
            dims->at[i].used = true;
            return &dims->at[i].value;
        }
    return NULL;
}

const char *tool_unused_dim(const tool_dims *dims)
{
    for (int i = 0; i < dims->n; i++)
        if (!dims->at[i].used)
            return dims->at[i].name;
    return NULL;
}

/* The definition with the given symbols as constants; the others stay. Symbols that are not given stay
 * symbols. */
te_def *tool_specialise(tec_context *cx, te_def *def, tool_dims *dims)
{
    const ir_expr **symbol = base_array(cx, const ir_expr *, def->symbols.n),
                  **value = base_array(cx, const ir_expr *, def->symbols.n);
    int n = 0;

    for (int i = 0; i < def->symbols.n; i++) {
        const ir_expr *s = def->symbols.at[i];
        const int64_t *given = tool_find_dim(dims, s->var.name);

        if (given) {
            symbol[n] = s;
            value[n++] = ir_int(cx, *given);
        }
    }
    return n ? te_specialise(cx, def, symbol, value, n) : def;
}

onnx_options tool_import_options(tec_context *cx, tool_dims *dims)
{
    onnx_dim *at = base_array(cx, onnx_dim, dims->n);

    for (int i = 0; i < dims->n; i++)
        at[i] = (onnx_dim){dims->at[i].name, dims->at[i].value};
    return (onnx_options){.dims = at, .n_dims = dims->n, .unknown_dim = &dims->unknown};
}

int tool_fail_dims(const char *command, tec_context *cx, const tool_dims *dims)
{
    int status = tool_fail(command, cx);

    return dims->unknown ? TOOL_USAGE : status;
}
