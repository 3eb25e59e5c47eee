/* tools/tec.c -- the program `tec`: one command a row. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "targets/llvm/llvm.h"
#include "targets/target.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/limits.h"

static const tool_command commands[] = {
    {"compile", tool_compile, "an ONNX model to a deployable module"},
    {"tune", tool_tune, "look for fast schedules by measuring"},
    {"run", tool_run, "run a module"},
    {"compare", tool_compare, "run two modules in turns: which one is faster"},
    {"check", tool_check, "compile and run models, compare with reference outputs"},
    {"check-program", tool_check_program, "read a program and report errors of its types"},
    {"fmt", tool_fmt, "print or rewrite programs in their canonical layout"},
    {"te", tool_te, "build, print or time kernels from a .te file"},
    {"opt", tool_opt, "run lowering passes on a printed loop AST"},
    {"inspect", tool_inspect, "look inside a module, a model or a tensor"},
    {"records", tool_records, "look into a record store, exchange records, take care of it"},
    {"devices", tool_devices, "list the devices of this machine, and the drivers that are missing"},
    {"keys", tool_keys, "make, list and revoke the keys of servers of devices"},
    {"build-worker", tool_build_worker, NULL}, /* what `tec tune` starts for itself */
    {"fuzz", tool_fuzz, "test the compiler with random kernels, schedules and programs"},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: tec COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].what)
            fprintf(to, "  %-13s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\n'tec help COMMAND' tells more, 'tec help limits' what is refused for its size; "
                "'tec --version' prints\nthe versions of tec and LLVM, and this machine's CPU.\n");
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

/* `tec help`, `tec help limits`, and `tec help COMMAND`, which is `tec COMMAND --help`. */
static int help(const char *about)
{
    const tool_command *command = about ? find_command(about) : NULL;

    if (about && strcmp(about, "limits") == 0) {
        tool_print_limits();
        return TOOL_OK;
    }
    if (command)
        return command->run(2, (char *[]){(char *)command->name, (char *)"--help", NULL});
    if (about)
        fprintf(stderr, "tec: there is no command '%s'\n", about);
    print_help(about ? stderr : stdout);
    return about ? TOOL_USAGE : TOOL_OK;
}

/* The command that the first argument names; without one the help, which is then an error. */
static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const tool_command *command = name ? find_command(name) : NULL;

    if (command)
        return command->run(argc - 1, argv + 1);
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
