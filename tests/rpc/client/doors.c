/* tests/rpc/client/doors.c -- who and what is not let in, each beside the same request done properly. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/rpc/client/kit.h"

#define PLAIN ((const char *[]){NULL})

/* ---- keys ---- */

static char *key_file(const fixture *f, const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return path;
}

/* Connects with a key file; false: f->err says why not. */
static bool can_connect(fixture *f, const char *keys)
{
    f->err = (tec_error){0};
    tec_rpc *c = tec_rpc_connect(f->address, &(tec_rpc_options){.key_file = keys, .seconds = 20}, &f->err);

    tec_rpc_disconnect(c);
    return c != NULL;
}

static void stop(fixture *f)
{
    cr_assert(can_connect(f, f->keys), "%s", f->err.text); /* the same, done properly */
    cr_assert_eq(kit_stop(f), 0);
}

Test(doors, are_shut_without_a_key_file)
{
    fixture f = kit_start(PLAIN);

    cr_assert_not(can_connect(&f, NULL));
    cr_assert_eq(f.err.status, TEC_INVALID);
    stop(&f);
}

Test(doors, are_shut_for_a_key_that_the_server_does_not_know)
{
    fixture f = kit_start(PLAIN);
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*"};
    const char *other = key_file(&f, "other.keys");

    cr_assert(rpc_keys_add(other, &row, &f.err));
    cr_assert_not(can_connect(&f, other));
    cr_assert_eq(f.err.status, TEC_DENIED, "%s", f.err.text);
    cr_assert(kit_logged(&f, "no such key"));
    stop(&f);
}

/* The id of a good key, and the secret of another one. The client sees by the server's proof that the secrets
 * differ, and leaves before it proves its own; the client of the replayed handshake does not leave. */
Test(doors, are_shut_for_a_wrong_secret)
{
    fixture f = kit_start(PLAIN);
    char *wrong = key_file(&f, "wrong.keys"), line[400];
    FILE *from = fopen(f.keys, "re"), *to = fopen(wrong, "we");

    while (fgets(line, sizeof line, from)) {
        if (line[0] != '#')
            line[20] = line[20] == 'a' ? 'b' : 'a';
        fputs(line, to);
    }
    fclose(from);
    fclose(to);
    cr_assert_eq(chmod(wrong, 0600), 0);
    cr_assert_not(can_connect(&f, wrong));
    cr_assert_eq(f.err.status, TEC_DENIED, "%s", f.err.text);
    cr_assert(kit_logged(&f, "refused: the other side closed the connection before the handshake was done"));
    stop(&f);
}

Test(doors, are_shut_for_a_revoked_key_without_a_restart)
{
    fixture f = kit_start(PLAIN);
    rpc_key_row row = {.roles = RPC_ROLE_SUBMIT, .classes = "*"};
    const char *mine = key_file(&f, "mine.keys");
    char command[1000];

    cr_assert(rpc_keys_add(f.keys, &row, &f.err));
    snprintf(command, sizeof command, "grep %s %s > %s && chmod 600 %s", rpc_show_id(row.key.id).text, f.keys,
             mine, mine);
    cr_assert_eq(system(command), 0);
    cr_assert(can_connect(&f, mine), "%s", f.err.text);
    cr_assert(rpc_keys_revoke(f.keys, rpc_show_id(row.key.id).text, &f.err));
    cr_assert_not(can_connect(&f, mine));
    cr_assert_eq(f.err.status, TEC_DENIED);
    cr_assert(kit_logged(&f, "it is revoked"));
    stop(&f);
}

Test(doors, of_sessions_are_shut_for_a_key_of_another_role)
{
    fixture f = kit_start(PLAIN);
    rpc_key_row row = {.roles = RPC_ROLE_SERVE, .classes = "*"};
    tec_rpc_options o = {.key_file = f.keys, .seconds = 20};

    cr_assert(rpc_keys_add(f.keys, &row, &f.err));
    rpc_id_text id = rpc_show_id(row.key.id);
    o.key = id.text;
    tec_rpc *c = tec_rpc_connect(f.address, &o, &f.err);
    cr_assert(c, "%s", f.err.text);
    cr_assert_null(tec_rpc_open(c, NULL, &f.err));
    cr_assert_eq(f.err.status, TEC_DENIED, "%s", f.err.text);
    cr_assert(kit_logged(&f, "lacks the role 'submit'"));
    tec_rpc_disconnect(c);
    stop(&f);
}

