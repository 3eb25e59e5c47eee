/* tests/tracker/program.c -- the program rpc_tracker: ready, killed and started again, drained, misused. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracker/kit.h"

static const char tracker_program[] = TEC_BINARY_DIR "/rpc_tracker";
static const char key_lines[] =
    "1111111111111111 2222222222222222222222222222222222222222222222222222222222222222 "
    "submit,serve,administer * active users=*\n"
    "2222222222222222 4444444444444444444444444444444444444444444444444444444444444444 "
    "submit rpi4 active users=ann,bob\n";
static char folder[] = "/tmp/tec-tracker-XXXXXX", keys[64], config[64];

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void set_up(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(keys, sizeof keys, "%s/pool.keys", folder);
    snprintf(config, sizeof config, "%s/tracker.conf", folder);
    write_file(keys, key_lines);
}

static void tear_down(void)
{
    static const char *const names[] = {"pool.keys",      "tracker.conf",   "tracker.db",
                                        "tracker.db-wal", "tracker.db-shm", "pool.keys.lock"};
    char path[100];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Starts a program with its output and errors in a pipe. */
static pid_t start_program(const char *program, const char *const *args, int *output)
{
    int ends[2];
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execv(program, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    close(ends[1]);
    *output = ends[0];
    return child;
}

/* A tracker that is ready; its port goes into the kit. */
static pid_t start_ready(kit *k, const char *listen, int *output)
{
    const char *args[] = {tracker_program, "--listen", listen, "--key-file", keys,
                          "--quiet",       "--config", config, NULL};
    pid_t child = start_program(tracker_program, args, output);
    char line[200] = "";
    int port = 0;

    for (size_t n = 0; n + 1 < sizeof line && read(*output, line + n, 1) == 1 && line[n] != '\n'; n++)
        ;
    cr_assert_eq(sscanf(line, "rpc_tracker: ready at port %d", &port), 1, "%s", line);
    snprintf(k->tracker, sizeof k->tracker, "127.0.0.1:%d", port);
    return child;
}

Test(tracker_program, keeps_a_lease_over_a_kill, .init = set_up, .fini = tear_down)
{
    kit k = {0};
    kit_side server, client, next;
    int output, status;

    kit_open_loop(&k);
    write_file(config, "lease 60\n");
    pid_t child = start_ready(&k, "127.0.0.1:0", &output);
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &client, 1);
    kit_request(&client, 1, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    cr_assert(client.granted.lease == 1 && client.granted.term_ms == 60000);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(output);
    kit_await_flag(&k, &client.closed);
    kit_await_flag(&k, &server.closed);

    child = start_ready(&k, "127.0.0.1:0", &output);
    kit_add_server(&k, &server, "a", 1);
    kit_join(&k, &next, 0);
    kit_request(&next, 1, "bob");
    kit_inquire(&k, &next);
    cr_assert_str_eq(next.user, "ann", "the device is still leased");
    cr_assert(server.n[RPC_KIND_assigned] == 1 && server.assigned_on == 1, "its server was told so");
    kit_join(&k, &client, 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_renew, &(rpc_renew){1});
    kit_await(&k, &client.n[RPC_KIND_renewed], 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_give_back, &(rpc_give_back){1});
    kit_await(&k, &next.n[RPC_KIND_granted], 1);
    cr_assert_eq(next.granted.lease, 2);

    kill(child, SIGTERM);
    kit_await_flag(&k, &next.closed);
    cr_assert_eq(next.n[RPC_KIND_goodbye], 1);
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(output);
    cr_assert(rpc_loop_free(k.loop));
}

Test(tracker_program, holds_keys_to_their_classes_and_reads_them_again, .init = set_up, .fini = tear_down)
{
    kit k = {0};
    kit_side client, late = {0};
    int output;

    kit_open_loop(&k);
    write_file(config, "weight ann 3\n# a comment\n\nheartbeat 2\n");
    pid_t child = start_ready(&k, "127.0.0.1:0", &output);
    kit_join(&k, &client, 1);
    rpc_conn_send(client.conn, 0, RPC_KIND_request,
                  &(rpc_request){.number = 1, .class = "rpi5", .user = "ann", .job = "1", .prefer = ""});
    kit_await(&k, &client.n[RPC_KIND_refused], 1);
    cr_assert_str_eq(client.texts[3], "key 2222222222222222 is not for devices of class 'rpi5'");
    write_file(keys, "1111111111111111 2222222222222222222222222222222222222222222222222222222222222222 "
                     "submit,serve,administer * active users=*\n");
    kill(child, SIGHUP);
    /* The signal takes its time: the key is let in until the tracker has read the file. */
    do {
        rpc_conn_options o = {
            .link = {.key = &k.keys[1], .program = "t"}, .events = &kit_events, .user = &late};

        late = (kit_side){.k = &k};
        late.conn = rpc_dial(k.loop, k.tracker, &o, NULL);
        while (!late.ready && !late.closed)
            rpc_loop_run(k.loop);
        if (late.ready) {
            rpc_conn_close(late.conn, TEC_OK, "again");
            kit_await_flag(&k, &late.closed);
        }
    } while (late.ready);
    cr_assert_eq(late.why.status, TEC_DENIED, "%s", late.why.text);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    close(output);
    cr_assert(rpc_loop_free(k.loop));
}

/* What a program given by its path says, which must succeed or not. */
static const char *tell(const char *program, const char *const *args, int wanted)
{
    static char text[20000];
    int output, status;
    size_t n = 0;
    pid_t child = start_program(program, args, &output);

    for (ssize_t got; n + 1 < sizeof text && (got = read(output, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(output);
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == wanted, "%s", text);
    return text;
}

Test(tracker_program, is_asked_by_tec_devices, .init = set_up, .fini = tear_down)
{
    static const char tec[] = TEC_BINARY_DIR "/tec";
    kit k = {0};
    kit_side server, client;
    int output;

    kit_open_loop(&k);
    write_file(config, "heartbeat 60\n");
    pid_t child = start_ready(&k, "127.0.0.1:0", &output);
    kit_add_server(&k, &server, "shelf-3", 2);
    kit_join(&k, &client, 1);
    kit_request(&client, 1, "ann");
    kit_await(&k, &client.n[RPC_KIND_granted], 1);
    const char *args[] = {tec, "devices", "--tracker", k.tracker, "--key-file", keys, NULL, NULL};
    const char *said = tell(tec, args, 0);
    cr_assert(strstr(said, "1 servers") &&
                  strstr(said, "shelf-3/cpu:0            rpi4           leased      ann, job"),
              "%s", said);
    cr_assert(
        strstr(said,
               "shelf-3/cpu:1            rpi4           free        Cortex-A72\n"
               "                         caches of a core: l1_data 32 KiB, l1_code 48 KiB, l2 1024 KiB\n"),
        "%s", said);
    args[6] = "--json";
    said = tell(tec, args, 0);
    cr_assert(strstr(said, "\"state\":\t\"leased\"") && strstr(said, "\"longest_wait\""), "%s", said);
    cr_assert(strstr(said, "\"l2\":\t1048576") && !strstr(said, "\"l3\""), "%s", said);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    close(output);
    args[6] = NULL;
    said = tell(tec, args, 1);
    cr_assert(strstr(said, k.tracker) && strstr(said, "connection refused"), "%s", said);
    cr_assert(rpc_loop_free(k.loop));
}

static void fails(int wanted, const char *said, const char *a, const char *b, const char *c, const char *d)
{
    const char *args[] = {tracker_program, a, b, c, d, NULL};
    const char *text = tell(tracker_program, args, wanted);

    cr_assert(strstr(text, said), "%s", text);
}

Test(tracker_program, names_what_is_wrong_with_its_options, .init = set_up, .fini = tear_down)
{
    fails(1, "0.0.0.0:0 can be reached from other machines: name the keys that may connect with --key-file",
          "--listen", "0.0.0.0:0", NULL, NULL);
    fails(1, "'nowhere' is not an address", "--listen", "nowhere", "--key-file", keys);
    fails(2, "lease takes 0.1 to 3600 seconds, not 'long'", "--lease", "long", NULL, NULL);
    fails(2, "unexpected operand 'more'", "more", NULL, NULL, NULL);
    fails(2, "unrecognized option '--what'", "--what", NULL, NULL, NULL);
    fails(2, "/none: cannot read this configuration", "--config", "/none", NULL, NULL);
    write_file(config, "lease 5\nweight ann\n");
    fails(2, "tracker.conf:2: expected 'weight USER N'", "--config", config, NULL, NULL);
    write_file(config, "speed 5\n");
    fails(2, "tracker.conf:1: there is no option 'speed'", "--config", config, NULL, NULL);
    write_file(config, "weight ann 0\n");
    fails(1, "tracker.conf:1: the weight of user 'ann' is 0", "--config", config, "--key-file", keys);
    fails(0, "usage: rpc_tracker", "--help", NULL, NULL, NULL);
}
