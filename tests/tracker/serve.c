/* tests/tracker/serve.c -- the tracker over loopback: each message, each refusal, connections that go. */
#include "tests/tracker/kit.h"

Test(tracker_serve, grants_a_device_of_a_server_that_was_dialled_back)
{
    kit k = {0};
    kit_side server, client;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    kit_request(&client, 5, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    cr_assert(client.granted.number == 5 && client.granted.lease == 1 && client.granted.term_ms == 20000);
    cr_assert_str_eq(client.texts[0], "a");
    cr_assert_str_eq(client.texts[2], "cpu:0");
    cr_assert(strncmp(client.texts[1], "127.0.0.1:", 10) == 0, "%s", client.texts[1]);
    kit_await(&k, &server.n[RPC_KIND_assigned], 1);
    cr_assert_eq(server.assigned_on, 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_renew, &(rpc_renew){1});
    kit_await(&k, &client.n[RPC_KIND_renewed], 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_give_back, &(rpc_give_back){1});
    kit_await(&k, &client.n[RPC_KIND_ended], 1);
    cr_assert(client.lease == 1 && client.status == TEC_OK);
    kit_await(&k, &server.n[RPC_KIND_assigned], 2);
    cr_assert_eq(server.assigned_on, 0);
    kit_close(&k);
}

Test(tracker_serve, says_that_a_server_is_registered_but_unreachable_and_why)
{
    kit k = {0};
    kit_side server, client;
    char nowhere[80];

    kit_open(&k, (track_service_options){0});
    snprintf(nowhere, sizeof nowhere, "%s", kit_serve(&k));
    rpc_listener_close(k.served);
    kit_join(&k, &server, 0);
    kit_announce(&server, "a", nowhere, 1);
    kit_await(&k, &server.n[RPC_KIND_dialled], 1);
    cr_assert_eq(server.reachable, 0);
    cr_assert(strstr(server.texts[3], "connection refused") && strstr(server.texts[3], nowhere), "%s",
              server.texts[3]);
    kit_join(&k, &client, 1);
    kit_inquire(&k, &client);
    cr_assert_str_eq(client.state, "unreachable");
    cr_assert(strstr(client.reason, "registered but unreachable: ") &&
                  strstr(client.reason, "connection refused"),
              "%s", client.reason);
    kit_close(&k);
}

Test(tracker_serve, keeps_a_lease_of_a_client_that_comes_back)
{
    kit k = {0};
    kit_side server, client, again;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    kit_request(&client, 1, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    rpc_conn_close(client.conn, TEC_LOST, "cut");
    kit_await_flag(&k, &client.closed);
    kit_join(&k, &again, 1);
    kit_inquire(&k, &again);
    cr_assert_str_eq(again.state, "leased");
    rpc_conn_send(again.conn, 0, RPC_KIND_renew, &(rpc_renew){1});
    kit_await(&k, &again.n[RPC_KIND_renewed], 1);
    kit_close(&k);
}

Test(tracker_serve, ends_a_lease_that_nobody_renews_and_serves_the_next)
{
    kit k = {0};
    kit_side server, dead, next;

    kit_open(&k, (track_service_options){.term_ms = 100});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &dead, 1);
    kit_request(&dead, 1, "ann");
    kit_await(&k, &dead.n[RPC_KIND_granted], 1);
    kit_join(&k, &next, 1);
    kit_request(&next, 1, "bob");
    kit_await(&k, &next.n[RPC_KIND_granted], 1);
    kit_await(&k, &dead.n[RPC_KIND_ended], 1);
    cr_assert_eq(dead.status, TEC_TIMEOUT);
    cr_assert_str_eq(dead.texts[3], "the lease was not renewed in time");
    kit_close(&k);
}

Test(tracker_serve, forgets_what_a_client_that_went_had_waited_for)
{
    kit k = {0};
    kit_side server, holder, gone, next;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &holder, 0);
    kit_request(&holder, 1, "ann");
    kit_await(&k, &holder.n[RPC_KIND_granted], 1);
    kit_join(&k, &gone, 1);
    kit_request(&gone, 1, "bob");
    kit_inquire(&k, &gone); /* the request has arrived */
    rpc_conn_close(gone.conn, TEC_LOST, "cut");
    kit_await_flag(&k, &gone.closed);
    kit_join(&k, &next, 1);
    kit_request(&next, 1, "cid");
    kit_inquire(&k, &next);
    rpc_conn_send(holder.conn, 0, RPC_KIND_give_back, &(rpc_give_back){1});
    kit_await(&k, &next.n[RPC_KIND_granted], 1);
    kit_inquire(&k, &next);
    cr_assert_str_eq(next.user, "cid");
    kit_close(&k);
}

