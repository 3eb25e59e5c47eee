/* tvmtune/run.c -- see run.h: the slots in turn, their leases, and what is asked of their jobs. */
#include "tvmtune/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/queue_users.h"
#include "tvmtune/slot.h"

enum { GRACE = 30, LOOK_MS = 200 };

int64_t tvm_milliseconds(const tvm_runner *runner)
{
    return tvm_clock_ms(runner->o.ahead);
}

int64_t tvm_seconds(const tvm_runner *runner)
{
    return tvm_milliseconds(runner) / 1000;
}

/* In a context of its own: being told is no part of the job, and its failure does not fail the job. */
static void tell(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    tec_context *own = base_child(cx);
    const store_queued *j = runner->o.told ? store_queue_get(own, runner->db, id) : NULL;

    if (j)
        runner->o.told(runner->o.user, j);
    tec_context_free(own);
}

static void leave(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    tell(cx, runner, entry->id);
    tvm_clear_folder(cx, runner, entry->id);
    *entry = (tvm_slot){.id = 0};
}

/* Another daemon has the job now. */
static void abandon(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    tvm_child_kill(&entry->child);
    leave(cx, runner, entry);
}

/* The lease is renewed three times in its length. False with an error; *held false: the job is another
 * daemon's. */
static bool keep_lease(tec_context *cx, tvm_runner *runner, tvm_slot *entry, bool *held)
{
    *held = true;
    if (tvm_milliseconds(runner) - entry->renewed < runner->o.lease * 1000 / 3)
        return true;
    if (!store_queue_renew(cx, runner->db, entry->id, runner->o.name, runner->o.lease, held))
        return false;
    entry->renewed = tvm_milliseconds(runner);
    return true;
}

/* Tries to end a job that is held; whether that could be written. */
static bool let_go(tvm_runner *runner, tvm_slot *entry)
{
    tec_context *cx = base_child(runner->cx);
    bool ended = tvm_end_job(cx, runner, entry, entry->held);

    entry->looked = tvm_seconds(runner);
    if (ended)
        leave(cx, runner, entry);
    tec_context_free(cx);
    return ended;
}

/* A job that neither runs nor can be ended as it should keeps its slot until the store takes its end. */
static void hold_job(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    tvm_child_kill(&entry->child);
    snprintf(entry->held, sizeof entry->held, "%s", tec_context_error(cx));
    entry->stage = TVM_HELD;
    let_go(runner, entry);
}

/* What somebody asked of the job since the last turn. */
static bool hear_wish(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);

    if (!j)
        return false;
    entry->cancel |= j->wish == STORE_QUEUE_CANCEL;
    if (j->wish == STORE_QUEUE_NO_WISH || entry->asked)
        return true;
    entry->asked = true;
    entry->heard = tvm_seconds(runner);
    if (entry->child.pid > 0)
        tvm_child_ask(&entry->child);
    return true;
}

/* A job without a child waits for the kernels that others tune. */
static bool wait_for_others(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    if (entry->asked) {
        bool ok = tvm_end_job(cx, runner, entry, "");

        if (ok)
            leave(cx, runner, entry);
        return ok;
    }
    return entry->looked == tvm_seconds(runner) || tvm_choose(cx, runner, entry);
}

/* Reads what the child has printed, and goes on when the child has ended. False with an error. */
static bool watch_child(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    tvm_listen_to(cx, runner, entry);
    entry->over = entry->over || tvm_child_ended(&entry->child, &entry->status);
    if (entry->over) {
        tvm_listen_to(cx, runner, entry);
        if (!tvm_go_on(cx, runner, entry, entry->status))
            return false;
        entry->over = false;
        if (entry->child.pid == 0 && entry->stage != TVM_WAIT)
            leave(cx, runner, entry);
        return true;
    }
    if (tvm_seconds(runner) - entry->heard > (entry->asked ? GRACE : runner->o.patience)) {
        entry->silent = true;
        kill(-entry->child.pid, SIGKILL);
    }
    if (entry->tried == entry->told)
        return true;
    entry->told = entry->tried;
    return store_queue_progress(cx, runner->db, entry->id, entry->tried);
}

/* One turn of a job in its slot. False with an error. */
static bool watch(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    bool held;

    if (!keep_lease(cx, runner, entry, &held))
        return false;
    if (!held) {
        abandon(cx, runner, entry);
        return true;
    }
    if (entry->stage == TVM_HELD) {
        if (entry->looked != tvm_seconds(runner))
            let_go(runner, entry);
        return true;
    }
    if (!hear_wish(cx, runner, entry))
        return false;
    return entry->child.pid > 0 || entry->over ? watch_child(cx, runner, entry)
                                               : wait_for_others(cx, runner, entry);
}

