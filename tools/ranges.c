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

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* "1,8,32" in any order; false after a message. */
static bool read_values(const char *command, const char *name, const char *text, job_range *out)
{
    int64_t *value = calloc(TUNE_MOST_VALUES, sizeof *value);
    int n = 0;
    bool good = value;

    for (const char *at = text; good && at; n++) {
        const char *comma = strchr(at, ',');
        char *one = comma ? strndup(at, (size_t)(comma - at)) : strdup(at);

        good = n < TUNE_MOST_VALUES && one && tool_number(one, &value[n]) && value[n] >= 1;
        free(one);
        at = comma ? comma + 1 : NULL;
    }
    if (good)
        qsort(value, (size_t)n, sizeof *value, by_value);
    for (int i = 1; good && i < n; i++)
        good = value[i] > value[i - 1];
    if (!good) {
        free(value);
        tool_misuse(command,
                    "--dim %s: expected at most %d different extents of 1 or more, as in 1,8,32, found '%s'",
                    name, TUNE_MOST_VALUES, text);
        return false;
    }
    *out = (job_range){name, {.from = value[0], .to = value[n - 1], .value = value, .n_values = n}};
    return true;
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
    range->extent = extent;
    range->count = count;
    range->n_counts = n;
    if (n > 0 && got == EOF)
        return true;
    tool_misuse(command, "--histogram %s: expected lines 'EXTENT COUNT'", path);
    return false;
}

/* Whether --dim gives several extents: a range or a list. */
static bool is_several(const char *given)
{
    const char *equals = strchr(given, '=');

    return equals && (strstr(equals, "..") || strchr(equals, ','));
}

/* Parts the list in two: what has several extents, and what goes to tool_read_dims. What is allocated stays
 * until the program ends. */
bool tool_read_ranges(const char *command, const tool_list *list, const char *histogram, tool_dims *dims,
                      tool_ranges *out)
{
    tool_list plain = {.at = calloc((size_t)list->n + 1, sizeof *plain.at)};
    tune_range counts = {0};

    *out = (tool_ranges){.at = calloc((size_t)list->n + 1, sizeof *out->at)};
    if (histogram && !read_histogram(command, histogram, &counts))
        return false;
    for (int i = 0; i < list->n; i++) {
        const char *name, *value;
        job_range *range = &out->at[out->n];

        if (!is_several(list->at[i])) {
            plain.at[plain.n++] = list->at[i];
            continue;
        }
        if (!tool_pair(command, list->at[i], &name, &value) ||
            !(strstr(value, "..") ? read_range(command, name, value, range)
                                  : read_values(command, name, value, range)))
            return false;
        range->range.extent = counts.extent;
        range->range.count = counts.count;
        range->range.n_counts = counts.n_counts;
        out->n++;
    }
    if (histogram && out->n != 1) {
        tool_misuse(command,
                    "--histogram weighs the extents of one --dim NAME=FROM..TO or NAME=N,N, found %d",
                    out->n);
        return false;
    }
    return tool_read_dims(command, &plain, dims);
}
