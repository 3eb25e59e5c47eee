/* targets/cuda/nvrtc.c -- CUDA C to device code by NVRTC, NVIDIA's compiler as a library.
 *
 * The library is found with dlopen when a text is compiled, so that building tec and compiling for
 * other targets needs no CUDA. Declared here after its published interface.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets/cuda/cuda.h"

/* NAME without its nvrtc, parameters; each gives an nvrtcResult, 0: success. */
#define NVRTC_FUNCTIONS(X)                                                                                   \
    X(Version, (int *, int *))                                                                               \
    X(CreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *))   \
    X(DestroyProgram, (void **))                                                                             \
    X(CompileProgram, (void *, int, const char *const *))                                                    \
    X(GetProgramLogSize, (void *, size_t *))                                                                 \
    X(GetProgramLog, (void *, char *))                                                                       \
    X(GetCUBINSize, (void *, size_t *))                                                                      \
    X(GetCUBIN, (void *, char *))                                                                            \
    X(GetPTXSize, (void *, size_t *))                                                                        \
    X(GetPTX, (void *, char *))

enum { NVRTC_BAD_OPTION = 5 }; /* NVRTC_ERROR_INVALID_OPTION: an architecture that this release lacks */

typedef struct {
#define X(name, params) int(*name) params;
    NVRTC_FUNCTIONS(X)
#undef X
    const char *(*error_text)(int);
} nvrtc;

/* ---- finding it ---- */

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

