/* bench/bench_rpc.c -- what the wire costs: the overhead of a call, and the speed of uploads and downloads,
 * on loopback and encrypted.
 *
 *     bench_rpc [ROUNDS [MEGABYTES]]            10 64; at most 100 and 256
 *
 * Starts the rpc_server beside it on a free port of loopback with keys of its own. A round is 200 calls of a
 * kernel that adds 16 numbers, one write of an array and one read of it; rounds follow each other, so that
 * calls and transfers meet the same machine. The overhead of a call is its time at the client less its time
 * on the device. Prints one line for each figure, and what a transferred gigabyte costs each of the three
 * processes in time of a CPU, which other work on the machine disturbs less than the speed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "tec/rpc.h"

enum { MOST_ROUNDS = 100, MOST_MEGABYTES = 256, CALLS = 200 };

typedef struct {
    char folder[64], keys[100], module[100], address[64];
    pid_t server;
    tec_rpc *c;
    tec_rpc_session *s;
    double overhead[MOST_ROUNDS * CALLS], write[MOST_ROUNDS], read[MOST_ROUNDS];
    double write_cpu[3], read_cpu[3]; /* seconds: of the client, the server, the session's process */
    tec_error err;
} bench;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(double *values, int n, double q)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[(int)(q * (n - 1))];
}

static const char *program(const char *name)
{
    static char path[2][4096];
    char *to = path[strcmp(name, "tec") == 0];
    ssize_t n = readlink("/proc/self/exe", to, 4000);

    to[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2 && strrchr(to, '/'); i++) /* bench/bench_rpc */
        *strrchr(to, '/') = '\0';
    snprintf(to + strlen(to), 90, "/%s", name);
    return to;
}

/* The kernel, compiled by the program `tec` beside the server. */
static bool make_module(bench *b)
{
    char command[9000];

    snprintf(b->module, sizeof b->module, "%s/add.so", b->folder);
    snprintf(command, sizeof command,
             "echo 'def add(A: f32[16], B: f32[16]) { C[i] = A[i] + B[i] return C }' > %s/add.te && %s te "
             "%s/add.te -o %s",
             b->folder, program("tec"), b->folder, b->module);
    return system(command) == 0;
}

static bool start_server(bench *b)
{
    int out[2];
    char line[200] = "";

    if (pipe(out) != 0)
        return false;
    b->server = fork();
    if (b->server == 0) {
        dup2(out[1], 1);
        close(out[0]);
        execl(program("rpc_server"), "rpc_server", "--listen", "127.0.0.1:0", "--key-file", b->keys,
              "--folder", b->folder, "--quiet", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    for (size_t n = 0; n + 1 < sizeof line && read(out[0], line + n, 1) == 1 && line[n] != '\n'; n++)
        ;
    return sscanf(line, "rpc_server: listening on %63s", b->address) == 1;
}

static bool connect_all(bench *b)
{
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*"};

    snprintf(b->folder, sizeof b->folder, "/tmp/tec-bench-XXXXXX");
    if (!mkdtemp(b->folder))
        return false;
    snprintf(b->keys, sizeof b->keys, "%s/keys", b->folder);
    if (!rpc_keys_add(b->keys, &row, &b->err) || !make_module(b) || !start_server(b))
        return false;
    b->c = tec_rpc_connect(b->address, &(tec_rpc_options){.key_file = b->keys}, &b->err);
    b->s = b->c ? tec_rpc_open(b->c, NULL, &b->err) : NULL;
    return b->s != NULL;
}

/* Seconds of user and system time of a process so far. */
static double cpu_of(pid_t pid)
{
    char path[64], text[1024] = "";
    long user = 0, system = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')'); /* behind the name: state and eleven numbers */
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* The server's only child. */
static pid_t session_of(pid_t server)
{
    char path[64];
    long child = 0;

    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)server, (long)server);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &child) != 1)
        child = 0;
    if (f)
        fclose(f);
    return (pid_t)child;
}

/* Adds what each process has used since the last call; sum NULL: only begins. */
static void add_cpu(const bench *b, double last[3], double *sum)
{
    const double now[3] = {cpu_of(getpid()), cpu_of(b->server), cpu_of(session_of(b->server))};

    for (int i = 0; i < 3; i++) {
        if (sum)
            sum[i] += now[i] - last[i];
        last[i] = now[i];
    }
}

