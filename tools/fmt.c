/* tools/fmt.c -- `tec fmt`: programs in their canonical layout. */
#include <stdio.h>
#include <string.h>

#include "lang/format.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"

typedef enum { PRINT, CHECK, WRITE } action;

/* All of standard input, to its end. */
static const char *read_input(tec_context *cx)
{
    base_text text = {0};
    char piece[4096];

    for (size_t n; (n = fread(piece, 1, sizeof piece, stdin)) > 0;)
        base_addn(cx, &text, piece, n);
    return base_text_str(cx, &text);
}

/* One file; false with an error, or where --check finds a difference. A file that is in its layout already is
 * not written. */
static bool format_file(tec_context *cx, const char *path, action how)
{
    bool input = strcmp(path, "-") == 0;
    size_t size;
    const char *text = input ? read_input(cx) : base_read_file(cx, path, &size);
    const char *result = text ? lang_format(cx, input ? "<stdin>" : path, text) : NULL;

    if (!result)
        return false;
    bool same = strcmp(text, result) == 0;
    if (how == CHECK && !same)
        puts(path);
    else if (how == PRINT || (how == WRITE && input))
        fputs(result, stdout);
    else if (how == WRITE && !same)
        return base_write_file(cx, path, result, strlen(result));
    return how != CHECK || same;
}

/* Goes on after a faulty file, so that each one is named; every file has a context of its own. */
static int format_all(const tool_list *files, action how)
{
    int status = TOOL_OK;

    for (int i = 0; i < files->n; i++) {
        tec_context *cx = tool_context();

        if (!format_file(cx, files->at[i], how))
            status = base_failed(cx) ? tool_fail("fmt", cx) : TOOL_FAILED;
        tec_context_free(cx);
    }
    return status;
}

/* The command: prints, unless the files are only to be checked or rewritten. */
int tool_fmt(int argc, char **argv)
{
    bool check = false, replace = false;
    tool_list files = {0};
    const tool_option options[] = {{"check", TOOL_FLAG, &check, NULL,
                                    "prints the names of files that differ from their layout; exit 1 if any"},
                                   {"write", TOOL_FLAG, &replace, NULL, "rewrites the files that differ"},
                                   {"i", TOOL_FLAG, &replace, NULL, "the same as --write"}};
    const tool_usage usage = {
        "fmt",
        "FILE.tecp...",
        "Prints programs in their canonical layout; comments stay. '-' is standard input.",
        options,
        BASE_COUNT(options),
        1,
        -1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    if (check && replace)
        return tool_misuse("fmt", "--check and --write exclude each other");
    return format_all(&files, check ? CHECK : replace ? WRITE : PRINT);
}