/* Opens PREFIXNAME for each of the names; NULL: none is there. */
static void *open_in(const char *prefix)
{
    void *found = NULL;

    for (int i = 0; i < BASE_COUNT(names) && !found; i++) {
        char path[600];

        if (snprintf(path, sizeof path, "%s%s", prefix, names[i]) < (int)sizeof path)
            found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

/* In the folder of the user, or else where the loader looks and where the toolkit installs itself. */
static void *open_library(tec_context *cx)
{
    static const char *const below[] = {"", "lib64/", "lib/"};
    const char *folder = base_cuda(cx);
    void *found = folder ? NULL : open_in("");

    for (int i = 0; i < BASE_COUNT(below) && !found; i++)
        found = open_in(base_format(cx, "%s/%s", folder ? folder : "/usr/local/cuda", below[i]));
    if (!found)
        base_fail(cx, TEC_UNSUPPORTED, (base_loc){0},
                  "the library NVRTC, which compiles for CUDA, was not found: looked for '%s' in %s%s",
                  names[1], folder ? folder : "the places of the system's loader and in /usr/local/cuda",
                  folder ? "" : "; TEC_CUDA=FOLDER says where it is");
    return found;
}

static bool find_function(tec_context *cx, void *from, const char *name, void *into)
{
    void *found = dlsym(from, name);

    if (!found)
        base_fail(cx, TEC_UNSUPPORTED, (base_loc){0},
                  "the NVRTC library has no function '%s': expected NVRTC of CUDA 11.2 or later", name);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that both look alike. */
    memcpy(into, &found, sizeof found);
    return found != NULL;
}

/* The library stays loaded for the rest of the process: loading its 100 MB again for each compilation would
 * take longer than compiling. */
static bool find_nvrtc(tec_context *cx, nvrtc *out)
{
    void *found = open_library(cx);

    if (!found)
        return false;
#define X(name, params)                                                                                      \
    if (!find_function(cx, found, "nvrtc" #name, &out->name))                                                \
        return false;
    NVRTC_FUNCTIONS(X)
#undef X
    return find_function(cx, found, "nvrtcGetErrorString", &out->error_text);
}

/* ---- compiling ---- */

typedef struct {
    tec_context *cx;
    const nvrtc *rtc;
    void *program;
    const char *arch; /* "sm_80" */
    bool fast;
    cuda_code made;
} compilation;

/* The first line of the log that names an error, else all of it. */
static const char *log_of(compilation *self)
{
    size_t size = 0;
    char *log, *line, *end;

    if (self->rtc->GetProgramLogSize(self->program, &size) != 0 || size < 2)
        return "";
    log = base_alloc(self->cx, size + 1);
    if (self->rtc->GetProgramLog(self->program, log) != 0)
        return "";
    line = strstr(log, "error");
    if (!line)
        return log;
    while (line > log && line[-1] != '\n')
        line--;
    end = strchr(line, '\n');
    if (end)
        *end = '\0';
    return line;
}

/* The log of the assembler as one line for each kernel:
 *
 *     ptxas info    : Compiling entry function 'k_0' for 'sm_80'
 *     ...           8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads         =>
 *     ptxas info    : Used 80 registers, used 1 barriers, 8192 bytes smem, ...
 *
 *     k_0: 80 registers, 8 bytes spilled, 8192 bytes of shared memory
 */
static const char *usage_of(compilation *self)
{
    base_text out = {0};
    size_t size = 0;

    if (self->rtc->GetProgramLogSize(self->program, &size) != 0)
        return "";
    char *log = base_alloc(self->cx, size + 1), name[200] = "";
    long stores = 0, loads = 0, registers, shared;
    if (self->rtc->GetProgramLog(self->program, log) != 0)
        return "";
    for (char *line = log, *next; line && *line; line = next) {
        const char *entry, *spill, *used, *memory;

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if ((entry = strstr(line, "entry function '")) != NULL)
            sscanf(entry, "entry function '%199[^']'", name);
        if ((spill = strstr(line, "bytes stack frame, ")) != NULL)
            sscanf(spill, "bytes stack frame, %ld bytes spill stores, %ld bytes spill loads", &stores,
                   &loads);
        if ((used = strstr(line, "Used ")) == NULL || sscanf(used, "Used %ld registers", &registers) != 1)
            continue;
        memory = strstr(used, " bytes smem");
        while (memory && memory > used && memory[-1] != ' ')
            memory--;
        shared = memory ? atol(memory) : 0;
        base_addf(self->cx, &out, "%s: %ld registers, %ld bytes spilled, %ld bytes of shared memory\n", name,
                  registers, stores + loads, shared);
    }
    return base_text_str(self->cx, &out);
}

static bool refuse(compilation *self, int status)
{
    int major = 0, minor = 0;

    self->rtc->Version(&major, &minor);
    if (status == NVRTC_BAD_OPTION)
        base_fail(self->cx, TEC_UNSUPPORTED, (base_loc){0}, "NVRTC %d.%d does not compile for '%s'", major,
                  minor, self->arch);
    else
        base_fail(self->cx, TEC_INTERNAL, (base_loc){0}, "NVRTC %d.%d refused the kernels for '%s': %s: %s",
                  major, minor, self->arch, self->rtc->error_text(status), log_of(self));
    return false;
}

typedef int ask_size(void *program, size_t *size);
typedef int ask_bytes(void *program, char *bytes);

/* One form of what was compiled, in the context's memory. Gives NVRTC's status. */
static int take(const compilation *self, ask_size *size_of, ask_bytes *bytes_of, const void **bytes,
                size_t *size)
{
    int status = size_of(self->program, size);

    if (status != 0)
        return status;
    char *made = base_alloc(self->cx, *size + 1);
    *bytes = made;
    return bytes_of(self->program, made);
}

/* Operations keep the meaning that the program gives them: no product and sum become one operation unless it
 * says so, division and root are rounded correctly, denormals are kept. Only precision `fast` leaves all this
 * to the compiler, and functions to the units that approximate them. */
static bool compile(compilation *self)
{
    const char *const exact[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"};
    const char *const fast[] = {"--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--use_fast_math"};
    const char *const *policy = self->fast ? fast : exact;
    const char *const options[] = {base_format(self->cx, "--gpu-architecture=%s", self->arch),
                                   "--std=c++17",
                                   policy[0],
                                   policy[1],
                                   policy[2],
                                   policy[3],
                                   "-w",
                                   "--ptxas-options=-v"};
    int status = self->rtc->CompileProgram(self->program, BASE_COUNT(options), options);

    if (status == 0)
        status = take(self, self->rtc->GetCUBINSize, self->rtc->GetCUBIN, &self->made.cubin,
                      &self->made.cubin_size);
    if (status == 0)
        status = take(self, self->rtc->GetPTXSize, self->rtc->GetPTX, &self->made.ptx, &self->made.ptx_size);
    if (status != 0)
        return refuse(self, status);
    self->made.usage = usage_of(self);
    return true;
}

/* Gives the device code for the architecture of `machine` in the context's memory. NVRTC is loaded by the
 * first call; if the machine has none, each call fails with the same message. */
bool cuda_compile(tec_context *cx, const char *text, const target *machine, cuda_code *out)
{
    nvrtc functions;
    compilation c = {
        .cx = cx, .rtc = &functions, .arch = machine->cpu, .fast = machine->precision == TARGET_FAST};
    int status;
    bool ok;

    if (!find_nvrtc(cx, &functions))
        return false;
    status = c.rtc->CreateProgram(&c.program, text, "tec.cu", 0, NULL, NULL);
    if (status != 0) {
        base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "NVRTC cannot take the kernels: %s",
                  c.rtc->error_text(status));
        return false;
    }
    ok = compile(&c);
    c.rtc->DestroyProgram(&c.program);
    *out = c.made;
    return ok;
}
