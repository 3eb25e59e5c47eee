/* tests/rpc/client/kit.h -- an rpc_server of its own for each test, keys for it, and a module of the kernels
 * in kernels/.
 *
 *     fixture f = kit_start((const char *[]){"--seconds", "2", NULL});
 *     tec_rpc *c = kit_connect(&f);
 *     ...
 *     kit_stop(&f);
 */
#ifndef TESTS_RPC_CLIENT_KIT_H
#define TESTS_RPC_CLIENT_KIT_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/link.h"
#include "runtime/format.h"
#include "tec/rpc.h"

typedef struct {
    char folder[64], keys[128], log[128], address[64];
    pid_t pid;
    uid_t user; /* that the server is started as; 0: the test's own */
    int out;
    rt_bytes module;
    tec_error err;
} fixture;

static inline bool kit_read_line(int fd, char *line, size_t size)
{
    size_t n = 0;

    while (n + 1 < size && read(fd, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 0;
}

/* Starts rpc_server, which listens there or for NULL nowhere, with more options, up to NULL; false: it ended
 * before it listened. */
static inline bool kit_launch(fixture *f, const char *listen, const char *const *more)
{
    const char *argv[32] = {TEC_BINARY_DIR "/rpc_server", "--folder", f->folder};
    int n = 3, out[2];
    char line[200] = "";

    if (listen) {
        argv[n++] = "--listen";
        argv[n++] = listen;
    }
    while (n < 31 && *more)
        argv[n++] = *more++;
    cr_assert_eq(pipe(out), 0);
    f->pid = fork();
    if (f->pid == 0) {
        int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

        setenv("XDG_STATE_HOME", f->folder, 1);
        dup2(out[1], 1);
        dup2(log, 2);
        close(out[0]);
        close(out[1]);
        if (f->user &&
            (chown(f->folder, f->user, f->user) != 0 || setgid(f->user) != 0 || setuid(f->user) != 0))
            _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no server; setuid takes it back */
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(out[1]);
    f->out = out[0];
    if (!kit_read_line(f->out, line, sizeof line))
        return false;
    cr_assert(!listen || sscanf(line, "rpc_server: listening on %63s", f->address) == 1, "%s", line);
    return true;
}

static inline void kit_prepare(fixture *f)
{
    *f = (fixture){.folder = "/tmp/tec-rpc-XXXXXX"};
    cr_assert(mkdtemp(f->folder));
    cr_assert_eq(chmod(f->folder, 0755), 0); /* a session of another user has its folder in it */
    char folder[sizeof f->folder];           /* the compiler cannot tell the parts of a fixture apart */
    memcpy(folder, f->folder, sizeof folder);
    snprintf(f->keys, sizeof f->keys, "%s/tec/loopback.keys", folder);
    snprintf(f->log, sizeof f->log, "%s/log", folder);
}

static inline fixture kit_start(const char *const *more)
{
    fixture f;

    kit_prepare(&f);
    cr_assert(kit_launch(&f, "127.0.0.1:0", more), "the server did not start: see %s", f.log);
    return f;
}

/* Whether the server's log has a text now. */
static inline bool kit_has_logged(const fixture *f, const char *text)
{
    static char all[1 << 16];
    FILE *log = fopen(f->log, "re");
    size_t n = log ? fread(all, 1, sizeof all - 1, log) : 0;

    if (log)
        fclose(log);
    all[n] = '\0';
    return strstr(all, text) != NULL;
}

/* What the server logs next is at the file's begin. */
static inline void kit_forget_log(const fixture *f)
{
    cr_assert_eq(truncate(f->log, 0), 0);
}

/* Whether it gets one, within half a minute: a client may know of its refusal before the server has written
 * it down, and a busy machine needs its time. */
static inline bool kit_logged(const fixture *f, const char *text)
{
    for (int i = 0; i < 3000; i++) {
        if (kit_has_logged(f, text))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* The exit status of a server that ends by itself; its folder is gone behind this. */
static inline int kit_end(fixture *f)
{
    char command[200];
    int status = 0;

    cr_assert_eq(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;
    close(f->out);
    snprintf(command, sizeof command, "ls -d %s/session-* 2>/dev/null", f->folder);
    cr_assert_neq(system(command), 0, "a session's folder was left");
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    cr_assert_eq(system(command), 0);
    rt_free(f->module.data);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The same of a server that is asked to end. */
static inline int kit_stop(fixture *f)
{
    kill(f->pid, SIGTERM);
    return kit_end(f);
}

static inline tec_rpc *kit_connect(fixture *f)
{
    tec_rpc *c = tec_rpc_connect(f->address, &(tec_rpc_options){.key_file = f->keys, .seconds = 20}, &f->err);

    cr_assert(c, "%s", f->err.text);
    return c;
}

static inline tec_rpc_session *kit_open(fixture *f, tec_rpc *c)
{
    tec_rpc_session *s = tec_rpc_open(c, NULL, &f->err);

    cr_assert(s, "%s", f->err.text);
    return s;
}

/* ---- the module of the kernels ---- */

enum { KIT_MOST_KERNELS = 16 };

/* A module with functions for these kernels; threads of a test may call this at the same time. */
static inline rt_bytes kit_module_of(const char *arch, const char *const *names, int n_names)
{
    char symbols[KIT_MOST_KERNELS][40];
    static const char *const sizes[] = {"n", "m"};
    static const int64_t n[] = {RT_DIM_SYMBOL, 0}, m[] = {RT_DIM_SYMBOL, 1};
    const rt_dim of_x[] = {{n, 2}}, of_y[] = {{m, 2}};
    const rt_param_desc params[] = {
        {.name = "x", .dtype = {kDLUInt, 8, 1}, .rank = 1, .shape = of_x},
        {.name = "y", .dtype = {kDLInt, 32, 1}, .rank = 1, .shape = of_y, .is_output = true}};
    rt_function_desc functions[KIT_MOST_KERNELS];
    rt_module_desc d = {.target = "llvm", .arch = arch, .functions = functions, .n_functions = n_names};
    rt_bytes out = {0};
    tec_error err = {0};

    for (int i = 0; i < n_names; i++) {
        snprintf(symbols[i], sizeof symbols[i], "kernel_%s", names[i]);
        functions[i] = (rt_function_desc){.name = names[i],
                                          .symbol = symbols[i],
                                          .params = params,
                                          .n_params = 2,
                                          .symbols = sizes,
                                          .n_symbols = 2};
    }
    FILE *f = fopen(TEC_RPC_KERNELS, "re");
    cr_assert(f);
    enum { MOST = 1 << 20 };
    uint8_t *elf = malloc(MOST);
    size_t size = elf ? fread(elf, 1, MOST, f) : 0;
    fclose(f);
    cr_assert(rt_module_bytes(&d, elf, size, &out, &err), "%s", err.text);
    free(elf);
    return out;
}

static inline rt_bytes kit_module(const char *arch)
{
    static const char *const names[] = {"sum",         "crash",  "leave",     "hang",        "eat",
                                        "flood",       "murmur", "open_file", "open_socket", "start_program",
                                        "kill_parent", "lie",    "nap",       "linger"};

    return kit_module_of(arch, names, BASE_COUNT(names));
}

#if defined(__x86_64__)
#define KIT_ARCH "x86_64"
#define KIT_OTHER_ARCH "aarch64"
#else
#define KIT_ARCH "aarch64"
#define KIT_OTHER_ARCH "x86_64"
#endif

/* Calls a kernel on x = the bytes of a text and y of two elements. */
static inline bool kit_call(fixture *f, tec_rpc_session *s, const char *function, const char *x, int32_t y[2])
{
    int64_t n = (int64_t)strlen(x) + 1, two = 2;
    DLTensor from = {.data = (void *)(uintptr_t)x,
                     .ndim = 1,
                     .dtype = {kDLUInt, 8, 1},
                     .shape = &n,
                     .device = {kDLCPU, 0}};
    DLTensor to = {.data = y, .ndim = 1, .dtype = {kDLInt, 32, 1}, .shape = &two, .device = {kDLCPU, 0}};

    f->err = (tec_error){0};
    if (!f->module.n)
        f->module = kit_module(KIT_ARCH);
    int64_t m = tec_rpc_upload_bytes(s, "kernels.so", f->module.data, f->module.n, &f->err);
    int64_t a = tec_rpc_array(s, from.dtype, 1, &n, &f->err),
            b = tec_rpc_array(s, to.dtype, 1, &two, &f->err);
    return m && a && b && tec_rpc_write(s, a, &from, &f->err) &&
           tec_rpc_call(
               s,
               &(tec_rpc_call_options){
                   .module = m, .function = function, .arrays = (int64_t[]){a, b}, .n = 2, .threads = 1},
               NULL, &f->err) &&
           tec_rpc_read(s, b, &to, &f->err);
}

#endif
