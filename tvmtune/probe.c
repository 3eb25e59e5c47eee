/* tvmtune/probe.c -- see doctor.h. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "targets/target.h"
#include "tec/runtime.h"
#include "tools/key_file.h"
#include "tvmtune/child.h"
#include "tvmtune/probe.h"

/* Seconds for each step. */
static const double PATIENCE = 20;

enum { SIDE = 128, FEW = 16, MEMORY = 1 << 30 };

static bool fail(tvm_probe *self, const tec_error *err)
{
    snprintf(self->why, sizeof self->why, "%s", err->text);
    return false;
}

static bool is_local(const tvm_probe *self)
{
    return !*self->tracker;
}

/* ---- the way to a device ---- */

/* Connects with the keys that the other commands would use. */
bool tvm_probe_tracker(tvm_probe *self)
{
    char keys[4096];
    tec_error err = {0};

    if (is_local(self)) {
        snprintf(self->note, sizeof self->note, "none: the daemon measures on its own machine");
        return true;
    }
    if (!tool_key_file(self->key_file, keys, sizeof keys)) {
        snprintf(self->why, sizeof self->why, "neither --key-file nor $HOME says where the key file is");
        return false;
    }
    self->at_tracker = tec_rpc_connect(
        self->tracker, &(tec_rpc_options){.key_file = keys, .seconds = PATIENCE, .program = "tvmtune doctor"},
        &err);
    snprintf(self->note, sizeof self->note, "%s", self->tracker);
    return self->at_tracker || fail(self, &err);
}

/* Asks with the highest priority, so that a busy class is no reason to fail if a device becomes free soon. */
bool tvm_probe_match(tvm_probe *self)
{
    tec_rpc_grant_info granted;
    tec_error err = {0};
    tec_rpc_queue queue;

    if (is_local(self))
        return true;
    if (!*self->device_class) {
        snprintf(self->why, sizeof self->why, "the tracker has no device: no rpc_server has announced one");
        return false;
    }
    self->lease = tec_rpc_request(
        self->at_tracker,
        &(tec_rpc_lease_options){.device_class = self->device_class, .job = "doctor", .priority = 100}, &err);
    tec_rpc_lease_state state = self->lease ? tec_rpc_wait(self->lease, PATIENCE, &err) : TEC_RPC_FAILED;
    if (state == TEC_RPC_GRANTED && tec_rpc_granted(self->lease, &granted)) {
        snprintf(self->note, sizeof self->note, "%.150s/%.150s of class '%.50s'", granted.server,
                 granted.device, self->device_class);
        return true;
    }
    if (state == TEC_RPC_FAILED)
        return fail(self, &err);
    int n = snprintf(self->why, sizeof self->why, "no device of class '%.200s' was granted within %g s",
                     self->device_class, PATIENCE);
    if (tec_rpc_queue_of(self->lease, &queue))
        snprintf(self->why + n, sizeof self->why - (size_t)n, ": %lld in service, %lld of them leased",
                 (long long)queue.devices, (long long)queue.leased);
    return false;
}

bool tvm_probe_session(tvm_probe *self)
{
    tec_error err = {0};

    if (is_local(self))
        return true;
    self->at_server = tec_rpc_connect_leased(self->lease, &(tec_rpc_options){.seconds = PATIENCE}, &err);
    self->session = self->at_server
                        ? tec_rpc_open(self->at_server, &(tec_rpc_session_options){.label = "doctor"}, &err)
                        : NULL;
    return self->session || fail(self, &err);
}

bool tvm_probe_ping(tvm_probe *self)
{
    tec_error err = {0};

    if (is_local(self))
        return true;
    double start = tec_clock();
    if (!tec_rpc_list(self->at_server, true, &err))
        return fail(self, &err);
    snprintf(self->note, sizeof self->note, "%.2f ms", 1e3 * (tec_clock() - start));
    return true;
}

/* ---- kernels ---- */

static const char *in_folder(const tvm_probe *self, const char *name)
{
    return base_format(self->cx, "%s/%s", self->folder, name);
}

static bool make_folder(tvm_probe *self)
{
    const char *temp = getenv("TMPDIR");
    char *made = base_format(self->cx, "%s/tvmtune-doctor-XXXXXX", temp ? temp : "/tmp");

    if (!self->folder && !mkdtemp(made))
        snprintf(self->why, sizeof self->why, "%s: cannot make the folder: %s", made, strerror(errno));
    else if (!self->folder)
        self->folder = made;
    return self->folder;
}

/* The first line of a file. */
static const char *first_line(tvm_probe *self, const char *name)
{
    tec_context *trial = base_child(self->cx);
    size_t size;
    const char *text = base_read_file(trial, in_folder(self, name), &size);
    const char *copy = text ? base_format(self->cx, "%.*s", (int)strcspn(text, "\n"), text) : "";

    tec_context_free(trial);
    return copy;
}

