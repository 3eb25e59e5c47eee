/* worker/protocol.c -- see protocol.h. */
#include "worker/protocol.h"

/* Fields in the order in which worker_get_job reads them. */
void worker_put_job(rt_bytes *bytes, const worker_job *job)
{
    worker_put_i64(bytes, (int64_t)job->arguments);
    worker_put_i64(bytes, (int64_t)job->seed);
    worker_put_i64(bytes, job->n_dims);
    for (int i = 0; i < job->n_dims; i++) {
        worker_put_text(bytes, job->dims[i].name);
        worker_put_i64(bytes, job->dims[i].value);
    }
    worker_put_i64(bytes, job->check);
    worker_put_i64(bytes, job->threads);
    worker_put_f64(bytes, job->min_seconds);
    worker_put_f64(bytes, job->warm_up);
    worker_put_f64(bytes, job->cool_down);
    worker_put_i64(bytes, job->repeats);
    worker_put_i64(bytes, job->flush_bytes);
    worker_put_i64(bytes, (int64_t)job->cold);
    worker_put_i64(bytes, job->cold_bytes);
    worker_put_i64(bytes, job->memory_limit);
    worker_put_i64(bytes, job->n_modules);
    for (int i = 0; i < job->n_modules; i++)
        worker_put_bytes(bytes, job->modules[i].data, job->modules[i].size);
}

/* Neither NaN nor negative nor beyond an hour. */
static double get_seconds(worker_reader *reader)
{
    double s = worker_get_f64(reader);

    reader->failed |= !(s >= 0 && s <= 3600);
    return s;
}

/* False where the message is not a whole job within its limits. Texts and modules stay in the message's
 * memory. */
bool worker_get_job(worker_reader *reader, worker_job *job, worker_dim *dims)
{
    *job = (worker_job){.dims = dims};
    job->arguments = (uint64_t)worker_get_i64(reader);
    job->seed = (uint64_t)worker_get_i64(reader);
    job->n_dims = (int)worker_get_count(reader, RT_MAX_SYMBOLS, 1);
    for (int i = 0; i < job->n_dims; i++) {
        dims[i].name = worker_get_text(reader);
        dims[i].value = worker_get_i64(reader);
    }
    job->check = worker_get_i64(reader) != 0;
    job->threads = (int)worker_get_count(reader, 1 << 16, 0);
    job->min_seconds = get_seconds(reader);
    job->warm_up = get_seconds(reader);
    job->cool_down = get_seconds(reader);
    job->repeats = (int)worker_get_count(reader, WORKER_MAX_COSTS, 0);
    job->flush_bytes = worker_get_count(reader, INT64_MAX, 0);
    job->cold = (uint64_t)worker_get_i64(reader);
    job->cold_bytes = worker_get_count(reader, INT64_MAX, 0);
    job->memory_limit = worker_get_count(reader, INT64_MAX, 0);
    job->n_modules = (int)worker_get_count(reader, WORKER_MODULES, 8);
    for (int i = 0; i < job->n_modules; i++)
        job->modules[i].data = worker_get_bytes(reader, &job->modules[i].size);
    return worker_read_all(reader) && job->n_modules > 0 && job->repeats > 0;
}

/* All modules have as many costs. */
void worker_put_answer(rt_bytes *bytes, const worker_answer *answer)
{
    worker_put_i64(bytes, answer->outcome);
    worker_put_i64(bytes, answer->culprit);
    worker_put_text(bytes, answer->stage);
    worker_put_text(bytes, answer->kind);
    worker_put_text(bytes, answer->error);
    worker_put_f64(bytes, answer->load_seconds);
    worker_put_f64(bytes, answer->check_seconds);
    worker_put_f64(bytes, answer->timed_seconds);
    worker_put_i64(bytes, answer->clock_mhz);
    worker_put_f64(bytes, answer->temperature);
    worker_put_i64(bytes, answer->n_costs);
    for (int m = 0; m < WORKER_MODULES; m++)
        for (int i = 0; i < answer->n_costs; i++)
            worker_put_f64(bytes, answer->costs[m] ? answer->costs[m][i] : 0);
}

/* `costs` has room for WORKER_MODULES times WORKER_MAX_COSTS numbers. False for a damaged message. */
bool worker_get_answer(worker_reader *reader, worker_answer *answer, double *costs)
{
    answer->outcome = (worker_outcome)worker_get_count(reader, WORKER_N_OUTCOMES - 1, 0);
    answer->culprit = (int)worker_get_count(reader, WORKER_MODULES - 1, 0);
    answer->stage = worker_get_text(reader);
    answer->kind = worker_get_text(reader);
    answer->error = worker_get_text(reader);
    answer->load_seconds = worker_get_f64(reader);
    answer->check_seconds = worker_get_f64(reader);
    answer->timed_seconds = worker_get_f64(reader);
    answer->clock_mhz = worker_get_count(reader, 1 << 20, 0);
    answer->temperature = worker_get_f64(reader);
    answer->n_costs = (int)worker_get_count(reader, WORKER_MAX_COSTS, 16);
    for (int m = 0; m < WORKER_MODULES; m++) {
        answer->costs[m] = costs + (size_t)m * WORKER_MAX_COSTS;
        for (int i = 0; i < answer->n_costs; i++)
            costs[m * WORKER_MAX_COSTS + i] = worker_get_f64(reader);
    }
    return worker_read_all(reader);
}
