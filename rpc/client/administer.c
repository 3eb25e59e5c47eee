/* rpc/client/administer.c -- what an administrator of a pool tells its tracker. */
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/error.h"

enum { NAME_BYTES = 400, REASON_BYTES = 2000 }; /* the tracker refuses longer messages by closing */

/* Whether a text of the caller fits into the message. `what` names the text in the error. */
static bool is_good_text(const char *what, const char *text, size_t most, tec_error *err)
{
    if (!text || !*text)
        return rt_fail(err, TEC_INVALID, "expected %s, found none", what);
    if (strlen(text) > most)
        return rt_fail(err, TEC_INVALID, "expected %s of at most %zu bytes, found %zu", what, most,
                       strlen(text));
    return true;
}

static bool has_tracker(const tec_rpc *tracker, tec_error *err)
{
    return tracker || rt_fail(err, TEC_INVALID, "expected a connection to a tracker, found NULL");
}

/* Sends the message and waits for `noted` or a failure. `leases`, which may be NULL, gets how many leases the
 * tracker says that there still are. */
static bool order(tec_rpc *tracker, rpc_kind kind, const void *message, int64_t *leases, tec_error *err)
{
    bool fatal;
    bool good = rpc_begin(tracker, err);

    if (good && !rpc_link_send(tracker->link, 0, kind, message))
        good = rpc_lose(tracker, TEC_LOST, "the message cannot be sent", err);
    good = good && rpc_await_answer(tracker, 0, RPC_KIND_noted, &fatal, err);
    if (good && leases)
        *leases = tracker->message.noted.leases;
    rpc_end(tracker);
    return good;
}

bool tec_rpc_set_device_aside(tec_rpc *tracker, const char *device, const char *reason, int64_t *leases,
                              tec_error *err)
{
    return has_tracker(tracker, err) &&
           is_good_text("the name of a device (SERVER/DEVICE)", device, NAME_BYTES, err) &&
           is_good_text("a reason", reason, REASON_BYTES, err) &&
           order(tracker, RPC_KIND_set_aside, &(rpc_set_aside){device, reason}, leases, err);
}

bool tec_rpc_drain(tec_rpc *tracker, const char *server, int64_t *leases, tec_error *err)
{
    return has_tracker(tracker, err) && is_good_text("the name of a server", server, NAME_BYTES, err) &&
           order(tracker, RPC_KIND_drain_server, &(rpc_drain_server){server, 1}, leases, err);
}

/* Names of servers have no slash, and those of devices have one. */
bool tec_rpc_restore(tec_rpc *tracker, const char *name, tec_error *err)
{
    if (!has_tracker(tracker, err) ||
        !is_good_text("the name of a device (SERVER/DEVICE) or of a server", name, NAME_BYTES, err))
        return false;
    return strchr(name, '/') ? order(tracker, RPC_KIND_set_aside, &(rpc_set_aside){name, ""}, NULL, err)
                             : order(tracker, RPC_KIND_drain_server, &(rpc_drain_server){name, 0}, NULL, err);
}
