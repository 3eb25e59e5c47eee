/* tracker/state.h -- what must outlive the tracker: leases, classes, devices set aside; one SQLite file.
 *
 *     track_state *s = track_state_open("tracker.db", err);
 *     options.first_lease = track_state_next_lease(s);
 *     track_state_load(s, pool, now, err);
 *     ... from the pool's events: track_state_add_lease(s, lease), track_state_end_lease(s, number) ...
 *     if (!track_state_commit(s, err)) ... nothing of what was added since the last commit is kept
 *
 * Changes gather in one transaction; the tracker commits it before the messages that tell of them go out. So
 * a tracker that is killed at any moment has stored every grant that somebody knows of. A lease that was
 * stored and never told ends by time. The file is in WAL mode with `synchronous = NORMAL`: a commit outlives
 * the process; when the machine loses power, the last commits may be missing, but the file is whole.
 * Numbers of leases are never used twice, because the next one is stored with each commit.
 * Lifetime: closed by its owner, which drops what was not committed. Errors: false or NULL with the file and
 *   SQLite's reason; the first failure of a transaction shows in its commit. Threads: one at a time. One
 *   tracker at a time has the file.
 */
#ifndef TRACKER_STATE_H
#define TRACKER_STATE_H

#include "tracker/pool.h"

typedef struct track_state track_state;

/* Makes the file if need be. ":memory:" keeps nothing. */
track_state *track_state_open(const char *path, tec_error *err);
void track_state_close(track_state *state);
int64_t track_state_next_lease(const track_state *state);
bool track_state_load(track_state *state, track_pool *pool, int64_t now, tec_error *err);

void track_state_add_lease(track_state *state, const track_lease *lease);
void track_state_end_lease(track_state *state, int64_t number);
void track_state_set_class(track_state *state, const track_class *kind);
void track_state_set_aside(track_state *state, const track_device *device); /* or that it no longer is */
bool track_state_commit(track_state *state, tec_error *err);
/* After commits that failed: drops what has gathered and stores all that the pool knows. */
bool track_state_rewrite(track_state *state, const track_pool *pool, tec_error *err);

#endif
