/* tools/run_program.c -- see run_program.h. */
#include "tools/run_program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/module.h"
#include "tools/value.h"

/* The first without a name. */
static const rt_routine_desc *function_of(const tool_program_run *run, const char *name)
{
    const rt_program_desc *p = &rt_module_describe(run->module)->program;

    for (int i = 0; i < p->n_functions; i++)
        if (!name || strcmp(p->functions[i].name, name) == 0)
            return &p->functions[i];
    return NULL;
}

static int find_input(const tool_program_run *run, const char *text, size_t n)
{
    for (int i = 0; i < tec_program_n_inputs(run->p); i++) {
        const char *name = tec_program_input_name(run->p, i);

        if (strlen(name) == n && strncmp(name, text, n) == 0)
            return i;
    }
    return -1;
}

/* NAME=FILE An input that is given twice has its last value. */
static bool read_input(tool_program_run *run, const rt_routine_desc *routine, const char *text)
{
    const char *equals = strchr(text, '=');
    int i = equals ? find_input(run, text, (size_t)(equals - text)) : -1;

    if (i < 0)
        return base_fail(run->cx, TEC_INVALID, (base_loc){0}, "the program has no input '%.*s'",
                         (int)strcspn(text, "="), text);
    tec_object_free(run->in[i]);
    run->in[i] = tool_read_value(run->cx, run->p, &rt_module_describe(run->module)->program,
                                 routine->registers[i], equals + 1);
    return run->in[i] != NULL;
}

/* Every input needs a value: there are no random trees. */
bool tool_program_open(tool_program_run *run, const char *function, const tec_program_options *options)
{
    char type[200];

    run->p = tec_program_new(run->module, function, options, &run->err);
    if (!run->p)
        return false;
    run->in = base_array(run->cx, tec_object *, tec_program_n_inputs(run->p));
    run->out = base_array(run->cx, tec_object *, tec_program_n_outputs(run->p));
    for (int i = 0; i < run->inputs->n; i++)
        if (!read_input(run, function_of(run, function), run->inputs->at[i]))
            return false;
    for (int i = 0; i < tec_program_n_inputs(run->p); i++)
        if (!run->in[i])
            return base_fail(run->cx, TEC_INVALID, (base_loc){0},
                             "input '%s' (%s) has no value: give it with --input %s=FILE.json",
                             tec_program_input_name(run->p, i),
                             tec_program_input_text(run->p, i, type, sizeof type),
                             tec_program_input_name(run->p, i));
    return true;
}

static void free_results(tool_program_run *run)
{
    for (int i = 0; i < tec_program_n_outputs(run->p); i++) {
        tec_object_free(run->out[i]);
        run->out[i] = NULL;
    }
}

/* Results of the run before are freed. */
bool tool_program_once(tool_program_run *run)
{
    free_results(run);
    return tec_program_run(run->p, run->in, tec_program_n_inputs(run->p), run->out,
                           tec_program_n_outputs(run->p), &run->err);
}

/* One line of JSON for each result. */
bool tool_program_print(tool_program_run *run, const char *dir)
{
    int n = tec_program_n_outputs(run->p);

    if (dir)
        mkdir(dir, 0777); /* what is wrong with it, writing into it will tell */
    for (int i = 0; i < n; i++) {
        const char *text = base_format(run->cx, "%s\n", tool_value_text(run->cx, run->p, run->out[i])),
                   *path = n == 1 ? base_format(run->cx, "%s/result.json", dir ? dir : "")
                                  : base_format(run->cx, "%s/result%d.json", dir ? dir : "", i);

        if (!dir)
            printf("%s", text);
        else if (!base_write_file(run->cx, path, text, strlen(text)))
            return false;
    }
    return true;
}

/* Also after an error in the middle of opening. */
void tool_program_close(tool_program_run *run)
{
    if (!run->p)
        return;
    if (run->out)
        free_results(run);
    for (int i = 0; run->in && i < tec_program_n_inputs(run->p); i++)
        tec_object_free(run->in[i]);
    tec_program_free(run->p);
}
