/* tools/opt.c -- `tec opt`: any slice of the lowering on a printed program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "lower/pass.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/limits.h"

static void list_passes(void)
{
    for (int i = 0; i < lower_n_passes; i++)
        printf("%-20s %s\n", lower_passes[i].name, lower_passes[i].what);
}

/* "a,b,c" cut at the commas. */
static const char **split_names(tec_context *cx, const char *list, int *count)
{
    base_vec names = {0};

    while (list && *list) {
        size_t length = strcspn(list, ",");

        base_push(cx, &names, base_strndup(cx, list, length));
        list += length + (list[length] == ',');
    }
    *count = names.n;
    return (const char **)names.at;
}

/* Standard input may be a pipe, whose size is not known. */
static char *read_all(tec_context *cx, const char *path)
{
    base_text t = {0};
    char buffer[4096];
    size_t got, size;

    if (strcmp(path, "-") != 0)
        return base_read_file(cx, path, &size);
    while ((got = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        base_addn(cx, &t, buffer, got);
    return (char *)base_text_str(cx, &t);
}

/* Runs the named passes in this order, or all that apply to the target, on the program of the file. Names are
 * checked before anything runs. */
static int optimise(tec_context *cx, const char *path, const char *passes, const char *target_name)
{
    const target *t = tool_target(cx, target_name, 0);
    char *text = t ? read_all(cx, path) : NULL;
    const ir_program *program = text ? ir_parse_program(cx, path, text) : NULL;
    lower_options o = {.cx = cx, .target = t};
    int n;
    const char **names = split_names(cx, passes, &n);

    for (int i = 0; program && i < n; i++)
        if (!lower_find(names[i])) {
            fprintf(stderr, "tec opt: there is no pass '%s'; 'tec opt --list' names them\n", names[i]);
            return TOOL_USAGE;
        }
    if (program)
        program = passes ? lower_run_passes(&o, program, names, n) : lower_run(&o, program);
    if (!program)
        return tool_fail("opt", cx);
    printf("%s", ir_program_text(cx, program));
    return TOOL_OK;
}

/* The command: reads its options and runs passes, or lists them. */
int tool_opt(int argc, char **argv)
{
    const char *passes = NULL, *target_name = "native";
    bool list = false;
    tool_list files = {0}, limits = {0};
    const tool_option options[] = {
        {"passes", TOOL_TEXT, &passes, "A,B,...",
         "the passes to run, in this order (default: all passes of the target)"},
        {"target", TOOL_TARGET, &target_name, "T", "the target to lower for (default: native, this machine)"},
        {"limit", TOOL_LIST, &limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
        {"list", TOOL_FLAG, &list, NULL, "prints the names of the passes, one a line"},
    };
    const tool_usage usage = {"opt",
                              "FILE",
                              "Runs lowering passes on a loop program in text form and prints the result. "
                              "FILE - is standard input.",
                              options,
                              BASE_COUNT(options),
                              0,
                              1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    if (list) {
        list_passes();
        return TOOL_OK;
    }
    if (files.n == 0) {
        fprintf(stderr, "tec opt: an operand is missing: FILE\n");
        return TOOL_USAGE;
    }
    tec_context *cx = tool_context();
    status =
        tool_set_limits("opt", cx, &limits) ? optimise(cx, files.at[0], passes, target_name) : TOOL_USAGE;
    tec_context_free(cx);
    return status;
}
