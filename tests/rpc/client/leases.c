/* tests/rpc/client/leases.c -- a tracker, servers and a client as they meet: leases, tickets, restarts,
 * drains. */
#include "tests/rpc/client/pool.h"
#include <pthread.h>

/* A session on the leased device answers a call. */
static void use(pool *p, tec_rpc_lease *l)
{
    int32_t y[2] = {0};
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p->err);

    cr_assert(c, "%s", p->err.text);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p->err);
    cr_assert(s, "%s", p->err.text);
    cr_assert(kit_call(&p->server[0], s, "sum", "\1\2", y), "%s", p->server[0].err.text);
    cr_assert_eq(y[0], 3);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
}

Test(leases, open_sessions_on_the_leased_server)
{
    pool p = pool_start(2, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *a = pool_lease(&p, t, "1"), *b = pool_lease(&p, t, "2");
    tec_rpc_grant_info of_a, of_b;

    cr_assert(tec_rpc_granted(a, &of_a) && tec_rpc_granted(b, &of_b));
    cr_assert_str_neq(of_a.server, of_b.server);
    use(&p, a);
    use(&p, b);
    tec_rpc_give_back(a);
    tec_rpc_give_back(b);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* A server that is taken for a tracker says so at once, and so does a tracker that is taken for a server. */
Test(leases, are_given_by_no_server_and_sessions_by_no_tracker)
{
    pool p = pool_start(1, NULL);
    tec_rpc *server = kit_connect(&p.server[0]), *tracker = pool_connect(&p);
    tec_rpc_lease *l = tec_rpc_request(
        server, &(tec_rpc_lease_options){.device_class = "board", .user = "ann", .job = "1"}, &p.err);
    tec_error err = {0};

    cr_assert(!l || tec_rpc_wait(l, 20, &err) != TEC_RPC_WAITING, "the request waits in vain");
    cr_assert(strstr(l ? err.text : p.err.text, "this is an rpc_server, and no tracker"), "%s",
              l ? err.text : p.err.text);
    cr_assert(kit_logged(&p.server[0], "refused 'request': this is an rpc_server, and no tracker"));
    err = (tec_error){0};
    cr_assert_null(tec_rpc_open(tracker, NULL, &err));
    cr_assert(strstr(err.text, "is for servers, not for trackers"), "%s", err.text);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(server);
    tec_rpc_disconnect(tracker);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, are_demanded_by_a_server_of_a_pool)
{
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p), *c = kit_connect(&p.server[0]);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc_grant_info g;
    tec_error err = {0};

    cr_assert_null(tec_rpc_open(c, NULL, &err));
    cr_assert_eq(err.status, TEC_DENIED);
    cr_assert(strstr(err.text, "ask the tracker for a lease"), "%s", err.text);
    cr_assert(tec_rpc_granted(l, &g));
    err = (tec_error){0};
    cr_assert_null(tec_rpc_open(c, &(tec_rpc_session_options){.lease = g.number + 7}, &err));
    cr_assert_eq(err.status, TEC_DENIED);
    cr_assert(strstr(err.text, "no lease"), "%s", err.text);
    tec_rpc_session *s = tec_rpc_open(c, &(tec_rpc_session_options){.lease = g.number}, &p.err);
    cr_assert(s, "%s", p.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* A good key, and a lease that another key has. */
Test(leases, admit_the_key_that_has_them_alone)
{
    pool p = pool_start(1, NULL);
    rpc_key_row row = {.roles = RPC_ROLE_SUBMIT, .classes = "board", .users = "bob"};
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc_grant_info g;
    tec_error err = {0};

    cr_assert(rpc_keys_add(p.keys, &row, &p.err));
    rpc_id_text id = rpc_show_id(row.key.id);
    cr_assert(tec_rpc_granted(l, &g));
    tec_rpc *thief =
        tec_rpc_connect(g.address, &(tec_rpc_options){.key_file = p.keys, .key = id.text}, &p.err);
    cr_assert(thief, "%s", p.err.text);
    cr_assert_null(tec_rpc_open(thief, &(tec_rpc_session_options){.lease = g.number}, &err));
    cr_assert_eq(err.status, TEC_DENIED, "%s", err.text);
    use(&p, l);
    tec_rpc_disconnect(thief);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, take_their_sessions_with_them)
{
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p.err);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p.err);
    int32_t y[2];

    cr_assert(s, "%s", p.err.text);
    tec_rpc_give_back(l);
    cr_assert(kit_logged(&p.server[0], "session 1: over"));
    cr_assert_not(kit_call(&p.server[0], s, "sum", "\1", y));
    cr_assert_eq(p.server[0].err.status, TEC_DENIED);
    cr_assert(strstr(p.server[0].err.text, "is over"), "%s", p.server[0].err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, are_waited_for_in_a_queue)
{
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1"), *wait[3];
    tec_rpc_queue q = {0};

    for (int i = 0; i < 3; i++) {
        wait[i] = tec_rpc_request(
            t, &(tec_rpc_lease_options){.device_class = "board", .user = "ann", .job = "2"}, &p.err);
        cr_assert(wait[i], "%s", p.err.text);
    }
    for (int i = 0; i < 100 && !tec_rpc_queue_of(wait[2], &q); i++)
        cr_assert_eq(tec_rpc_wait(wait[2], 0.1, &p.err), TEC_RPC_WAITING, "%s", p.err.text);
    cr_assert(q.ahead == 2 && q.devices == 1 && q.leased == 1, "%lld ahead", (long long)q.ahead);
    tec_rpc_give_back(wait[1]);
    tec_rpc_give_back(l);
    cr_assert_eq(tec_rpc_wait(wait[0], 20, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    tec_rpc_give_back(wait[0]);
    cr_assert_eq(tec_rpc_wait(wait[2], 20, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    use(&p, wait[2]);
    tec_rpc_give_back(wait[2]);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

static void *wait_in_vain(void *user)
{
    tec_error err = {0};

    tec_rpc_wait(user, 5, &err);
    return NULL;
}

/* The lease lasts three seconds; those who wait keep the connection busy. */
Test(leases, are_renewed_while_others_are_waited_for)
{
    enum { WAITERS = 4 };
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "has"), *other[WAITERS];
    pthread_t thread[WAITERS];

    for (int i = 0; i < WAITERS; i++) {
        other[i] = tec_rpc_request(
            t, &(tec_rpc_lease_options){.device_class = "board", .user = "ann", .job = "waits"}, &p.err);
        cr_assert_eq(pthread_create(&thread[i], NULL, wait_in_vain, other[i]), 0);
    }
    for (int i = 0; i < WAITERS; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(tec_rpc_wait(l, 0, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    for (int i = 0; i < WAITERS; i++)
        tec_rpc_give_back(other[i]);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* A session goes on while the tracker is away; the lease and the request are there when it is back. */
Test(leases, outlive_a_tracker_that_is_killed)
{
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc_lease *next =
        tec_rpc_request(t, &(tec_rpc_lease_options){.device_class = "board", .user = "bob"}, &p.err);
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p.err);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p.err);
    int32_t y[2];

    cr_assert(s, "%s", p.err.text);
    pool_kill_tracker(&p);
    cr_assert(kit_logged(&p.server[0], "dialling again"));
    cr_assert(kit_call(&p.server[0], s, "sum", "\1\2", y), "%s", p.server[0].err.text);
    pool_start_tracker(&p, pool_port(&p));
    for (int i = 0; i < 50; i++) { /* longer than a lease lasts without being renewed */
        cr_assert_eq(tec_rpc_wait(next, 0.1, &p.err), TEC_RPC_WAITING, "%s", p.err.text);
        cr_assert_eq(tec_rpc_wait(l, 0, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    }
    cr_assert(kit_call(&p.server[0], s, "sum", "\1\2", y), "%s", p.server[0].err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_give_back(l);
    cr_assert_eq(tec_rpc_wait(next, 20, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    use(&p, next);
    tec_rpc_give_back(next);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* The lease runs out while the tracker cannot hear of its end: nobody renewed it. */
Test(leases, that_nobody_renews_end_with_their_sessions)
{
    pool p = pool_start(1, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p.err);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p.err);

    cr_assert(s, "%s", p.err.text);
    tec_rpc_cancel(t); /* the library's thread renews no more */
    cr_assert(kit_logged(&p.server[0], "session 1: over"));
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    t = pool_connect(&p);
    l = pool_lease(&p, t, "2");
    use(&p, l);
    tec_rpc_give_back(l);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, are_finished_by_a_server_that_drains)
{
    pool p = pool_start(2, NULL);
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1"), *other;
    tec_rpc_grant_info g, h;
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p.err);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p.err);
    int32_t y[2];

    cr_assert(s && tec_rpc_granted(l, &g), "%s", p.err.text);
    int i = g.server[1] - '0';
    kill(p.server[i].pid, SIGTERM);
    cr_assert(kit_logged(&p.server[i], "draining: 1 sessions at work"));
    cr_assert(kit_call(&p.server[i], s, "sum", "\1\2", y), "%s", p.server[i].err.text);
    other = pool_lease(&p, t, "2");
    cr_assert(tec_rpc_granted(other, &h));
    cr_assert_str_neq(g.server, h.server, "a draining server was leased");
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_give_back(l);
    cr_assert_eq(kit_end(&p.server[i]), 0);
    tec_rpc_give_back(other);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* The request of each: the same one for a user of the key is granted. */
Test(leases, are_for_the_users_and_classes_of_the_key)
{
    pool p = pool_start(1, NULL);
    rpc_key_row row = {.roles = RPC_ROLE_SUBMIT, .classes = "board,gpu", .users = "bob,eve"};
    tec_error err = {0};

    cr_assert(rpc_keys_add(p.keys, &row, &p.err));
    rpc_id_text id = rpc_show_id(row.key.id);
    kill(p.tracker_pid, SIGHUP);
    tec_rpc *t = NULL;
    for (int i = 0; i < 100 && !t; i++) {
        p.err = (tec_error){0};
        t = tec_rpc_connect(p.tracker, &(tec_rpc_options){.key_file = p.keys, .key = id.text}, &p.err);
        if (!t)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    cr_assert(t, "%s", p.err.text);
    static const struct {
        const char *user, *class, *fault;
    } cases[] = {{"ann", "board", "is not for user 'ann'"},
                 {"bob", "phone", "is not for devices of class 'phone'"},
                 {"bob", "gpu", "there is no device class 'gpu'; there are: board"},
                 {"eve", "board", NULL},
                 {NULL, "board", NULL}};
    for (int i = 0; i < BASE_COUNT(cases); i++) {
        tec_rpc_lease *l = tec_rpc_request(
            t, &(tec_rpc_lease_options){.device_class = cases[i].class, .user = cases[i].user}, &p.err);
        err = (tec_error){0};
        tec_rpc_lease_state state = tec_rpc_wait(l, 20, &err);
        cr_assert_eq(state, cases[i].fault ? TEC_RPC_FAILED : TEC_RPC_GRANTED, "case %d: %s", i, err.text);
        cr_assert(!cases[i].fault || strstr(err.text, cases[i].fault), "%s", err.text);
        tec_rpc_give_back(l);
    }
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, reach_a_server_that_only_dials_out_by_relay)
{
    pool p = pool_start(2, (const char *[]){"--dial-out", NULL});
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *a = pool_lease(&p, t, "1"), *b = pool_lease(&p, t, "2");
    tec_rpc_grant_info g;

    cr_assert(tec_rpc_granted(a, &g));
    cr_assert_str_eq(g.address, "");
    for (int i = 0; i < 3; i++) {
        use(&p, a);
        use(&p, b);
    }
    tec_rpc_give_back(a);
    tec_rpc_give_back(b);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* Eight megabytes there and back, many times what a connection holds. */
Test(leases, move_much_data_through_a_relay)
{
    enum { N = 1 << 21 };
    pool p = pool_start(1, (const char *[]){"--dial-out", NULL});
    tec_rpc *t = pool_connect(&p);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc *c = tec_rpc_connect_leased(l, NULL, &p.err);
    tec_rpc_session *s = tec_rpc_open(c, NULL, &p.err);
    int64_t n = N;
    tec_array *from = tec_array_new((DLDataType){kDLInt, 32, 1}, 1, &n, &p.err),
              *to = tec_array_new((DLDataType){kDLInt, 32, 1}, 1, &n, &p.err);
    int32_t *x = tec_array_data(from), *y = tec_array_data(to);

    cr_assert(s, "%s", p.err.text);
    for (int i = 0; i < N; i++)
        x[i] = i * 7;
    int64_t a = tec_rpc_array(s, (DLDataType){kDLInt, 32, 1}, 1, &n, &p.err);
    for (int i = 0; i < 3; i++) {
        memset(y, 0, N * sizeof *y);
        cr_assert(tec_rpc_write(s, a, tec_array_tensor(from), &p.err), "%s", p.err.text);
        cr_assert(tec_rpc_read(s, a, tec_array_tensor(to), &p.err), "%s", p.err.text);
        cr_assert_eq(memcmp(x, y, N * sizeof *y), 0);
    }
    tec_array_free(from);
    tec_array_free(to);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* What is refused leaves the connection as good as before. */
Test(leases, are_not_granted_while_an_administrator_says_so)
{
    pool p = pool_start(1, NULL);
    rpc_key_row row = {.roles = RPC_ROLE_SUBMIT, .classes = "*", .users = "*"};
    tec_error err = {0};
    char long_reason[2100] = "";
    int64_t leases = -1;

    cr_assert(rpc_keys_add(p.keys, &row, &p.err));
    pool_kill_tracker(&p);
    pool_start_tracker(&p, pool_port(&p)); /* reads the keys */
    rpc_id_text id = rpc_show_id(row.key.id);
    tec_rpc *t = pool_connect(&p), *other = pool_connect_as(&p, id.text);
    tec_rpc_lease *l = pool_lease(&p, t, "1");
    tec_rpc_give_back(l);
    cr_assert_not(tec_rpc_set_device_aside(other, "s0/cpu:0", "hot", NULL, &err));
    cr_assert_eq(err.status, TEC_DENIED);
    cr_assert(strstr(err.text, "has neither the role 'administer' nor a lease on 's0/cpu:0'"), "%s",
              err.text);
    err = (tec_error){0};
    cr_assert_not(tec_rpc_drain(other, "s0", &leases, &err));
    cr_assert_eq(err.status, TEC_DENIED);
    cr_assert_eq(leases, -1);
    cr_assert(strstr(err.text, "may not send 'drain_server': it lacks the role 'administer'"), "%s",
              err.text);
    memset(long_reason, 'x', sizeof long_reason - 1);
    err = (tec_error){0};
    cr_assert_not(tec_rpc_set_device_aside(t, "s0/cpu:0", long_reason, NULL, &err));
    cr_assert_str_eq(err.text, "expected a reason of at most 2000 bytes, found 2099");
    err = (tec_error){0};
    cr_assert_not(tec_rpc_restore(t, "s7", &err));
    cr_assert_eq(err.status, TEC_INVALID);

    l = pool_lease(&p, other, "1");
    cr_assert(tec_rpc_set_device_aside(t, "s0/cpu:0", "hot", &leases, &p.err), "%s", p.err.text);
    cr_assert_eq(leases, 1);
    use(&p, l);
    tec_rpc_give_back(l);
    l = tec_rpc_request(other, &(tec_rpc_lease_options){.device_class = "board"}, &p.err);
    cr_assert_eq(tec_rpc_wait(l, 0.3, &p.err), TEC_RPC_WAITING);
    cr_assert(tec_rpc_drain(t, "s0", &leases, &p.err), "%s", p.err.text);
    cr_assert_eq(leases, 0);
    cr_assert(tec_rpc_restore(t, "s0/cpu:0", &p.err), "%s", p.err.text);
    cr_assert_eq(tec_rpc_wait(l, 0.3, &p.err), TEC_RPC_WAITING);
    cr_assert(tec_rpc_restore(t, "s0", &p.err), "%s", p.err.text);
    cr_assert_eq(tec_rpc_wait(l, 20, &p.err), TEC_RPC_GRANTED, "%s", p.err.text);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(other);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

/* The rest of the test has a key of its own, since the first one of the file, which the server has, is
 * revoked. */
static void renew_the_key_of_servers(bool dials_out)
{
    pool p = pool_start(1, dials_out ? (const char *[]){"--dial-out", NULL} : NULL);
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};
    rpc_keys keys = {0};

    cr_assert(rpc_keys_read(&keys, p.keys, &p.err));
    rpc_id_text old = rpc_show_id(keys.rows[0].key.id);
    rpc_keys_free(&keys);
    cr_assert(rpc_keys_revoke(p.keys, old.text, &p.err));
    pool_kill_tracker(&p);
    pool_start_tracker(&p, pool_port(&p));
    cr_assert(kit_logged(&p.server[0], "has no key with the role 'serve' for devices of class 'board'"));
    cr_assert(rpc_keys_add(p.keys, &row, &p.err));
    pool_kill_tracker(&p);
    pool_start_tracker(&p, pool_port(&p));
    tec_rpc *t = pool_connect_as(&p, rpc_show_id(row.key.id).text);
    tec_rpc_lease *l = tec_rpc_request(t, &(tec_rpc_lease_options){.device_class = "board"}, &p.err);
    cr_assert_eq(tec_rpc_wait(l, 20, &p.err), TEC_RPC_GRANTED, "the server did not come back: see %s",
                 p.server[0].log);
    use(&p, l);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(t);
    cr_assert_eq(pool_stop(&p), 0);
}

Test(leases, are_of_servers_whose_key_was_renewed)
{
    renew_the_key_of_servers(false);
}

Test(leases, are_of_servers_behind_a_relay_whose_key_was_renewed)
{
    renew_the_key_of_servers(true);
}