Test(doors, are_shut_for_a_key_of_another_class_of_devices)
{
    fixture f = kit_start((const char *[]){"--device-class", "board", NULL});
    rpc_key_row row = {.roles = RPC_ROLE_SUBMIT, .classes = "gpu"};
    tec_rpc_options o = {.key_file = f.keys, .seconds = 20};

    cr_assert(rpc_keys_add(f.keys, &row, &f.err));
    rpc_id_text id = rpc_show_id(row.key.id);
    o.key = id.text;
    cr_assert_null(tec_rpc_connect(f.address, &o, &f.err));
    cr_assert_eq(f.err.status, TEC_DENIED);
    cr_assert(kit_logged(&f, "not for this class"));
    stop(&f);
}

/* ---- starting ---- */

Test(doors, beyond_loopback_demand_a_file_of_keys)
{
    fixture f;

    kit_prepare(&f);
    cr_assert_not(kit_launch(&f, "0.0.0.0:0", PLAIN));
    cr_assert(kit_logged(&f, "name the keys that may connect with --key-file"));
    cr_assert_eq(kit_end(&f), 1);
}

/* ---- bytes ---- */

static int dial(const fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(f->address, ':') + 1))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

Test(doors, are_shut_for_a_client_that_speaks_plainly)
{
    fixture f = kit_start(PLAIN);
    int fd = dial(&f);
    char answer[200];

    cr_assert_gt(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 0);
    cr_assert_leq(read(fd, answer, sizeof answer), 0, "a plain client got an answer");
    cr_assert(kit_logged(&f, "refused: the other side does not speak this protocol: its first byte is 0x47"));
    close(fd);
    stop(&f);
}

/* A whole recorded connection is sent again: the server's fresh nonce makes its proof worthless. */
Test(doors, are_shut_for_a_replayed_handshake)
{
    fixture f = kit_start(PLAIN);
    rpc_keys keys;
    rpc_frame frame;
    uint8_t sent[1000], answer[4096];
    size_t n_sent = 0, n, room;

    cr_assert(rpc_keys_read(&keys, f.keys, &f.err));
    rpc_link *l = rpc_link_new(&(rpc_link_options){.key = &keys.rows[0].key, .program = "recorded"}, NULL);
    int fd = dial(&f);
    for (int turn = 0; turn < 100 && !rpc_link_ready(l); turn++) {
        const uint8_t *out = rpc_link_output(l, &n);
        cr_assert(n_sent + n <= sizeof sent);
        memcpy(sent + n_sent, out, n);
        cr_assert_eq(write(fd, out, n), (ssize_t)n);
        n_sent += n;
        rpc_link_sent(l, n);
        uint8_t *to = rpc_link_room(l, &room);
        ssize_t got = read(fd, to, room);
        cr_assert_gt(got, 0);
        rpc_link_received(l, (size_t)got);
        rpc_link_next(l, &frame);
    }
    cr_assert(rpc_link_ready(l));
    close(fd);
    fd = dial(&f);
    cr_assert_eq(write(fd, sent, n_sent), (ssize_t)n_sent);
    size_t got = 0;
    for (ssize_t more; (more = read(fd, answer + got, sizeof answer - got)) > 0;)
        got += (size_t)more;
    cr_assert_leq(got, RPC_ANSWER_BYTES, "the server went on behind a replayed proof");
    cr_assert(kit_logged(&f, "refused: the client does not prove the secret of key "));
    close(fd);
    rpc_link_free(l);
    rpc_keys_free(&keys);
    stop(&f);
}

/* ---- uploads ---- */

static void refuse_upload(const char *name, const char *arch, tec_status status, const char *logged)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    rt_bytes m = kit_module(arch), good = kit_module(KIT_ARCH);

    cr_assert_eq(tec_rpc_upload_bytes(s, name, m.data, m.n, &f.err), 0);
    cr_assert_eq(f.err.status, status, "%s", f.err.text);
    cr_assert(kit_logged(&f, logged), "no '%s' in %s", logged, f.log);
    f.err = (tec_error){0};
    cr_assert_gt(tec_rpc_upload_bytes(s, "good.so", good.data, good.n, &f.err), 0, "%s", f.err.text);
    rt_free(m.data);
    rt_free(good.data);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(doors, are_shut_for_an_upload_whose_name_is_a_path)
{
    static const char logged[] = "session 1: 'upload' failed: expected a name of 1 to 99 characters";

    refuse_upload("../../etc/passwd", KIT_ARCH, TEC_INVALID, logged);
    refuse_upload("..", KIT_ARCH, TEC_INVALID, logged);
    refuse_upload("a\nb", KIT_ARCH, TEC_INVALID, logged);
}

