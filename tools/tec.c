/* tools/tec.c -- the program `tec`: one command a row. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "targets/llvm/llvm.h"
#include "targets/target.h"
#include "tools/command.h"
#include "tools/context.h"

static const tool_command commands[] = {
    {"compile", tool_compile, "compile an ONNX model or a program into a module"},
    {"tune", tool_tune, "search for fast schedules by measuring"},
    {"run", tool_run, "run a module and measure its latency"},
    {"check", tool_check, "compile and run ONNX test cases, compare with their outputs"},
    {"check-program", tool_check_program, "report errors of a program's syntax and types"},
    {"te", tool_te, "compile, print or measure the kernels of a .te file"},
    {"opt", tool_opt, "run lowering passes on a loop program in text form"},
    {"inspect", tool_inspect, "print the contents of a module, a model or a tensor"},
    {"records", tool_records, "list, export, import, merge, compact or check tuning records"},
    {"devices", tool_devices, "list the devices of this machine or of a pool"},
    {"keys", tool_keys, "make, list and revoke keys of device servers"},
    {"build-worker", tool_build_worker, NULL}, /* what `tec tune` starts for itself */
    {"fuzz", tool_fuzz, "test the compiler with random kernels, schedules and programs"},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: tec COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].what)
            fprintf(to, "  %-13s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\n'tec help COMMAND' tells more; 'tec --version' prints the versions of tec and LLVM, and "
                "this machine's CPU.\n");
}

static void print_version(void)
{
    tec_context *cx = tool_context();
    const target *t = target_native(cx);

    printf("tec %s\nLLVM %s\n", tec_version(), llvm_version(cx));
    if (t)
        printf("%s\n", target_text(cx, t));
    tec_context_free(cx);
}

/* Whole names only. */
static const tool_command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

/* `tec help`, and `tec help COMMAND`, which is `tec COMMAND --help`. */
static int help(const char *about)
{
    const tool_command *c = about ? find_command(about) : NULL;

    if (c)
        return c->run(2, (char *[]){(char *)c->name, (char *)"--help", NULL});
    if (about)
        fprintf(stderr, "tec: there is no command '%s'\n", about);
    print_help(about ? stderr : stdout);
    return about ? TOOL_USAGE : TOOL_OK;
}

/* The command that the first argument names; without one the help, which is then an error. */
static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const tool_command *c = name ? find_command(name) : NULL;

    if (c)
        return c->run(argc - 1, argv + 1);
    if (name && strcmp(name, "--version") == 0) {
        print_version();
        return TOOL_OK;
    }
    if (name && (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0))
        return help(argc > 2 ? argv[2] : NULL);
    if (name)
        fprintf(stderr, "tec: there is no command '%s'\n", name);
    print_help(stderr);
    return TOOL_USAGE;
}

/* What was printed counts as done only when all of it has arrived: a full disk shows at the last flush. */
static int close_output(int status)
{
    bool failed = ferror(stdout) != 0;

    errno = 0;
    if (fclose(stdout) != 0)
        failed = true;
    if (!failed)
        return status;
    fprintf(stderr, "tec: standard output could not be written%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return status == TOOL_OK ? TOOL_FAILED : status;
}

int main(int argc, char **argv)
{
    return close_output(run(argc, argv));
}
