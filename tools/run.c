/* tools/run.c -- `tec run`: a module on files or random numbers, with its latency. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/command.h"
#include "tools/data.h"
#include "tools/report.h"
#include "worker/tensors.h"

typedef struct {
    const char *out, *format;
    int64_t threads, repeat, seed;
    tool_list inputs, dims;
    bool profile, json;
} settings;

typedef struct {
    tec_context *cx;
    const settings *s;
    tec_executor *ex;
    tec_error err;
} session;

static int fail(session *r)
{
    return r->err.status != TEC_OK ? tool_fail_run("run", &r->err) : tool_fail("run", r->cx);
}

static int64_t given_extent(const settings *s, const char *input, int axis, bool *found)
{
    for (int i = 0; i < s->dims.n; i++) {
        const char *name, *value;
        int64_t n;
        char own[256];

        if (!tool_pair(s->dims.at[i], &name, &value) || !tool_number(value, &n))
            continue;
        snprintf(own, sizeof own, "%s.%d", input, axis);
        if (strcmp(name, own) == 0) {
            *found = true;
            return n;
        }
    }
    *found = false;
    return 1;
}

/* Random numbers for an input without a file; symbolic extents are 1 unless --dim INPUT.AXIS=N says otherwise. */
static bool set_random(session *r, int i)
{
    tec_tensor_info info;

    if (!tec_executor_input_info(r->ex, i, &info, &r->err))
        return false;
    for (int d = 0; d < info.ndim; d++) {
        bool found;
        int64_t n = given_extent(r->s, info.name, d, &found);

        if (found || info.shape[d] < 0)
            info.shape[d] = n;
    }
    DLTensor *t = tool_new_tensor(r->cx, info.dtype, info.ndim, info.shape);
    run_fill_random(t, (uint64_t)(r->s->seed + i));
    return tec_executor_set_input(r->ex, i, t, &r->err);
}

static bool set_inputs(session *r)
{
    int n = tec_executor_n_inputs(r->ex);
    bool *given = base_array(r->cx, bool, n + 1);

    for (int k = 0; k < r->s->inputs.n; k++) {
        const char *name, *file;

        if (!tool_pair(r->s->inputs.at[k], &name, &file))
            return false;
        int i = tec_executor_find_input(r->ex, name);
        if (i < 0) {
            base_fail(r->cx, TEC_INVALID, (base_loc){0}, "the module has no input '%s'", name);
            return false;
        }
        DLTensor *t = tool_read(r->cx, file);
        if (!t || !tec_executor_set_input(r->ex, i, t, &r->err))
            return false;
        given[i] = true;
    }
    for (int i = 0; i < n; i++)
        if (!given[i] && !set_random(r, i))
            return false;
    return true;
}

static bool write_outputs(session *r)
{
    mkdir(r->s->out, 0777);
    for (int i = 0; i < tec_executor_n_outputs(r->ex); i++) {
        char *name = base_strdup(r->cx, tec_executor_output_name(r->ex, i));

        for (char *p = name; *p; p++)
            if (*p == '/' || *p == ':')
                *p = '_';
        if (!tool_write(r->cx, base_format(r->cx, "%s/%s.%s", r->s->out, name, r->s->format), tec_executor_output(r->ex, i)))
            return false;
    }
    return true;
}

static tec_status run_once(void *user)
{
    session *r = user;

    return tec_executor_run(r->ex, &r->err) ? TEC_OK : r->err.status;
}

static int time_runs(session *r, const char *path)
{
    tec_time_options o = {.repeats = (int)r->s->repeat, .max_repeats = r->s->repeat ? (int)r->s->repeat : 1000, .min_seconds = r->s->repeat ? 1e-9 : 0.2};
    tec_timing t;

    if (!tec_time(run_once, r, &o, &t, &r->err))
        return fail(r);
    if (!r->s->profile || !r->s->json)
        tool_print_timing(path, &t, 0, r->s->json);
    if (r->s->profile)
        tool_print_profile(r->ex, r->s->json);
    return TOOL_OK;
}

static int run(tec_context *cx, const char *path, const settings *s)
{
    session r = {.cx = cx, .s = s};
    tec_module *m = tec_module_open(path, NULL, &r.err);
    tec_run_options o = {.threads = (int)s->threads, .profile = s->profile};
    int status = TOOL_FAILED;

    r.ex = m ? tec_executor_new(m, NULL, &o, &r.err) : NULL;
    if (!r.ex || !set_inputs(&r) || !tec_executor_run(r.ex, &r.err) || (s->out && !write_outputs(&r)))
        fail(&r);
    else
        status = time_runs(&r, path);
    tec_executor_free(r.ex);
    tec_module_free(m);
    return status;
}

int tool_run(int argc, char **argv)
{
    settings s = {.format = "npy", .seed = 1};
    tool_list files = {0};
    const tool_option options[] = {
        {"input", TOOL_LIST, &s.inputs, "NAME=FILE", "an input from a .npy or .pb file; may be repeated (random numbers)"},
        {"dim", TOOL_LIST, &s.dims, "INPUT.AXIS=N", "extent of a symbolic dimension of a random input (1)"},
        {"out", TOOL_TEXT, &s.out, "DIR", "writes the outputs there"},
        {"format", TOOL_TEXT, &s.format, "npy|pb", "format of the outputs (npy)"},
        {"threads", TOOL_INT, &s.threads, "N", "threads to run on (as many as this process may use)"},
        {"repeat", TOOL_INT, &s.repeat, "N", "measured runs (as many as fit in 0.2 s, at least 10)"},
        {"seed", TOOL_INT, &s.seed, "N", "of random inputs (1)"},
        {"profile", TOOL_FLAG, &s.profile, NULL, "a table with the time of each kernel"},
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
    };
    const tool_usage usage = {"run", "MODULE", "Runs a module and prints its latency: min, median, p95.", options, BASE_COUNT(options), 1, 1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    tec_context *cx = tec_context_new();
    status = run(cx, files.at[0], &s);
    tec_context_free(cx);
    return status;
}