/* Lays out the job that the slot was given, and starts its first stage. False with an error. */
static bool start(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);

    if (!j)
        return false;
    snprintf(entry->name, sizeof entry->name, "%s", j->name);
    snprintf(entry->device_class, sizeof entry->device_class, "%s", tvm_option_of(cx, j, "device-class"));
    if (*entry->device_class && !runner->o.tracker)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "the job is for devices of class '%s', and this daemon has no --tracker",
                         entry->device_class);
    tell(cx, runner, entry->id);
    return tvm_lay_out(cx, runner, entry) && tvm_begin_stage(cx, runner, entry);
}

/* Puts the next job of the queue into a free slot. A job that was taken from a store that then went away is
 * taken again when its lease is over. False with an error. */
static bool take(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    int64_t id;

    if (tvm_milliseconds(runner) - runner->looked < LOOK_MS)
        return true;
    if (!store_queue_take(cx, runner->db, runner->o.name, runner->o.lease, &id))
        return false;
    if (id == 0)
        runner->looked = tvm_milliseconds(runner);
    if (id == 0)
        return true;
    *entry = (tvm_slot){.id = id, .renewed = tvm_milliseconds(runner)};
    if (start(cx, runner, entry))
        return true;
    if (store_is_away(runner->db))
        *entry = (tvm_slot){.id = 0};
    return false;
}

/* One slot's turn, in a context of its own: an error of one job does not touch the others. While the store
 * is away children go on, and the turn is repeated. */
static bool turn(tvm_runner *runner, tvm_slot *entry)
{
    tec_context *cx = base_child(runner->cx);
    bool ok = entry->id ? watch(cx, runner, entry) : take(cx, runner, entry);

    if (!ok && entry->id && !store_is_away(runner->db))
        hold_job(cx, runner, entry);
    if (!ok)
        base_adopt(runner->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* Once an hour. */
static bool sweep(tvm_runner *runner)
{
    enum { HOUR = 3600 };
    int64_t n, now = tvm_clock_day(runner->o.ahead); /* the store says by it since when a job is over */

    if (!runner->o.keep_seconds || (runner->swept && now - runner->swept < HOUR))
        return true;
    tec_context *cx = base_child(runner->cx);
    bool ok = store_queue_expire(cx, runner->db, now - runner->o.keep_seconds, &n);
    if (ok)
        runner->swept = now;
    else
        base_adopt(runner->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* A twentieth of the file system, or 64 MiB. */
static bool has_room(const tvm_runner *runner)
{
    enum { ENOUGH = 64 << 20, SHARE = 20 };
    struct statvfs f;

    if (statvfs(runner->o.work, &f) != 0)
        return false;
    uint64_t room = (uint64_t)f.f_bavail * f.f_frsize, all = (uint64_t)f.f_blocks * f.f_frsize;
    return room >= ENOUGH || room >= all / SHARE;
}

/* Every few seconds: jobs of daemons that fell silent are interrupted, so that even jobs that wait for
 * their kernels go on; jobs that wait for what passes are queued again, while the disk has room. */
static bool revive(tvm_runner *runner)
{
    enum { SECONDS = 2 };
    int64_t now = tvm_seconds(runner);

    if (runner->revived && now - runner->revived < SECONDS)
        return true;
    runner->revived = now;
    tec_context *cx = base_child(runner->cx);
    bool ok = store_queue_recover(cx, runner->db, NULL) &&
              (!has_room(runner) || store_queue_revive(cx, runner->db, TVM_WAITING));
    if (!ok)
        base_adopt(runner->cx, cx);
    tec_context_free(cx);
    return ok;
}

/* Housekeeping first, then each slot does what it can do without waiting. */
bool tvm_runner_step(tvm_runner *runner, int ms)
{
    bool ok = sweep(runner) && revive(runner);

    for (int i = 0; i < runner->o.at_once; i++)
        ok &= turn(runner, &runner->slots[i]);
    poll(NULL, 0, ms);
    return ok;
}

/* Makes the folder of the jobs' files or empties it, opens the store, and puts jobs that a killed daemon left
 * running back into the queue. */
tvm_runner *tvm_runner_open(tec_context *cx, const tvm_runner_options *options)
{
    tvm_runner *runner = base_new(cx, tvm_runner);

    *runner = (tvm_runner){.cx = cx, .o = *options};
    if (mkdir(options->work, 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = options->work}, "cannot make the folder: %s",
                         strerror(errno));
    tvm_sweep_folders(cx, runner);
    runner->db = store_open(cx, options->store, NULL);
    if (runner->db && store_queue_recover(cx, runner->db, options->alone ? "" : options->name))
        return runner;
    tvm_runner_close(runner);
    return NULL;
}

/* Jobs that this daemon was running become interrupted: they are the first that the next daemon takes. */
void tvm_runner_close(tvm_runner *runner)
{
    if (!runner)
        return;
    for (int i = 0; i < runner->o.at_once; i++)
        tvm_child_kill(&runner->slots[i].child);
    if (runner->db)
        store_queue_recover(runner->cx, runner->db, runner->o.name);
    store_close(runner->db);
}
