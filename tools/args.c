/* tools/args.c -- see args.h. */
#include "tools/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const tool_usage *u)
{
    printf("usage: tec %s [options] %s\n\n%s\n\noptions:\n", u->command, u->operands, u->what);
    for (int i = 0; i < u->n_options; i++) {
        const tool_option *o = &u->options[i];
        char head[80];

        snprintf(head, sizeof head, "%s%s%s%s", o->name[1] ? "--" : "-", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-24s %s\n", head, o->what);
    }
    printf("  %-24s %s\n", "--help", "this text");
}

static int wrong(const tool_usage *u, const char *what, const char *about)
{
    fprintf(stderr, "tec %s: %s '%s'\nTry 'tec %s --help'.\n", u->command, what, about, u->command);
    return TOOL_USAGE;
}

bool tool_number(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && errno == 0;
}

static void push(tool_list *l, const char *text)
{
    l->at = realloc(l->at, (size_t)(l->n + 1) * sizeof *l->at);
    if (!l->at)
        abort();
    l->at[l->n++] = text;
}

static int set_value(const tool_usage *u, const tool_option *o, const char *value)
{
    if (o->kind == TOOL_TEXT)
        *(const char **)o->out = value;
    else if (o->kind == TOOL_LIST)
        push(o->out, value);
    else if (!tool_number(value, o->out))
        return wrong(u, "expected a number, found", value);
    return TOOL_GO_ON;
}

/* The option that argv[i] names, and its value: "--name=value", or the next word. */
static int parse_option(const tool_usage *u, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 1 + (argv[*i][1] == '-'), *equal = strchr(name, '=');
    size_t length = equal ? (size_t)(equal - name) : strlen(name);

    for (int k = 0; k < u->n_options; k++) {
        const tool_option *o = &u->options[k];

        if (strlen(o->name) != length || strncmp(o->name, name, length) != 0)
            continue;
        if (o->kind == TOOL_FLAG) {
            *(bool *)o->out = true;
            return equal ? wrong(u, "this option takes no value:", argv[*i]) : TOOL_GO_ON;
        }
        if (equal)
            return set_value(u, o, equal + 1);
        if (*i + 1 >= argc)
            return wrong(u, "a value is missing behind", argv[*i]);
        return set_value(u, o, argv[++*i]);
    }
    return wrong(u, "there is no option", argv[*i]);
}

int tool_parse(const tool_usage *u, int argc, char **argv, tool_list *operands)
{
    bool only_operands = false;

    for (int i = 1; i < argc; i++) {
        int status = TOOL_GO_ON;

        if (!only_operands && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_help(u);
            return TOOL_OK;
        }
        if (!only_operands && strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (!only_operands && argv[i][0] == '-' && argv[i][1])
            status = parse_option(u, argc, argv, &i);
        else
            push(operands, argv[i]);
        if (status != TOOL_GO_ON)
            return status;
    }
    if (operands->n < u->least)
        return wrong(u, "an operand is missing:", u->operands);
    if (u->most >= 0 && operands->n > u->most)
        return wrong(u, "one operand too many:", operands->at[u->most]);
    return TOOL_GO_ON;
}

bool tool_pair(const char *text, const char **name, const char **value)
{
    const char *equal = strchr(text, '=');

    if (!equal || equal == text) {
        fprintf(stderr, "tec: expected NAME=VALUE, found '%s'\n", text);
        return false;
    }
    *name = strndup(text, (size_t)(equal - text));
    *value = equal + 1;
    return true;
}
