/* worker/protocol.c -- see protocol.h. */
#include "worker/protocol.h"

/* Fields in the order in which run_get_job reads them. */
void run_put_job(rt_bytes *b, const run_job *j)
{
    run_put_i64(b, (int64_t)j->arguments);
    run_put_i64(b, (int64_t)j->seed);
    run_put_i64(b, j->n_dims);
    for (int i = 0; i < j->n_dims; i++) {
        run_put_text(b, j->dims[i].name);
        run_put_i64(b, j->dims[i].value);
    }
    run_put_i64(b, j->check);
    run_put_i64(b, j->threads);
    run_put_f64(b, j->min_seconds);
    run_put_f64(b, j->warm_up);
    run_put_f64(b, j->cool_down);
    run_put_i64(b, j->repeats);
    run_put_i64(b, j->flush_bytes);
    run_put_i64(b, j->memory_limit);
    run_put_i64(b, j->n_modules);
    for (int i = 0; i < j->n_modules; i++)
        run_put_bytes(b, j->modules[i].data, j->modules[i].size);
}

/* Neither NaN nor negative nor beyond an hour. */
static double get_seconds(run_reader *r)
{
    double s = run_get_f64(r);

    r->failed |= !(s >= 0 && s <= 3600);
    return s;
}

/* False where the message is not a whole job within its limits. Texts and modules stay in the message's
 * memory. */
bool run_get_job(run_reader *r, run_job *j, run_dim *dims)
{
    *j = (run_job){.dims = dims};
    j->arguments = (uint64_t)run_get_i64(r);
    j->seed = (uint64_t)run_get_i64(r);
    j->n_dims = (int)run_get_count(r, RT_MAX_SYMBOLS, 1);
    for (int i = 0; i < j->n_dims; i++) {
        dims[i].name = run_get_text(r);
        dims[i].value = run_get_i64(r);
    }
    j->check = run_get_i64(r) != 0;
    j->threads = (int)run_get_count(r, 1 << 16, 0);
    j->min_seconds = get_seconds(r);
    j->warm_up = get_seconds(r);
    j->cool_down = get_seconds(r);
    j->repeats = (int)run_get_count(r, RUN_MAX_COSTS, 0);
    j->flush_bytes = run_get_count(r, INT64_MAX, 0);
    j->memory_limit = run_get_count(r, INT64_MAX, 0);
    j->n_modules = (int)run_get_count(r, RUN_MODULES, 8);
    for (int i = 0; i < j->n_modules; i++)
        j->modules[i].data = run_get_bytes(r, &j->modules[i].size);
    return run_read_all(r) && j->n_modules > 0 && j->repeats > 0;
}

/* All modules have as many costs. */
void run_put_answer(rt_bytes *b, const run_answer *a)
{
    run_put_i64(b, a->outcome);
    run_put_i64(b, a->culprit);
    run_put_text(b, a->stage);
    run_put_text(b, a->kind);
    run_put_text(b, a->error);
    run_put_f64(b, a->load_seconds);
    run_put_f64(b, a->check_seconds);
    run_put_f64(b, a->timed_seconds);
    run_put_i64(b, a->clock_mhz);
    run_put_f64(b, a->temperature);
    run_put_i64(b, a->n_costs);
    for (int m = 0; m < RUN_MODULES; m++)
        for (int i = 0; i < a->n_costs; i++)
            run_put_f64(b, a->costs[m] ? a->costs[m][i] : 0);
}

/* `costs` has room for RUN_MODULES times RUN_MAX_COSTS numbers. False for a damaged message. */
bool run_get_answer(run_reader *r, run_answer *a, double *costs)
{
    a->outcome = (run_outcome)run_get_count(r, RUN_N_OUTCOMES - 1, 0);
    a->culprit = (int)run_get_count(r, RUN_MODULES - 1, 0);
    a->stage = run_get_text(r);
    a->kind = run_get_text(r);
    a->error = run_get_text(r);
    a->load_seconds = run_get_f64(r);
    a->check_seconds = run_get_f64(r);
    a->timed_seconds = run_get_f64(r);
    a->clock_mhz = run_get_count(r, 1 << 20, 0);
    a->temperature = run_get_f64(r);
    a->n_costs = (int)run_get_count(r, RUN_MAX_COSTS, 16);
    for (int m = 0; m < RUN_MODULES; m++) {
        a->costs[m] = costs + (size_t)m * RUN_MAX_COSTS;
        for (int i = 0; i < a->n_costs; i++)
            costs[m * RUN_MAX_COSTS + i] = run_get_f64(r);
    }
    return run_read_all(r);
}
