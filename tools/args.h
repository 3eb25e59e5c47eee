/* tools/args.h -- command-line options from one table for each command: parsing, --help, wrong usage.
 *
 *     const char *target = "native"; bool json = false; tool_list dims = {0};
 *     const tool_option options[] = {
 *         {"target", TOOL_TEXT, &target, "T", "what to compile for (native)"},
 *         {"dim", TOOL_LIST, &dims, "NAME=N", "value of a symbolic dimension; may be repeated"},
 *         {"json", TOOL_FLAG, &json, NULL, "print JSON"},
 *         {"format", TOOL_CHOICE, &format, "npy|pb", "format of the outputs (npy)"},
 *     };
 *     const tool_usage usage = {"compile", "MODEL.onnx", "compiles a model into a module", options, 3, 1, 1};
 *     if ((status = tool_parse(&usage, argc, argv, &files)) != TOOL_GO_ON) return status;
 *
 * Errors: an unknown option, a value that is missing, empty, given twice or outside of the option's kind is
 *   named on standard error, and the status is TOOL_USAGE.
 */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_GO_ON = -1 };

typedef enum {
    TOOL_FLAG,    /* bool; takes no value */
    TOOL_TEXT,    /* const char * */
    TOOL_LIST,    /* tool_list; the one kind that may be given more than once */
    TOOL_CHOICE,  /* const char *; one of the words of `value`, which stand between '|' */
    TOOL_TARGET,  /* const char *; the text of a target (target_parse) */
    TOOL_COUNT,   /* int64_t from 1 to TOOL_MOST */
    TOOL_AMOUNT,  /* int64_t from 1: of bytes or steps */
    TOOL_NATURAL, /* int64_t from 0 to TOOL_MOST */
    TOOL_NUMBER,  /* int64_t, any */
    TOOL_DECIMAL  /* double, not negative */
} tool_kind;

enum { TOOL_MOST = 1000000000 };

typedef struct {
    const char **at;
    int n;
} tool_list;

typedef struct {
    const char *name; /* without dashes; one letter: -x VALUE */
    tool_kind kind;
    void *out;         /* where the value goes; untouched when the option is not given */
    const char *value; /* its name in the help text */
    const char *what;
} tool_option;

/* The options of a command with many, put together from groups. */
enum { TOOL_MOST_OPTIONS = 64 };
typedef struct {
    tool_option at[TOOL_MOST_OPTIONS];
    int n;
} tool_options;
void tool_add_options(tool_options *all, const tool_option *option, int n);
#define TOOL_ADD(all, option) tool_add_options((all), (option), (int)(sizeof(option) / sizeof((option)[0])))

typedef struct {
    const char *command, *operands, *what;
    const tool_option *options;
    int n_options;
    int least, most; /* operands; most -1: any number */
} tool_usage;

/* Exit status, or TOOL_GO_ON. Options and operands mix; after "--" all are operands. `--help` prints the
 * table; `--list-options`, for scripts that complete command lines, prints a line "NAME KIND [VALUE]" for
 * each option. */
int tool_parse(const tool_usage *usage, int argc, char **argv, tool_list *operands);
/* Prints "PROGRAM COMMAND: ..." and where to look further; TOOL_USAGE. */
int tool_misuse(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for a target's text with its precision. */
typedef struct {
    char text[1000];
} tool_target_text;
/* Adds the value of --precision to the text of a target, NULL: native; without a value the text stays. The
 * text with it lies in `room`. A target that has no such precision is reported: TOOL_USAGE. */
int tool_take_precision(const char *command, const char **machine, const char *precision,
                        tool_target_text *room);
#define TOOL_PRECISION_VALUE "exact|tf32|fast"
#define TOOL_PRECISION_HELP                                                                                  \
    "how far kernels may depart from the arithmetic of the definition: tf32: products of f32 by tensor "     \
    "cores, which round the factors; fast: also approximate divisions, roots and functions (default: exact)"

/* "NAME=VALUE" cut at the first '='; false: there is none, reported. */
bool tool_pair(const char *command, const char *text, const char **name, const char **value);
bool tool_number(const char *text, int64_t *out);

#endif
