/* tools/check_program.c -- `tec check-program`: whether a program's text is well typed. */
#include <stdio.h>

#include "graph/text.h"
#include "lang/lang.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"

/* The verifier has run within lang_parse. */
static int check(tec_context *cx, const char *path, bool print)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    const graph_module *module = text ? lang_parse(cx, path, text, lang_params_zero(cx)) : NULL;

    if (!module)
        return tool_fail("check-program", cx);
    if (print)
        printf("%s", graph_text(cx, module, 0));
    else
        printf("%s: %d data types, %d functions\n", path, module->data.n, module->functions.n);
    return TOOL_OK;
}

/* The command: prints nothing about a program that is well typed, or its graph. */
int tool_check_program(int argc, char **argv)
{
    bool print = false;
    tool_list files = {0};
    const tool_option options[] = {{"graph", TOOL_FLAG, &print, NULL, "prints the graph of the program"}};
    const tool_usage usage = {"check-program",
                              "FILE.tecp",
                              "Reads a program and reports errors of its syntax and types.",
                              options,
                              BASE_COUNT(options),
                              1,
                              1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    tec_context *cx = tool_context();
    status = check(cx, files.at[0], print);
    tec_context_free(cx);
    return status;
}
