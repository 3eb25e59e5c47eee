/* tools/run_program.c -- see run_program.h. */
#include "tools/run_program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/module.h"
#include "tools/value.h"

/* The first without a name. */
static const rt_routine_desc *function_of(const tool_program_run *r, const char *name)
{
    const rt_program_desc *p = &rt_module_describe(r->module)->program;

    for (int i = 0; i < p->n_functions; i++)
        if (!name || strcmp(p->functions[i].name, name) == 0)
            return &p->functions[i];
    return NULL;
}

static int find_input(const tool_program_run *r, const char *text, size_t n)
{
    for (int i = 0; i < tec_program_n_inputs(r->p); i++) {
        const char *name = tec_program_input_name(r->p, i);

        if (strlen(name) == n && strncmp(name, text, n) == 0)
            return i;
    }
    return -1;
}

/* NAME=FILE An input that is given twice has its last value. */
static bool read_input(tool_program_run *r, const rt_routine_desc *f, const char *text)
{
    const char *equals = strchr(text, '=');
    int i = equals ? find_input(r, text, (size_t)(equals - text)) : -1;

    if (i < 0)
        return base_fail(r->cx, TEC_INVALID, (base_loc){0}, "the program has no input '%.*s'",
                         (int)strcspn(text, "="), text);
    tec_object_free(r->in[i]);
    r->in[i] =
        tool_read_value(r->cx, r->p, &rt_module_describe(r->module)->program, f->registers[i], equals + 1);
    return r->in[i] != NULL;
}

/* Every input needs a value: there are no random trees. */
bool tool_program_open(tool_program_run *r, const char *function, const tec_program_options *o)
{
    char type[200];

    r->p = tec_program_new(r->module, function, o, &r->err);
    if (!r->p)
        return false;
    r->in = base_array(r->cx, tec_object *, tec_program_n_inputs(r->p));
    r->out = base_array(r->cx, tec_object *, tec_program_n_outputs(r->p));
    for (int i = 0; i < r->inputs->n; i++)
        if (!read_input(r, function_of(r, function), r->inputs->at[i]))
            return false;
    for (int i = 0; i < tec_program_n_inputs(r->p); i++)
        if (!r->in[i])
            return base_fail(r->cx, TEC_INVALID, (base_loc){0},
                             "input '%s' (%s) has no value: give it with --input %s=FILE.json",
                             tec_program_input_name(r->p, i),
                             tec_program_input_text(r->p, i, type, sizeof type),
                             tec_program_input_name(r->p, i));
    return true;
}

static void free_results(tool_program_run *r)
{
    for (int i = 0; i < tec_program_n_outputs(r->p); i++) {
        tec_object_free(r->out[i]);
        r->out[i] = NULL;
    }
}

/* Results of the run before are freed. */
bool tool_program_once(tool_program_run *r)
{
    free_results(r);
    return tec_program_run(r->p, r->in, tec_program_n_inputs(r->p), r->out, tec_program_n_outputs(r->p),
                           &r->err);
}

/* One line of JSON for each result. */
bool tool_program_print(tool_program_run *r, const char *dir)
{
    int n = tec_program_n_outputs(r->p);

    if (dir)
        mkdir(dir, 0777); /* what is wrong with it, writing into it will tell */
    for (int i = 0; i < n; i++) {
        const char *text = base_format(r->cx, "%s\n", tool_value_text(r->cx, r->p, r->out[i])),
                   *path = n == 1 ? base_format(r->cx, "%s/result.json", dir ? dir : "")
                                  : base_format(r->cx, "%s/result%d.json", dir ? dir : "", i);

        if (!dir)
            printf("%s", text);
        else if (!base_write_file(r->cx, path, text, strlen(text)))
            return false;
    }
    return true;
}

/* Also after an error in the middle of opening. */
void tool_program_close(tool_program_run *r)
{
    if (!r->p)
        return;
    if (r->out)
        free_results(r);
    for (int i = 0; r->in && i < tec_program_n_inputs(r->p); i++)
        tec_object_free(r->in[i]);
    tec_program_free(r->p);
}