Test(doors, are_shut_for_a_module_of_another_architecture)
{
    refuse_upload("other.so", KIT_OTHER_ARCH, TEC_UNSUPPORTED, "session 1: 'upload' failed: ");
}

Test(doors, are_shut_for_a_module_that_is_larger_than_the_session)
{
    fixture f = kit_start((const char *[]){"--memory", "16", NULL});
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    size_t n = 17 << 20;
    void *bytes = rt_alloc(n, NULL);
    int32_t y[2];

    cr_assert_eq(tec_rpc_upload_bytes(s, "large.so", bytes, n, &f.err), 0);
    cr_assert_eq(f.err.status, TEC_NO_MEMORY, "%s", f.err.text);
    cr_assert(kit_logged(&f, "session 1: 'upload' failed: module 'large.so' has 17825792 bytes; this session "
                             "may use 16777216"));
    rt_free(bytes);
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(doors, are_shut_for_arrays_that_nobody_could_hold)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, negative[] = {-1, 2}, good[] = {2, 2};
    DLDataType t = {kDLInt, 32, 1};

    cr_assert_eq(tec_rpc_array(s, t, 2, huge, NULL), 0);
    cr_assert(kit_logged(&f, "session 1: 'allocate' failed: "));
    kit_forget_log(&f);
    cr_assert_eq(tec_rpc_array(s, t, 2, negative, NULL), 0);
    cr_assert(kit_logged(&f, "session 1: 'allocate' failed: "));
    cr_assert_gt(tec_rpc_array(s, t, 2, good, &f.err), 0, "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* ---- modules that attack ---- */

/* What a module writes in the place of its session's answers reaches the log by its words alone. */
Test(doors, of_the_log_are_shut_for_damaged_failures)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    const char x[] = {'f', RPC_KIND_failure, 0};
    int32_t y[2];

    cr_assert_not(kit_call(&f, s, "lie", x, y));
    cr_assert(kit_logged(&f, "session 1: 'call' failed: the answer cannot be decoded"));
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    stop(&f);
}

Test(doors, of_the_server_s_files_are_shut_for_modules)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    char memory[64];
    int32_t y[2] = {0};

    snprintf(memory, sizeof memory, "/proc/%ld/mem", (long)f.pid);
    cr_assert(kit_call(&f, s, "open_file", f.keys, y) && y[0] == EACCES, "%d %s", y[0], f.err.text);
    cr_assert(kit_call(&f, s, "open_file", memory, y) && y[0] == EACCES, "%d %s", y[0], f.err.text);
    cr_assert(kit_call(&f, s, "open_file", "/etc/passwd", y) && y[0] == EACCES, "%d %s", y[0], f.err.text);
    cr_assert(kit_call(&f, s, "open_file", "/proc/self/statm", y) && y[0] == 0, "%d %s", y[0], f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    stop(&f);
}

static void end_attack(const char *kernel)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    cr_assert_not(kit_call(&f, s, kernel, "x", y));
    cr_assert_eq(f.err.status, TEC_CRASHED, "%s", f.err.text);
    cr_assert(strstr(f.err.text, "a system call that sessions may not make"), "%s", f.err.text);
    cr_assert(kit_logged(&f, "a system call that sessions may not make"));
    tec_rpc_close(s);
    s = kit_open(&f, c);
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(doors, of_the_network_are_shut_for_modules)
{
    end_attack("open_socket");
}

Test(doors, to_other_programs_are_shut_for_modules)
{
    end_attack("start_program");
}

Test(doors, of_the_server_are_shut_for_signals_of_modules)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2] = {0};

    cr_assert(kit_call(&f, s, "kill_parent", "x", y) && y[0] == EPERM, "%d %s", y[0], f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    stop(&f);
}
