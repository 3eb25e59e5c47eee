/* tests/cuda/emulator/nvrtc.c -- a stand-in for NVRTC, which compiles the text of kernels for this CPU, with
 * clang-19. What it gives for a cubin is a shared object, which driver.c loads.
 *
 * Behind the text stand two functions for each kernel: NAME__call calls the kernel with arguments that lie at
 * addresses, NAME__count says how many arguments it has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *text, *log, *code;
    size_t code_size;
    char arch[20]; /* "sm_80" */
} program;

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, COMPILATION = 6 };

const char *nvrtcGetErrorString(int status);
int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(void **out, const char *text, const char *name, int n, const char *const *headers,
                       const char *const *names);
int nvrtcDestroyProgram(void **p);
/* $TEC_EMULATED_EDIT: a command of sed that changes the kernels, not the prelude: a fault that the emulation
 * should find. */
static int edit(const char *path)
{
    const char *change = getenv("TEC_EMULATED_EDIT");
    char command[900];

    if (!change)
        return 1;
    snprintf(command, sizeof command, "sed -i -E '/^extern \"C\" __global__/,$ { %s }' '%s'", change, path);
    return system(command) == 0;
}

int nvrtcCompileProgram(void *of, int n, const char *const *options);
int nvrtcGetProgramLogSize(void *of, size_t *size);
int nvrtcGetProgramLog(void *of, char *log);
int nvrtcGetCUBINSize(void *of, size_t *size);
int nvrtcGetCUBIN(void *of, char *code);
int nvrtcGetPTXSize(void *of, size_t *size);
int nvrtcGetPTX(void *of, char *text);

const char *nvrtcGetErrorString(int status)
{
    return status == COMPILATION ? "NVRTC_ERROR_COMPILATION" : status ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
}

int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 0;
    return SUCCESS;
}

int nvrtcCreateProgram(void **out, const char *text, const char *name, int n, const char *const *headers,
                       const char *const *names)
{
    program *p = calloc(1, sizeof *p);

    (void)name, (void)n, (void)headers, (void)names;
    if (!p)
        return OUT_OF_MEMORY;
    p->text = strdup(text);
    *out = p;
    return p->text ? SUCCESS : OUT_OF_MEMORY;
}

int nvrtcDestroyProgram(void **out)
{
    program *p = *out;

    free(p->text);
    free(p->log);
    free(p->code);
    free(p);
    *out = NULL;
    return SUCCESS;
}

/* All of a file, with a NUL behind it; NULL: it cannot be read. */
static char *read_whole(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    long length;

    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (length = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
        (bytes = malloc((size_t)length + 1)) != NULL) {
        *size = fread(bytes, 1, (size_t)length, f);
        bytes[*size] = '\0';
    }
    fclose(f);
    return bytes;
}

/* Writes the text, and the two functions of each kernel: a kernel is `void NAME(` on the line behind
 * `extern "C" __global__ ...`. */
static int write_source(const program *p, const char *path)
{
    FILE *f = fopen(path, "w");

    if (!f)
        return 0;
    fputs(p->text, f);
    for (const char *at = p->text; (at = strstr(at, "extern \"C\" __global__")) != NULL;) {
        const char *name = strstr(at, "\nvoid ") + strlen("\nvoid ");
        int n = (int)strcspn(name, "(");

        fprintf(f, "extern \"C\" void %.*s__call(void **at) { tec_call(%.*s, at); }\n", n, name, n, name);
        fprintf(f, "extern \"C\" int %.*s__count() { return tec_count(%.*s); }\n", n, name, n, name);
        at = name;
    }
    return fclose(f) == 0;
}

int nvrtcCompileProgram(void *of, int n, const char *const *options)
{
    program *p = of;
    char folder[] = "/tmp/tec-emulator-XXXXXX", source[64], object[64], log[64], command[900];
    size_t size;
    int status;

    for (int i = 0; i < n; i++)
        sscanf(options[i], "--gpu-architecture=%19s", p->arch);
    if (!mkdtemp(folder))
        return OUT_OF_MEMORY;
    snprintf(source, sizeof source, "%s/k.cc", folder);
    snprintf(object, sizeof object, "%s/k.so", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(command, sizeof command,
             "clang-19 -x c++ -std=c++17 -O1 -w -fPIC -shared -ffp-contract=off -fno-math-errno "
             "-fno-exceptions -fno-rtti %s -include '%s' '%s' -o '%s' -lm 2>'%s'",
             getenv("TEC_EMULATED_COUNTS") ? "-fsanitize-coverage=func,trace-loads,trace-stores" : "",
             TEC_EMULATED_DEVICE, source, object, log);
    status = write_source(p, source) && edit(source) && system(command) == 0;
    p->log = read_whole(log, &size);
    if (status)
        p->code = read_whole(object, &p->code_size);
    unlink(source);
    unlink(object);
    unlink(log);
    rmdir(folder);
    return status && p->code ? SUCCESS : COMPILATION;
}

int nvrtcGetProgramLogSize(void *of, size_t *size)
{
    const program *p = of;

    *size = p->log ? strlen(p->log) + 1 : 1;
    return SUCCESS;
}

int nvrtcGetProgramLog(void *of, char *log)
{
    const program *p = of;

    strcpy(log, p->log ? p->log : "");
    return SUCCESS;
}

int nvrtcGetCUBINSize(void *of, size_t *size)
{
    *size = ((const program *)of)->code_size;
    return SUCCESS;
}

int nvrtcGetCUBIN(void *of, char *code)
{
    const program *p = of;

    memcpy(code, p->code, p->code_size);
    return SUCCESS;
}

/* PTX of the emulation: what PTX begins with, and the code in hexadecimal digits. */
static const char ptx_head[] = ".version 8.0\n.target %s\n";

int nvrtcGetPTXSize(void *of, size_t *size)
{
    const program *p = of;

    *size = (size_t)snprintf(NULL, 0, ptx_head, p->arch) + 2 * p->code_size + 1;
    return SUCCESS;
}

int nvrtcGetPTX(void *of, char *text)
{
    const program *p = of;

    text += sprintf(text, ptx_head, p->arch);
    for (size_t i = 0; i < p->code_size; i++)
        text += sprintf(text, "%02x", (unsigned)(unsigned char)p->code[i]);
    return SUCCESS;
}