static void print_cpu(const char *what, const double cpu[3], double gigabytes)
{
    printf("%-14s CPU seconds for a GB: client %.2f, server %.2f, session %.2f\n", what, cpu[0] / gigabytes,
           cpu[1] / gigabytes, cpu[2] / gigabytes);
}

static bool run(bench *b, int rounds, int64_t bytes)
{
    int64_t small = 16, at[3], m = tec_rpc_upload(b->s, b->module, &b->err);
    DLDataType f32 = {kDLFloat, 32, 1}, u8 = {kDLUInt, 8, 1};
    tec_array *host = tec_array_new(u8, 1, &bytes, &b->err);
    int64_t big = tec_rpc_array(b->s, u8, 1, &bytes, &b->err);
    bool good = host && big;

    for (int i = 0; i < 3; i++)
        good = (at[i] = tec_rpc_array(b->s, f32, 1, &small, &b->err)) && good;
    const tec_rpc_call_options call = {.module = m, .arrays = at, .n = 3, .threads = 1};
    for (int r = 0; good && r < rounds; r++) {
        for (int i = 0; good && i < CALLS; i++) {
            double inside = 0, begin = tec_clock();

            good = tec_rpc_call(b->s, &call, &inside, &b->err);
            b->overhead[r * CALLS + i] = tec_clock() - begin - inside;
        }
        double last[3], begin = tec_clock();
        add_cpu(b, last, NULL);
        good = good && tec_rpc_write(b->s, big, tec_array_tensor(host), &b->err);
        double middle = tec_clock();
        add_cpu(b, last, b->write_cpu);
        good = good && tec_rpc_read(b->s, big, tec_array_tensor(host), &b->err);
        b->write[r] = (double)bytes / 1e6 / (middle - begin);
        b->read[r] = (double)bytes / 1e6 / (tec_clock() - middle);
        add_cpu(b, last, b->read_cpu);
    }
    tec_array_free(host);
    return good;
}

static void stop(bench *b)
{
    char command[200];

    tec_rpc_close(b->s);
    tec_rpc_disconnect(b->c);
    if (b->server > 0) {
        kill(b->server, SIGTERM);
        waitpid(b->server, NULL, 0);
    }
    snprintf(command, sizeof command, "rm -rf %s", b->folder);
    if (system(command) != 0)
        fprintf(stderr, "bench_rpc: %s stays\n", b->folder);
}

int main(int argc, char **argv)
{
    static bench b;
    int rounds = argc > 1 ? atoi(argv[1]) : 10, megabytes = argc > 2 ? atoi(argv[2]) : 64;

    if (rounds < 1 || rounds > MOST_ROUNDS || megabytes < 1 || megabytes > MOST_MEGABYTES) {
        fprintf(stderr, "usage: bench_rpc [ROUNDS [MEGABYTES]], at most %d and %d\n", MOST_ROUNDS,
                MOST_MEGABYTES);
        return 2;
    }
    bool good = connect_all(&b) && run(&b, rounds, (int64_t)megabytes << 20);
    if (good) {
        printf("call overhead  median %.3f ms  p90 %.3f ms  (%d calls)\n",
               1e3 * quantile(b.overhead, rounds * CALLS, 0.5),
               1e3 * quantile(b.overhead, rounds * CALLS, 0.9), rounds * CALLS);
        printf("upload         median %.0f MB/s  best %.0f MB/s  (%d of %d MiB)\n",
               quantile(b.write, rounds, 0.5), quantile(b.write, rounds, 1), rounds, megabytes);
        printf("download       median %.0f MB/s  best %.0f MB/s\n", quantile(b.read, rounds, 0.5),
               quantile(b.read, rounds, 1));
        double gigabytes = (double)rounds * ((int64_t)megabytes << 20) / 1e9;
        print_cpu("upload", b.write_cpu, gigabytes);
        print_cpu("download", b.read_cpu, gigabytes);
    } else
        fprintf(stderr, "bench_rpc: %s\n",
                b.err.status != TEC_OK ? b.err.text : "cannot start rpc_server or tec");
    stop(&b);
    return !good;
}
