/* tools/run_program.c -- see run_program.h: inputs, results, and a program of this process. */
#include "tools/run_program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- values of this process: a tool_value is a tec_object ---- */

static tool_value *make_tensor(void *user, const DLTensor *tensor, tec_error *err)
{
    const tool_program_run *run = user;

    return (tool_value *)tec_object_tensor(run->p, tensor, err);
}

static tool_value *make_compound(void *user, const char *constructor, tool_value *const *part, int n,
                                 tec_error *err)
{
    const tool_program_run *run = user;
    tec_object **object = base_array(run->cx, tec_object *, n);

    for (int i = 0; i < n; i++)
        object[i] = (tec_object *)part[i];
    return (tool_value *)(constructor ? tec_object_data(run->p, constructor, object, n, err)
                                      : tec_object_tuple(run->p, object, n, err));
}

static void drop(void *user, tool_value *value)
{
    (void)user;
    tec_object_free((tec_object *)value);
}

/* Parts are references of their own: the caller drops them. */
static bool look(void *user, const tool_value *value, tool_value_seen *out, tec_error *err)
{
    const tool_program_run *run = user;
    const tec_object *object = (const tec_object *)value;

    (void)err;
    out->tensor = tec_object_dltensor(object);
    if (out->tensor)
        return true;
    out->constructor = tec_object_constructor(run->p, object);
    out->n = tec_object_n_parts(object);
    out->part = base_array(run->cx, tool_value *, out->n);
    for (int i = 0; i < out->n; i++)
        out->part[i] = (tool_value *)tec_object_ref(tec_object_part(object, i));
    return true;
}

/* ---- inputs ---- */

static int find_input(const tool_program_run *run, const char *text, size_t n)
{
    for (int i = 0; i < run->routine->n_params; i++) {
        const char *name = run->routine->params[i];

        if (strlen(name) == n && strncmp(name, text, n) == 0)
            return i;
    }
    return -1;
}

static void drop_value(tool_program_run *run, tool_value **value)
{
    if (*value)
        run->home.drop(run->home.user, *value);
    *value = NULL;
}

/* NAME=FILE An input that is given twice has its last value. */
static bool read_input(tool_program_run *run, const char *text)
{
    const char *equals = strchr(text, '=');
    int i = equals ? find_input(run, text, (size_t)(equals - text)) : -1;

    if (i < 0)
        return base_fail(run->cx, TEC_INVALID, (base_loc){0}, "the program has no input '%.*s'",
                         (int)strcspn(text, "="), text);
    drop_value(run, &run->in[i]);
    run->in[i] =
        tool_read_value(run->cx, &run->home, &rt_module_describe(run->module)->program, i, equals + 1);
    return run->in[i] != NULL;
}

/* Input i has no value. A tensor may come from more kinds of files than a tree. */
static bool fail_without(tool_program_run *run, const rt_program_desc *desc, int i)
{
    const char *name = run->routine->params[i];
    int32_t t = run->routine->registers[i];
    char type[200];

    return base_fail(run->cx, TEC_INVALID, (base_loc){0},
                     "input '%s' (%s) has no value: give it with --input %s=FILE%s", name,
                     rt_type_text(desc, t, type, sizeof type), name,
                     desc->types[t].kind == RT_TYPE_TENSOR ? " (.json, .npy or .pb)" : ".json");
}

/* Every input needs a value: there are no random trees. */
bool tool_program_read_inputs(tool_program_run *run)
{
    const rt_program_desc *desc = &rt_module_describe(run->module)->program;

    run->routine = &desc->functions[0];
    run->in = base_array(run->cx, tool_value *, run->routine->n_params);
    run->out = base_array(run->cx, tool_value *, run->routine->n_results);
    for (int i = 0; i < run->inputs->n; i++)
        if (!read_input(run, run->inputs->at[i]))
            return false;
    for (int i = 0; i < run->routine->n_params; i++)
        if (!run->in[i])
            return fail_without(run, desc, i);
    return true;
}

/* ---- runs ---- */

bool tool_program_open(tool_program_run *run, const tec_program_options *options)
{
    run->home = (tool_value_home){run, make_tensor, make_compound, drop, look};
    run->p = tec_program_new(run->module, NULL, options, &run->err);
    return run->p && tool_program_read_inputs(run);
}

static void free_results(tool_program_run *run)
{
    for (int i = 0; i < run->routine->n_results; i++)
        drop_value(run, &run->out[i]);
}

static bool execute(tool_program_run *run)
{
    int n_in = run->routine->n_params, n_out = run->routine->n_results;
    tec_object *in[n_in + 1], *out[n_out + 1];

    for (int i = 0; i < n_in; i++)
        in[i] = (tec_object *)run->in[i];
    bool good = tec_program_run(run->p, in, n_in, out, n_out, &run->err);
    for (int i = 0; i < n_out && good; i++)
        run->out[i] = (tool_value *)out[i];
    return good;
}

/* Results of the run before are freed. */
bool tool_program_once(tool_program_run *run)
{
    free_results(run);
    return run->p ? execute(run) : tool_program_execute_there(run);
}

/* One line of JSON for each result. */
bool tool_program_print(tool_program_run *run, const char *dir)
{
    int n = run->routine->n_results;

    if (dir)
        mkdir(dir, 0777); /* what is wrong with it, writing into it will tell */
    for (int i = 0; i < n; i++) {
        const char *value = tool_value_text(run->cx, &run->home, run->out[i]);

        if (!value)
            return false;
        const char *text = base_format(run->cx, "%s\n", value),
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
    if (run->routine && run->home.drop) {
        free_results(run);
        for (int i = 0; i < run->routine->n_params; i++)
            drop_value(run, &run->in[i]);
    }
    tec_program_free(run->p);
}