Test(tracker_serve, loses_a_server_whose_connection_goes)
{
    kit k = {0};
    kit_side server, client;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    rpc_conn_close(server.conn, TEC_LOST, "cut");
    kit_join(&k, &client, 1);
    do
        kit_inquire(&k, &client);
    while (strcmp(client.state, "free") == 0);
    cr_assert_str_eq(client.state, "lost");
    cr_assert(strstr(client.reason, "closed the connection"), "%s", client.reason);
    kit_add_server(&k, &server, "a", 1);
    kit_inquire(&k, &client);
    cr_assert_str_eq(client.state, "free");
    kit_close(&k);
}

Test(tracker_serve, loses_a_server_without_heartbeats)
{
    kit k = {0};
    kit_side server, client;

    kit_open(&k, (track_service_options){.heartbeat_ms = 20});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    do
        kit_inquire(&k, &client);
    while (strcmp(client.state, "lost") != 0);
    cr_assert_str_eq(client.reason, "no heartbeat for 0.06 s");
    kit_close(&k);
}

Test(tracker_serve, drains_and_sets_aside)
{
    kit k = {0};
    kit_side server, admin;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &admin, 0);
    rpc_conn_send(admin.conn, 0, RPC_KIND_drain_server, &(rpc_drain_server){"a", 1});
    kit_await(&k, &admin.n[RPC_KIND_noted], 1);
    kit_inquire(&k, &admin);
    cr_assert_str_eq(admin.state, "draining");
    rpc_conn_send(admin.conn, 0, RPC_KIND_drain_server, &(rpc_drain_server){"a", 0});
    rpc_conn_send(admin.conn, 0, RPC_KIND_set_aside, &(rpc_set_aside){"a/cpu:0", "too hot"});
    kit_await(&k, &admin.n[RPC_KIND_noted], 3);
    kit_inquire(&k, &admin);
    cr_assert_str_eq(admin.state, "set aside");
    cr_assert_str_eq(admin.reason, "too hot");
    rpc_conn_send(admin.conn, 0, RPC_KIND_set_aside, &(rpc_set_aside){"a/cpu:0", ""});
    kit_request(&admin, 1, "ann");
    kit_await(&k, &admin.n[RPC_KIND_granted], 1);
    kit_close(&k);
}

Test(tracker_serve, refuses_by_name_what_a_key_may_not)
{
    kit k = {0};
    kit_side server, client, thief;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    kit_announce(&client, "b", ":1", 1);
    kit_await(&k, &client.n[RPC_KIND_failure], 1);
    cr_assert_eq(client.status, TEC_DENIED);
    cr_assert_str_eq(client.texts[3],
                     "key 2222222222222222 may not send 'announce': it lacks the role 'serve'");
    rpc_conn_send(client.conn, 0, RPC_KIND_set_aside, &(rpc_set_aside){"a/cpu:0", "mine"});
    kit_await(&k, &client.n[RPC_KIND_failure], 2);
    cr_assert_str_eq(client.texts[3],
                     "key 2222222222222222 has neither the role 'administer' nor a lease on 'a/cpu:0'");
    kit_request(&client, 1, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_set_aside, &(rpc_set_aside){"a/cpu:0", "mine now"});
    kit_await(&k, &client.n[RPC_KIND_noted], 1);
    cr_assert_eq(client.leases, 1);
    kit_join(&k, &thief, 0);
    rpc_conn_send(thief.conn, 0, RPC_KIND_give_back, &(rpc_give_back){1});
    kit_await(&k, &thief.n[RPC_KIND_ended], 1);
    cr_assert_str_eq(thief.texts[3], "the lease belongs to another key");
    rpc_conn_send(thief.conn, 0, RPC_KIND_renew, &(rpc_renew){77});
    kit_await(&k, &thief.n[RPC_KIND_ended], 2);
    cr_assert_str_eq(thief.texts[3], "there is no such lease: it ended, or never was");
    kit_close(&k);
}

static void expect_refusal(kit *k, kit_side *s, rpc_request r, const char *said)
{
    int before = s->n[RPC_KIND_refused];

    r.user = r.user ? r.user : "ann";
    r.prefer = "";
    r.job = "1";
    rpc_conn_send(s->conn, 0, RPC_KIND_request, &r);
    kit_await(k, &s->n[RPC_KIND_refused], before + 1);
    cr_assert(strstr(s->texts[3], said), "%s", s->texts[3]);
}

