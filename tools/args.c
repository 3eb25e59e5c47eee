/* tools/args.c -- see args.h.
 *
 * One table for each command says everything about its options: how they are read, where their values go,
 * what the help says, and what --list-options prints for the completion of shells. A mistake is told in one
 * line, on standard error, and ends with status 2.
 */
#include "tools/args.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets/target.h"

enum { HELP_COLUMN = 27, HELP_WIDTH = 100 };

void tool_add_options(tool_options *all, const tool_option *option, int n)
{
    assert(n <= TOOL_MOST_OPTIONS - all->n);
    memcpy(all->at + all->n, option, (size_t)n * sizeof *option);
    all->n += n;
}

/* Prints words from column `column` on, with lines of HELP_WIDTH that continue at that column. */
static void print_filled(const char *text, int column)
{
    int at = column;

    while (*text) {
        int length = (int)strcspn(text, " ");

        if (at > column && at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    printf("\n");
}

/* An option and its meaning; a long option has a line of its own. */
static void print_option(const char *dash, const char *name, const char *value, const char *what)
{
    int at = printf("  %s%s%s%s ", dash, name, value ? " " : "", value ? value : "");

    if (at > HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - at, "");
    print_filled(what, HELP_COLUMN);
}

static void print_help(const tool_usage *usage)
{
    printf("usage: %s %s [options]%s%s\n\n", program_invocation_short_name, usage->command,
           *usage->operands ? " " : "", usage->operands);
    print_filled(usage->what, 0);
    printf("\noptions:\n");
    for (int i = 0; i < usage->n_options; i++)
        print_option(usage->options[i].name[1] ? "--" : "-", usage->options[i].name, usage->options[i].value,
                     usage->options[i].what);
    print_option("--", "help", NULL, "prints this text");
}

/* ---- what is wrong ---- */

static int try_help(const char *command)
{
    fprintf(stderr, "\nTry '%s %s --help'.\n", program_invocation_short_name, command);
    return TOOL_USAGE;
}

/* Status 2, as programs of Unix have it for wrong words; what went wrong inside gives 1. */
int tool_misuse(const char *command, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "%s %s: ", program_invocation_short_name, command);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    return try_help(command);
}

static const char *dashes(const tool_option *option)
{
    return option->name[1] ? "--" : "-";
}

static int wrong_value(const tool_usage *usage, const tool_option *option, const char *expected,
                       const char *found)
{
    return tool_misuse(usage->command, "%s%s: expected %s, found '%s'", dashes(option), option->name,
                       expected, found);
}

/* ---- values ---- */

/* Decimal, and nothing behind it. */
bool tool_number(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && errno == 0;
}

/* The bounds also refuse NaN and inf. */
static bool read_decimal(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return *text && !*end && *out >= 0 && *out <= 1e300;
}

/* Whether `word` is one of the words between '|' in `choices`. */
static bool is_choice(const char *choices, const char *word)
{
    size_t length = strlen(word);

    for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (strcspn(c, "|") == length && strncmp(c, word, length) == 0)
            return true;
    return false;
}

/* Grows by one: command lines are short. Without memory the program ends, as nothing has been begun. */
static void push(tool_list *list, const char *text)
{
    list->at = realloc(list->at, (size_t)(list->n + 1) * sizeof *list->at);
    if (!list->at)
        abort();
    list->at[list->n++] = text;
}

/* TOOL_NUMBER takes any, TOOL_NATURAL from 0, TOOL_COUNT and TOOL_AMOUNT from 1. */
static int set_number(const tool_usage *usage, const tool_option *option, const char *value)
{
    int64_t least = option->kind == TOOL_COUNT ? 1 : 0, n;

    if (!tool_number(value, &n))
        return wrong_value(usage, option, "a whole number", value);
    if (option->kind == TOOL_AMOUNT && n < 1)
        return wrong_value(usage, option, "a number from 1 on", value);
    if ((option->kind == TOOL_COUNT || option->kind == TOOL_NATURAL) && (n < least || n > TOOL_MOST))
        return wrong_value(usage, option,
                           least ? "a number from 1 to 1000000000" : "a number from 0 to 1000000000", value);
    *(int64_t *)option->out = n;
    return TOOL_GO_ON;
}

/* A target is parsed again where the command needs it: here only what is wrong with its text is found. */
static int set_target(const tool_usage *usage, const tool_option *option, const char *value)
{
    tec_context *cx = tec_context_new();
    int status = TOOL_GO_ON;

    if (!target_parse(cx, value))
        status = tool_misuse(usage->command, "%s%s: %s", dashes(option), option->name, tec_context_error(cx));
    tec_context_free(cx);
    *(const char **)option->out = value;
    return status;
}

/* The target with the precision is parsed here only to find what is wrong with it, as set_target does. */
int tool_take_precision(const char *command, const char **machine, const char *precision,
                        tool_target_text *room)
{
    int n, status = TOOL_GO_ON;

    if (!precision)
        return TOOL_GO_ON;
    n = snprintf(room->text, sizeof room->text, "%s -precision=%s", *machine ? *machine : "native",
                 precision);
    if (n >= (int)sizeof room->text)
        return tool_misuse(command, "--target: expected at most %zu characters", sizeof room->text);
    tec_context *cx = tec_context_new();
    *machine = room->text;
    if (!target_parse(cx, room->text))
        status = tool_misuse(command, "--precision: %s", tec_context_error(cx));
    tec_context_free(cx);
    return status;
}

/* Puts the value where the option's row says, or reports why the value is none of its kind. */
static int set_value(const tool_usage *usage, const tool_option *option, const char *value)
{
    if (!*value)
        return tool_misuse(usage->command, "%s%s: expected %s, found nothing", dashes(option), option->name,
                           option->value);
    switch (option->kind) {
    case TOOL_FLAG:
        return tool_misuse(usage->command, "%s%s takes no value, found '%s'", dashes(option), option->name,
                           value);
    case TOOL_TEXT: *(const char **)option->out = value; return TOOL_GO_ON;
    case TOOL_LIST: push(option->out, value); return TOOL_GO_ON;
    case TOOL_CHOICE:
        if (!is_choice(option->value, value))
            return wrong_value(usage, option, option->value, value);
        *(const char **)option->out = value;
        return TOOL_GO_ON;
    case TOOL_TARGET: return set_target(usage, option, value);
    case TOOL_DECIMAL:
        return read_decimal(value, option->out)
                   ? TOOL_GO_ON
                   : wrong_value(usage, option, "a number that is not negative", value);
    case TOOL_COUNT:
    case TOOL_AMOUNT:
    case TOOL_NATURAL:
    case TOOL_NUMBER: return set_number(usage, option, value);
    }
    return TOOL_GO_ON;
}

/* ---- options ---- */

enum { MAX_OPTIONS = 64 };

/* `i` is the word that is read; `given` finds an option that is given twice. */
typedef struct {
    const tool_usage *u;
    char **argv;
    int argc, i;
    bool given[MAX_OPTIONS];
} parser;

/* The row of an option's name; -1: none. */
static int find_option(const tool_usage *usage, const char *name, size_t length)
{
    for (int k = 0; k < usage->n_options; k++)
        if (strlen(usage->options[k].name) == length && strncmp(usage->options[k].name, name, length) == 0)
            return k;
    return -1;
}

/* The option that argv[i] names, and its value: "--name=value", or the next word. One dash or two: -target
 * and --target are the same. */
static int parse_option(parser *self)
{
    const tool_usage *usage = self->u;
    const char *word = self->argv[self->i], *name = word + 1 + (word[1] == '-'), *equal = strchr(name, '=');
    int k = find_option(usage, name, equal ? (size_t)(equal - name) : strlen(name));
    const tool_option *option = &usage->options[k];

    if (k < 0)
        return tool_misuse(usage->command, "there is no option '%s'", word);
    if (self->given[k] && option->kind != TOOL_LIST)
        return tool_misuse(usage->command, "%s%s is given twice", dashes(option), option->name);
    self->given[k] = true;
    if (equal)
        return set_value(usage, option, equal + 1);
    if (option->kind == TOOL_FLAG) {
        *(bool *)option->out = true;
        return TOOL_GO_ON;
    }
    if (self->i + 1 >= self->argc)
        return tool_misuse(usage->command, "%s: expected %s behind it", word, option->value);
    return set_value(usage, option, self->argv[++self->i]);
}

/* One option a line, for the completion of shells. */
static void list_options(const tool_usage *usage)
{
    static const char *const kinds[] = {"flag",  "text",   "list",    "choice", "target",
                                        "count", "amount", "natural", "number", "decimal"};

    for (int i = 0; i < usage->n_options; i++) {
        const tool_option *option = &usage->options[i];

        printf("%s%s %s%s%s\n", dashes(option), option->name, kinds[option->kind], option->value ? " " : "",
               option->value ? option->value : "");
    }
}

static int check_operands(const tool_usage *usage, const tool_list *operands)
{
    if (operands->n < usage->least)
        return tool_misuse(usage->command, "an operand is missing: %s", usage->operands);
    if (usage->most >= 0 && operands->n > usage->most)
        return tool_misuse(usage->command, "one operand too many: '%s'", operands->at[usage->most]);
    return TOOL_GO_ON;
}

/* Options in any place, operands into *operands; behind "--" everything is an operand. TOOL_GO_ON, or the
 * exit status for a help text that was printed or a mistake that was reported. */
int tool_parse(const tool_usage *usage, int argc, char **argv, tool_list *operands)
{
    parser p = {.u = usage, .argv = argv, .argc = argc};
    bool only_operands = false;

    for (p.i = 1; p.i < argc; p.i++) {
        const char *word = argv[p.i];
        int status = TOOL_GO_ON;

        if (!only_operands && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            print_help(usage);
            return TOOL_OK;
        }
        if (!only_operands && strcmp(word, "--list-options") == 0) {
            list_options(usage);
            return TOOL_OK;
        }
        if (!only_operands && strcmp(word, "--") == 0)
            only_operands = true;
        else if (!only_operands && word[0] == '-' && word[1])
            status = parse_option(&p);
        else
            push(operands, word);
        if (status != TOOL_GO_ON)
            return status;
    }
    return check_operands(usage, operands);
}

/* The name is copied, the value is not. */
bool tool_pair(const char *command, const char *text, const char **name, const char **value)
{
    const char *equal = strchr(text, '=');

    if (!equal || equal == text || !equal[1]) {
        tool_misuse(command, "expected NAME=VALUE, found '%s'", text);
        return false;
    }
    *name = strndup(text, (size_t)(equal - text));
    *value = equal + 1;
    return true;
}
