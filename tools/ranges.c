/* tools/ranges.c -- see ranges.h. */
#include "tools/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FROM..TO, cut at the dots; false after a message. */
static bool read_range(const char *command, const char *name, const char *text, job_range *out)
{
    const char *dots = strstr(text, "..");
    char *from = strndup(text, (size_t)(dots - text));

    out->name = name;
    if (from && tool_number(from, &out->range.from) && tool_number(dots + 2, &out->range.to) &&
        out->range.from >= 1 && out->range.to >= out->range.from) {
        free(from);
        return true;
    }
    free(from);
    tool_misuse(command, "--dim %s: expected FROM..TO with 1 <= FROM <= TO, found '%s'", name, text);
    return false;
}

/* Lines "EXTENT COUNT"; `range` gets them. */
static bool read_histogram(const char *command, const char *path, tune_range *range)
{
    FILE *f = fopen(path, "r");
    int64_t *extent = NULL;
    double *count = NULL;
    long long e;
    double c;
    int n = 0, room = 0, got = 0;

    while (f && (got = fscanf(f, "%lld %lf", &e, &c)) == 2) {
        if (n == room) {
            room = 2 * room + 64;
            extent = realloc(extent, (size_t)room * sizeof *extent);
            count = realloc(count, (size_t)room * sizeof *count);
        }
        if (!extent || !count)
            break;
        extent[n] = e;
        count[n++] = c;
    }
    if (f)
        fclose(f);
    *range = (tune_range){range->from, range->to, extent, count, n};
    if (n > 0 && got == EOF)
        return true;
    tool_misuse(command, "--histogram %s: expected lines 'EXTENT COUNT'", path);
    return false;
}

/* Parts the list in two: what has dots, and what goes to tool_read_dims. What is allocated stays until the
 * program ends. */
bool tool_read_ranges(const char *command, const tool_list *list, const char *histogram, tool_dims *dims,
                      tool_ranges *out)
{
    tool_list plain = {.at = calloc((size_t)list->n + 1, sizeof *plain.at)};
    tune_range counts = {0};

    *out = (tool_ranges){.at = calloc((size_t)list->n + 1, sizeof *out->at)};
    if (histogram && !read_histogram(command, histogram, &counts))
        return false;
    for (int i = 0; i < list->n; i++) {
        const char *name, *value, *equals = strchr(list->at[i], '=');
        job_range *range = &out->at[out->n];

        if (!equals || !strstr(equals, "..")) {
            plain.at[plain.n++] = list->at[i];
            continue;
        }
        if (!tool_pair(command, list->at[i], &name, &value) || !read_range(command, name, value, range))
            return false;
        range->range =
            (tune_range){range->range.from, range->range.to, counts.extent, counts.count, counts.n_counts};
        out->n++;
    }
    if (histogram && out->n != 1) {
        tool_misuse(command, "--histogram weighs the extents of one --dim NAME=FROM..TO, found %d", out->n);
        return false;
    }
    return tool_read_dims(command, &plain, dims);
}
