/* tests/rpc/client/attacks.c -- modules that attack while they are loaded, in sessions of a CPU and of an
 * OpenCL device, whose driver needs more rights; with a server of root's and one of a user without rights.
 * Each beside a module that does the same without the attack. */
#include <errno.h>

#include "tests/rpc/client/kit.h"

enum { NOBODY = 65534 };

/* A module of one idle kernel that obeys an order when it is loaded. */
static rt_bytes attack_module(const char *order)
{
    static uint8_t elf[1 << 20];
    const rt_function_desc idle = {.name = "idle", .symbol = "kernel_idle"};
    rt_module_desc d = {
        .target = "llvm", .arch = KIT_ARCH, .functions = (rt_function_desc *)&idle, .n_functions = 1};
    rt_bytes out = {0};
    tec_error err = {0};
    FILE *f = fopen(TEC_RPC_ATTACK, "re");

    cr_assert(f);
    size_t n = fread(elf, 1, sizeof elf, f);
    fclose(f);
    char *at = memmem(elf, n, "ATTACK-ORDER-IS-HERE", 20);
    cr_assert(at && strlen(order) < 250);
    strcpy(at, order);
    cr_assert(rt_module_bytes(&d, elf, n, &out, &err), "%s", err.text);
    return out;
}

/* Loads such a module in a session of its own, and awaits its word, or what ended it, in the server's log. */
static void attack(fixture *f, const char *device, const char *order, bool survives, const char *logged)
{
    rt_bytes m = attack_module(order);
    tec_rpc *c = kit_connect(f);
    tec_rpc_session *s = tec_rpc_open(c, &(tec_rpc_session_options){.device = device}, &f->err);

    cr_assert(s, "%s", f->err.text);
    tec_error err = {0};
    int64_t loaded = tec_rpc_upload_bytes(s, "attack.so", m.data, m.n, &err);
    cr_assert_eq(loaded > 0, survives, "%s on %s: %s", order, device, err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert(kit_logged(f, logged), "%s on %s is not in %s", order, device, f->log);
    cr_assert_not(kit_has_logged(f, "BREACH"), "%s on %s", order, device);
    rt_free(m.data);
}

/* All attacks in sessions of one device, of a server of this user (0: the test's own). */
static void attack_all(const char *device, uid_t user)
{
    static const char killed[] = "a system call that sessions may not make";
    char order[300], refused[40];
    fixture f;

    kit_prepare(&f);
    f.user = user;
    cr_assert(kit_launch(&f, "127.0.0.1:0", (const char *[]){NULL}), "the server did not start: see %s",
              f.log);
    attack(&f, device, "nothing", true, "attack: none");
    snprintf(refused, sizeof refused, "attack: errno %d", EACCES);
    bool driver =
        strncmp(device, "cpu", 3) != 0; /* it may start a compiler, and its calls fail rather than kill */
    snprintf(order, sizeof order, "file %s", f.keys);
    attack(&f, device, order, true, refused);
    kit_forget_log(&f);
    attack(&f, device, "file /etc/passwd", true, refused);
    kit_forget_log(&f);
    snprintf(refused, sizeof refused, "attack: errno %d", EPERM);
    attack(&f, device, "socket", driver, driver ? refused : killed);
    kit_forget_log(&f);
    if (!driver)
        attack(&f, device, "program", false, killed);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(attacks, fail_in_sessions_of_a_cpu)
{
    attack_all("cpu:0", 0);
}

Test(attacks, fail_in_sessions_of_an_opencl_device)
{
    attack_all("opencl:0", 0);
}

/* Only root can become another user: where the tests are not root's, the two above are of a user without
 * rights. */
Test(attacks, fail_in_sessions_of_a_cpu_without_root)
{
    attack_all("cpu:0", geteuid() ? 0 : NOBODY);
}

Test(attacks, fail_in_sessions_of_an_opencl_device_without_root)
{
    attack_all("opencl:0", geteuid() ? 0 : NOBODY);
}