/* Runs tec to its end; what it prints is in the file `out`. */
static bool run_tec(tvm_probe *self, const char *const *argv)
{
    enum { SLICE_MS = 20 };
    double end = tec_clock() + PATIENCE;
    tvm_child child;
    int status = 0;

    if (!tvm_child_start(&child, argv, in_folder(self, "out"), in_folder(self, "errors"), MEMORY)) {
        snprintf(self->why, sizeof self->why, "%s cannot be started: %s", argv[0], strerror(errno));
        return false;
    }
    while (!tvm_child_ended(&child, &status)) {
        poll(NULL, 0, SLICE_MS);
        if (tec_clock() < end)
            continue;
        tvm_child_kill(&child);
        snprintf(self->why, sizeof self->why, "'tec %s' does not end within %g s", argv[1], PATIENCE);
        return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    const char *said = first_line(self, "errors");
    snprintf(self->why, sizeof self->why, "%s",
             *said ? said : base_format(self->cx, "'tec %s' failed and said nothing", argv[1]));
    return false;
}

/* Compiles the definition for the device; its file. */
static const char *compile(tvm_probe *self, const char *text)
{
    tec_error err = {0};
    const tec_rpc_offer *offer = is_local(self) ? NULL : tec_rpc_list(self->at_server, false, &err);
    const target *machine = offer ? target_of_machine(self->cx, offer->target) : NULL;
    const char *code = machine ? target_text(self->cx, machine) : "native";

    if (!is_local(self) && !machine) {
        snprintf(self->why, sizeof self->why, "%s", offer ? tec_context_error(self->cx) : err.text);
        return NULL;
    }
    if (!make_folder(self))
        return NULL;
    const char *in = in_folder(self, "kernel.te"), *out = in_folder(self, "kernel.tec");
    if (!base_write_file(self->cx, in, text, strlen(text))) {
        snprintf(self->why, sizeof self->why, "%s", tec_context_error(self->cx));
        return NULL;
    }
    const char *argv[] = {self->tec, "te", in, "--target", code, "--threads=1", "-o", out, NULL};
    return run_tec(self, argv) ? out : NULL;
}

/* What `tec run --json` measured. */
static bool time_here(tvm_probe *self, const char *module, double *seconds)
{
    const char *argv[] = {self->tec, "run", module, "--threads=1", "--json", NULL};

    if (!run_tec(self, argv))
        return false;
    size_t size;
    const char *text = base_read_file(self->cx, in_folder(self, "out"), &size);
    cJSON *o = cJSON_Parse(text ? text : "");
    const cJSON *median = cJSON_GetObjectItemCaseSensitive(o, "median_ms");
    *seconds = cJSON_IsNumber(median) ? median->valuedouble / 1e3 : 0;
    cJSON_Delete(o);
    if (*seconds <= 0)
        snprintf(self->why, sizeof self->why, "'tec run' measured nothing");
    return *seconds > 0;
}

/* The kernel's parameters are n arrays of this shape. */
static bool time_there(tvm_probe *self, const char *module, int n, int ndim, double *seconds)
{
    const DLDataType f32 = {kDLFloat, 32, 1};
    const int64_t shape[] = {ndim > 1 ? SIDE : FEW, SIDE};
    int64_t array[3];
    tec_error err = {0};
    tec_timing timing;
    tec_rpc_call_options call = {
        .module = tec_rpc_upload(self->session, module, &err), .arrays = array, .n = n, .threads = 1};

    for (int i = 0; call.module && i < n; i++)
        if (!(array[i] = tec_rpc_array(self->session, f32, ndim, shape, &err)))
            return fail(self, &err);
    if (!call.module || !tec_rpc_time(self->session, &call, NULL, &timing, &err))
        return fail(self, &err);
    *seconds = timing.median_s;
    return true;
}

static bool time_kernel(tvm_probe *self, const char *text, int n, int ndim, double *seconds)
{
    const char *module = compile(self, text);

    return module &&
           (is_local(self) ? time_here(self, module, seconds) : time_there(self, module, n, ndim, seconds));
}

bool tvm_probe_noop(tvm_probe *self)
{
    const char *text = base_format(self->cx, "def noop(A: f32[%d]) {\n  B[i] = A[i]\n  return B\n}\n", FEW);

    if (!time_kernel(self, text, 2, 1, &self->noop))
        return false;
    snprintf(self->note, sizeof self->note, "%.3f us", 1e6 * self->noop);
    return true;
}

/* A product of matrices. A clock that does not tell it from the no-op is of no use. */
bool tvm_probe_calibration(tvm_probe *self)
{
    const char *text = base_format(self->cx,
                                   "def product(A: f32[%d, %d], B: f32[%d, %d]) {\n"
                                   "  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
                                   SIDE, SIDE, SIDE, SIDE);
    double seconds;

    if (!time_kernel(self, text, 3, 2, &seconds))
        return false;
    snprintf(self->note, sizeof self->note, "%.1f us, %.2f GFLOP/s", 1e6 * seconds,
             2.0 * SIDE * SIDE * SIDE / seconds / 1e9);
    if (seconds > self->noop)
        return true;
    snprintf(self->why, sizeof self->why,
             "a product of matrices of %d x %d took %.3g us, and a kernel that copies %d numbers %.3g us",
             SIDE, SIDE, 1e6 * seconds, FEW, 1e6 * self->noop);
    return false;
}

void tvm_probe_close(tvm_probe *self)
{
    static const char *const files[] = {"kernel.te", "kernel.tec", "out", "errors"};

    tec_rpc_close(self->session);
    tec_rpc_disconnect(self->at_server);
    tec_rpc_give_back(self->lease);
    tec_rpc_disconnect(self->at_tracker);
    for (int i = 0; self->folder && i < BASE_COUNT(files); i++)
        unlink(in_folder(self, files[i]));
    if (self->folder)
        rmdir(self->folder);
}