Test(tracker_serve, refuses_requests_that_make_no_sense)
{
    kit k = {0};
    kit_side server, client;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    expect_refusal(&k, &client, (rpc_request){.class = "rpi5"},
                   "there is no device class 'rpi5'; there are: rpi4");
    expect_refusal(&k, &client, (rpc_request){.class = "rpi4", .priority = 101},
                   "a priority is from 1 to 100");
    expect_refusal(&k, &client, (rpc_request){.class = "rpi4", .priority = INT64_MIN},
                   "a priority is from 1");
    expect_refusal(&k, &client, (rpc_request){.class = "rpi4", .term_ms = 5}, "a lease lasts from 1,000 to");
    expect_refusal(&k, &client, (rpc_request){.class = "rpi4", .user = "a\tb"}, "the control character 0x09");
    kit_request(&client, 1, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    kit_request(&client, 2, "ann");
    expect_refusal(&k, &client, (rpc_request){.class = "rpi4", .number = 2}, "of this number waits already");
    rpc_conn_send(client.conn, 0, RPC_KIND_withdraw, &(rpc_withdraw){2});
    kit_await(&k, &client.n[RPC_KIND_refused], 7);
    cr_assert_eq(client.status, TEC_CANCELLED);
    kit_close(&k);
}

Test(tracker_serve, refuses_a_second_server_of_a_name_and_a_session)
{
    kit k = {0};
    kit_side server, other;

    kit_open(&k, (track_service_options){0});
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &other, 0);
    kit_announce(&other, "a", ":7", 1);
    kit_await(&k, &other.n[RPC_KIND_failure], 1);
    cr_assert(strstr(other.texts[3], "a server named 'a' is registered already, at 127.0.0.1:"), "%s",
              other.texts[3]);
    kit_announce(&other, "b", "nowhere", 1);
    kit_await(&k, &other.n[RPC_KIND_failure], 2);
    cr_assert(strstr(other.texts[3], "'nowhere' is not an address"), "%s", other.texts[3]);
    rpc_conn_send(other.conn, 0, RPC_KIND_list, &(rpc_list){0});
    kit_await_flag(&k, &other.closed);
    cr_assert(strstr(other.texts[3], "message 'list' is for servers, not for trackers"), "%s",
              other.texts[3]);
    kit_close(&k);
}

Test(tracker_serve, pages_through_many_devices)
{
    kit k = {0};
    kit_side servers[40], client;
    int64_t devices = 0;

    kit_open(&k, (track_service_options){0});
    for (int i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof name, "s%d", i);
        kit_add_server(&k, &servers[i], name, 2);
    }
    kit_join(&k, &client, 1);
    client.next = 0;
    do {
        int before = client.n[RPC_KIND_state];

        rpc_conn_send(client.conn, 0, RPC_KIND_inquire, &(rpc_inquire){client.next});
        kit_await(&k, &client.n[RPC_KIND_state], before + 1);
        devices += client.devices;
    } while (client.next);
    cr_assert_eq(devices, 80);
    kit_close(&k);
}

/* Names as long as they may be: pages get shorter, and all devices are still there. */
Test(tracker_serve, pages_through_long_names)
{
    enum { SERVERS = 70, LONG = 200 };
    kit k = {0};
    static kit_side servers[SERVERS];
    kit_side client;
    char text[LONG + 1] = "", name[LONG + 16];
    int64_t devices = 0;
    int pages = 0;

    memset(text, 'x', LONG);
    kit_open(&k, (track_service_options){0});
    for (int i = 0; i < SERVERS; i++) {
        rpc_offered d = {text, text, text, text, text, {0}};

        kit_join(&k, &servers[i], 0);
        snprintf(name, sizeof name, "%d%s", 100 + i, text + 3);
        rpc_conn_send(servers[i].conn, 0, RPC_KIND_announce, &(rpc_announce){name, kit_serve(&k), {&d, 1}});
        kit_await(&k, &servers[i].n[RPC_KIND_dialled], 1);
    }
    kit_join(&k, &client, 1);
    client.next = 0;
    do {
        int before = client.n[RPC_KIND_state];

        rpc_conn_send(client.conn, 0, RPC_KIND_inquire, &(rpc_inquire){client.next});
        kit_await(&k, &client.n[RPC_KIND_state], before + 1);
        devices += client.devices;
        pages++;
    } while (client.next);
    cr_assert_eq(devices, SERVERS);
    cr_assert_geq(pages, 2);
    kit_close(&k);
}
