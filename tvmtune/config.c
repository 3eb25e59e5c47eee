/* tvmtune/config.c -- see config.h. */
#include "tvmtune/config.h"

#include <string.h>

/* The value of --NAME VALUE or --NAME=VALUE; NULL: the command line has no such option. */
static const char *value_of(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, n) == 0) {
            if (argv[i][2 + n] == '=')
                return argv[i] + 3 + n;
            if (!argv[i][2 + n])
                return i + 1 < argc ? argv[i + 1] : "";
        }
    return NULL;
}

/* A file cannot name another one. */
static bool is_known(const tool_usage *usage, const char *name)
{
    for (int i = 0; i < usage->n_options; i++)
        if (strcmp(usage->options[i].name, name) == 0 && strcmp(name, "config") != 0)
            return true;
    return false;
}

static const char *known_names(tec_context *cx, const tool_usage *usage)
{
    base_text t = {0};

    for (int i = 0; i < usage->n_options; i++)
        if (strcmp(usage->options[i].name, "config") != 0)
            base_addf(cx, &t, "%s%s", t.n ? ", " : "", usage->options[i].name);
    return base_text_str(cx, &t);
}

/* Without blanks at both ends. */
static char *trim(char *text)
{
    size_t n;

    text += strspn(text, " \t\r");
    for (n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

typedef struct {
    const tool_usage *usage;
    const char *path;
    int argc;
    char **argv;
} config;

/* "NAME = VALUE" as an option; an empty line or a comment gives none. */
static bool read_line(tec_context *cx, const config *self, char *line, int number, base_vec *out)
{
    base_loc at = {.file = self->path, .line = number};
    char *text = trim(line), *equals = strchr(text, '=');

    if (!*text || *text == '#')
        return true;
    if (!equals)
        return base_fail(cx, TEC_INVALID, at, "expected 'NAME = VALUE', found '%s'", text);
    *equals = '\0';
    const char *name = trim(text), *value = trim(equals + 1);
    if (!is_known(self->usage, name))
        return base_fail(cx, TEC_INVALID, at, "unknown setting '%s'; expected one of %s", name,
                         known_names(cx, self->usage));
    for (int i = 0; i < out->n; i++)
        if (strncmp((const char *)out->at[i] + 2, name, strlen(name)) == 0 &&
            ((const char *)out->at[i])[2 + strlen(name)] == '=')
            return base_fail(cx, TEC_INVALID, at, "the setting '%s' is given twice", name);
    base_push(cx, out, base_format(cx, "--%s=%s", name, value));
    return true;
}

/* The settings of the file that the command line does not have, then the command line. */
static char **join(tec_context *cx, const config *self, const base_vec *settings, int *argc)
{
    base_vec all = {0};

    base_push(cx, &all, self->argv[0]);
    for (int i = 0; i < settings->n; i++) {
        const char *option = (const char *)settings->at[i] + 2;
        const char *name = base_format(cx, "%.*s", (int)strcspn(option, "="), option);

        if (!value_of(self->argc, self->argv, name))
            base_push(cx, &all, settings->at[i]);
    }
    for (int i = 1; i < self->argc; i++)
        base_push(cx, &all, self->argv[i]);
    *argc = all.n;
    base_push(cx, &all, NULL);
    return (char **)all.at;
}

/* Reads the file line by line; the first line that is wrong ends the reading. */
char **tvm_with_config(tec_context *cx, const tool_usage *usage, int *argc, char **argv)
{
    config c = {.usage = usage, .path = value_of(*argc, argv, "config"), .argc = *argc, .argv = argv};
    base_vec settings = {0};
    size_t size;

    if (!c.path || !*c.path)
        return argv;
    char *text = base_read_file(cx, c.path, &size), *rest = text;
    if (!text)
        return NULL;
    for (int number = 1; rest; number++) {
        char *line = strsep(&rest, "\n");

        if (!read_line(cx, &c, line, number, &settings))
            return NULL;
    }
    return join(cx, &c, &settings, argc);
}
