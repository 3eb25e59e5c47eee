/* lang/api.c -- programs in the public API: include/tec/graph.h over lang/lang.h, lang/format.h. */
#include "base/guard.h"
#include "lang/format.h"
#include "lang/lang.h"
#include "tec/graph.h"

/* The text of the file; a program for the VM even where it has no control flow. */
tec_graph *tec_graph_read_program(tec_context *cx, const char *path, const char *params)
{
    size_t size;

    BASE_GUARD(cx, NULL);
    if (!path)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no path of a program");
    const char *text = base_read_file(cx, path, &size);
    const lang_params *values = params ? lang_params_read(cx, params) : NULL;

    graph_module *module = text && (values || !params) ? lang_parse(cx, path, text, values) : NULL;
    if (module)
        module->for_vm = true;
    return module;
}

const char *tec_graph_format_program(tec_context *cx, const char *path, const char *text)
{
    BASE_GUARD(cx, NULL);
    if (!text)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no text of a program");
    return lang_format(cx, path ? path : "program", text);
}
