/* autotune/anchor.c -- how fast a runner is now: the default schedule of a task, measured again and again
 * among the candidates.
 *
 *     trial  default  c1 .. c8  c9 .. c16        the machine gets slower: a warm CPU, a neighbour
 *     takes  10 ms    9 ms ..   9.9 ms           c9 is as fast as c1, and looks slower
 *     anchor 10 ms    10 ms     11 ms            9 * 10 / 10 = 9, 9.9 * 10 / 11 = 9
 *
 * A candidate's time is multiplied by first / anchor, where `first` is the time of the default schedule when
 * the task began, and `anchor` is that of the default schedule on the same runner near the candidate's own
 * moment. So a candidate counts by its ratio to the default schedule, which is what the tuner looks for: a
 * machine that becomes slower by a factor does not change the ratio, nor does a second device that is slower
 * by a factor. Anchors are measured by the runner and not queued as candidates, because the caller does not
 * know which device will measure which candidate. They need no build: the module is that of the reference
 * outputs.
 *
 * The latest anchor counts, and not a mean of several, which would lag behind the machine. One that differs
 * much from the anchor before is measured a second time, and the one that is nearer to the anchor before
 * counts: a disturbance of some milliseconds is gone then, a slower clock is not.
 */
#include <math.h>

#include "autotune/trial.h"
#include "runtime/alloc.h"

/* One measurement of the reference's module. False: the device is lost. *seconds is 0 where it has no time.
 * */
static bool measure(tune_runner *runner, const tune_limits *limits, tune_trial *trial, double *seconds)
{
    tune_trial anchor = {.job = trial->job, .n = 1, .build = {trial->reference}};
    char why[TUNE_WHY];
    double spread;

    *seconds = 0;
    anchor.job.check = false;
    anchor.job.label = ""; /* no run of a trial: logs of trials do not have it */
    tune_asked got = tune_run_with(runner, limits, &anchor, why);
    if (got == TUNE_ASK_ANSWERED && anchor.n_costs)
        store_summarise(anchor.costs, anchor.n_costs, seconds, &spread);
    rt_free(anchor.costs);
    trial->load_seconds += anchor.load_seconds;
    trial->timed_seconds += anchor.timed_seconds;
    trial->seconds += anchor.seconds;
    return got == TUNE_ASK_ANSWERED || got == TUNE_ASK_DIED;
}

static bool is_near(double a, double b)
{
    const double share = 0.05;

    return fabs(log(a / b)) < log1p(share);
}

/* The anchor of now, into the runner. False: the device is lost. */
static bool renew_anchor(tune_runner *runner, const tune_limits *limits, tune_trial *trial)
{
    double before = runner->anchor.seconds, first, second;

    if (!measure(runner, limits, trial, &first))
        return false;
    runner->anchor.seconds = first;
    runner->anchor.age = 0;
    if (!(before > 0) || !(first > 0) || is_near(first, before))
        return true;
    if (!measure(runner, limits, trial, &second))
        return false;
    if (second > 0 && fabs(log(second / before)) < fabs(log(first / before)))
        runner->anchor.seconds = second;
    return true;
}

static uint64_t key_of(const tune_trial *trial)
{
    return base_hash(&trial->job.seed, sizeof trial->job.seed, trial->job.arguments);
}

/* A trial of the default schedule is an anchor by itself. */
static void take_default(tune_runner *runner, const tune_trial *trial)
{
    double spread;

    store_summarise(trial->costs, trial->n_costs, &runner->anchor.seconds, &spread);
    runner->anchor.age = 0;
}

/* Where the trial has what an anchor needs: costs of its own, and a module of the default schedule. */
bool tune_anchor(tune_runner *runner, const tune_limits *limits, int every, tune_trial *trial)
{
    bool lost = false;

    trial->anchor = 0;
    if (every < 0 || trial->n != 1 || !trial->n_costs || !trial->reference ||
        trial->reference->failure.status != STORE_OK)
        return true;
    if (runner->anchor.key != key_of(trial))
        runner->anchor = (tune_runner_anchor){.key = key_of(trial)};
    if (base_same(trial->build[0]->trace, trial->reference->trace))
        take_default(runner, trial);
    else if (!(runner->anchor.seconds > 0) || ++runner->anchor.age >= every)
        lost = !renew_anchor(runner, limits, trial);
    trial->anchor = runner->anchor.seconds;
    return !lost;
}
