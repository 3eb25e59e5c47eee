/* tools/args.h -- command-line options from one table for each command: parsing, --help, wrong usage.
 *
 *     const char *target = "native"; bool json = false; tool_list dims = {0};
 *     const tool_option options[] = {
 *         {"target", TOOL_TEXT, &target, "T", "what to compile for (native)"},
 *         {"dim", TOOL_LIST, &dims, "NAME=N", "value of a symbolic dimension; may be repeated"},
 *         {"json", TOOL_FLAG, &json, NULL, "print JSON"},
 *     };
 *     const tool_usage usage = {"compile", "MODEL.onnx", "compiles a model into a module", options, 3, 1, 1};
 *     if ((status = tool_parse(&usage, argc, argv, &files)) != TOOL_GO_ON) return status;
 */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_GO_ON = -1 };

typedef enum { TOOL_FLAG, TOOL_TEXT, TOOL_INT, TOOL_LIST } tool_kind;

typedef struct {
    const char **at;
    int n;
} tool_list;

typedef struct {
    const char *name; /* without dashes; one letter: -x VALUE */
    tool_kind kind;
    void *out; /* bool *, const char **, int64_t *, tool_list * */
    const char *value; /* its name in the help text */
    const char *what;
} tool_option;

typedef struct {
    const char *command, *operands, *what;
    const tool_option *options;
    int n_options;
    int least, most; /* operands; most -1: any number */
} tool_usage;

/* Exit status, or TOOL_GO_ON. Options and operands mix; after "--" all are operands. */
int tool_parse(const tool_usage *u, int argc, char **argv, tool_list *operands);
/* "NAME=VALUE" cut at the first '='; false: there is none, reported. */
bool tool_pair(const char *text, const char **name, const char **value);
bool tool_number(const char *text, int64_t *out);

#endif
