/* lease.c -- a device of a pool, leased from its tracker, adds two vectors.
 *
 *     rpc_tracker --listen 127.0.0.1:9190 &
 *     rpc_server --tracker 127.0.0.1:9190 --listen 127.0.0.1:9191 --device-class desk &
 *     tec te add.te -o add.so               # def add(A: f32[8], B: f32[8]) { C[i] = A[i] + B[i] return C }
 *     lease 127.0.0.1:9190 desk ~/.local/state/tec/loopback.keys add.so
 *
 * The tracker makes this key file when it starts without one and listens on this machine alone.
 * It links libtec_rpc alone, which has no compiler in it. */
#include <stdio.h>
#include <tec/rpc.h>

enum { N = 8 };

static DLTensor vector(float *data, int64_t *n)
{
    return (DLTensor){data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, n, NULL, 0};
}

/* The sum on the leased device; false: err says why not. */
static bool add(tec_rpc_session *s, const char *module, float *c, tec_error *err)
{
    int64_t n = N, array[3];
    float a[N], b[N];
    DLTensor host[3] = {vector(a, &n), vector(b, &n), vector(c, &n)};

    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 100;
    }
    tec_rpc_call_options call = {.module = tec_rpc_upload(s, module, err), .arrays = array, .n = 3};
    for (int i = 0; i < 3; i++)
        array[i] = tec_rpc_array(s, host[i].dtype, 1, &n, err);
    return tec_rpc_write(s, array[0], &host[0], err) && tec_rpc_write(s, array[1], &host[1], err) &&
           tec_rpc_call(s, &call, NULL, err) && tec_rpc_read(s, array[2], &host[2], err);
}

int main(int argc, char **argv)
{
    tec_error err = {0};
    float c[N] = {0};

    if (argc != 5)
        return fprintf(stderr, "usage: lease HOST:PORT CLASS KEYS MODULE\n"), 2;
    tec_rpc *tracker =
        tec_rpc_connect(argv[1], &(tec_rpc_options){.key_file = argv[3], .program = "lease"}, &err);
    tec_rpc_lease *l = tec_rpc_request(tracker, &(tec_rpc_lease_options){.device_class = argv[2]}, &err);
    tec_rpc *server =
        tec_rpc_wait(l, 60, &err) == TEC_RPC_GRANTED ? tec_rpc_connect_leased(l, NULL, &err) : NULL;
    tec_rpc_session *s = tec_rpc_open(server, NULL, &err);
    bool good = add(s, argv[4], c, &err);

    if (good)
        printf("on %s: 7 + 100 = %g\n", argv[2], (double)c[7]);
    else
        fprintf(stderr, "lease: %s\n", err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(server);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(tracker);
    return !good;
}
