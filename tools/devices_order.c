/* tools/devices_order.c -- `tec devices --tracker` with --set-aside, --drain or --restore: what an
 * administrator tells a pool. */
#include <stdio.h>
#include <string.h>

#include "rpc/keys.h"
#include "rpc/link.h"
#include "runtime/error.h"
#include "tec/rpc.h"
#include "tools/args.h"
#include "tools/data.h"
#include "tools/devices_pool.h"
#include "tools/key_file.h"

/* An order is for a pool, is one of three, and has a reason where the list shows one. */
int tool_check_order(const tool_pool_order *order, const char *tracker, bool json)
{
    int n = (order->set_aside != NULL) + (order->drain != NULL) + (order->restore != NULL);

    if (n && !tracker)
        return tool_misuse("devices", "--set-aside, --drain and --restore are for --tracker");
    if (n > 1)
        return tool_misuse("devices", "give one of --set-aside, --drain and --restore");
    if (order->set_aside && (!order->why || !*order->why))
        return tool_misuse("devices", "--set-aside needs --why: the reason, which the list shows");
    if (order->why && !order->set_aside)
        return tool_misuse("devices", "--why is for --set-aside");
    if (n && json)
        return tool_misuse("devices", "--json is for the list");
    return TOOL_GO_ON;
}

/* The first key of the file that has the role administer. A file without one leaves the choice to the
 * library, and the refusal to the tracker. */
static bool pick_administrator(const char *path, rpc_id_text *id, bool *found, tec_error *err)
{
    rpc_keys keys = {0};

    *found = false;
    if (!rpc_keys_read(&keys, path, err))
        return false;
    for (int i = 0; i < keys.n && !*found; i++) {
        const rpc_key_row *row = &keys.rows[i];

        *found = row->state != RPC_KEY_REVOKED && (row->roles & RPC_ROLE_ADMINISTER);
        if (*found)
            *id = rpc_show_id(row->key.id);
    }
    rpc_keys_free(&keys);
    return true;
}

/* Says it, and prints what became of it. */
static bool carry_out(tec_rpc *tracker, const tool_pool_order *order, tec_error *err)
{
    int64_t leases = 0;

    if (order->set_aside) {
        if (!tec_rpc_set_device_aside(tracker, order->set_aside, order->why, &leases, err))
            return false;
        printf("%s is set aside%s\n", order->set_aside, leases ? "; the lease on it goes on" : "");
    } else if (order->drain) {
        if (!tec_rpc_drain(tracker, order->drain, &leases, err))
            return false;
        printf("%s is draining; leases that go on: %lld\n", order->drain, (long long)leases);
    } else {
        if (!tec_rpc_restore(tracker, order->restore, err))
            return false;
        printf("%s is in service again\n", order->restore);
    }
    return true;
}

/* Reads the key file twice: first for the id of an administrator's key, then the library for that key. */
int tool_order_pool(const char *tracker, const char *key_file, const tool_pool_order *order)
{
    char path[4096];
    rpc_id_text id;
    bool found;
    tec_error err = {0};

    if (!tool_key_file(key_file, path, sizeof path)) {
        rt_fail(&err, TEC_INVALID, "cannot find the key file: --key-file is not given and HOME is not set");
        return tool_fail_run("devices", &err);
    }
    if (!pick_administrator(path, &id, &found, &err))
        return tool_fail_run("devices", &err);
    tec_rpc *connection = tec_rpc_connect(
        tracker,
        &(tec_rpc_options){
            .key_file = path, .key = found ? id.text : NULL, .program = "tec devices", .seconds = 10},
        &err);
    bool good = connection && carry_out(connection, order, &err);
    tec_rpc_disconnect(connection);
    return good ? TOOL_OK : tool_fail_run("devices", &err);
}
