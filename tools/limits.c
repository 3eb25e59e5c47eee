/* tools/limits.c -- see limits.h. */
#include "tools/limits.h"

#include <stdio.h>
#include <string.h>

/* Whether an earlier value of the list begins with the same name. */
static bool is_given_twice(const tool_list *list, int index, const char *name)
{
    size_t n = strlen(name);

    for (int i = 0; i < index; i++)
        if (strncmp(list->at[i], name, n) == 0 && list->at[i][n] == '=')
            return true;
    return false;
}

/* One value of --limit: NAME=N. */
static bool set_one(const char *command, tec_context *cx, const tool_list *list, int index)
{
    const char *name, *value;
    int64_t n;

    if (!tool_pair(command, list->at[index], &name, &value))
        return false;
    if (!tool_number(value, &n))
        tool_misuse(command, "--limit %s: expected a whole number, found '%s'", name, value);
    else if (is_given_twice(list, index, name))
        tool_misuse(command, "--limit %s is given twice", name);
    else if (!tec_context_set_limit(cx, name, n))
        tool_misuse(command, "--limit %s=%s: %s", name, value, tec_context_error(cx) + strlen("error: "));
    else
        return true;
    return false;
}

bool tool_set_limits(const char *command, tec_context *cx, const tool_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (!set_one(command, cx, list, i))
            return false;
    return true;
}

void tool_print_limits(void)
{
    tec_context *cx = tec_context_new();

    printf("Limits on what tec reads and makes, with their usual values. An input that passes one is refused "
           "with its name;\n'--limit NAME=N' of compile, check, te, tune, inspect and opt sets it, in C "
           "tec_context_set_limit.\n\n");
    for (int i = 0; tec_limit_name(i); i++)
        printf("  %-18s %15lld  %s\n", tec_limit_name(i), (long long)tec_context_limit(cx, tec_limit_name(i)),
               tec_limit_help(tec_limit_name(i)));
    tec_context_free(cx);
}
