/* tools/tec.c -- the program `tec`: one command a row. */
#include <stdio.h>
#include <string.h>

#include "tec/base.h"
#include "tools/command.h"

static const tool_command commands[] = {
    {"compile", tool_compile, "an ONNX model to a deployable module"},
    {"tune", tool_tune, "look for fast schedules by measuring"},
    {"run", tool_run, "run a module"},
    {"check", tool_check, "compile and run models, compare with reference outputs"},
    {"te", tool_te, "build, print or time kernels from a .te file"},
    {"opt", tool_opt, "run lowering passes on a printed loop AST"},
    {"inspect", tool_inspect, "look inside a module, a model or a tensor"},
    {"records", tool_records, "look into a record store, exchange records, take care of it"},
    {"devices", tool_devices, "list the devices of this machine, and the drivers that are missing"},
    {"build-worker", tool_build_worker, NULL}, /* what `tec tune` starts for itself */
    {"fuzz", tool_fuzz, "test the compiler with random kernels and schedules"},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: tec COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].what)
            fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\n'tec COMMAND --help' tells more; 'tec --version' prints the version.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (name && strcmp(name, "--version") == 0) {
        printf("tec %s\n", tec_version());
        return TOOL_OK;
    }
    if (name && (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)) {
        print_help(stdout);
        return TOOL_OK;
    }
    for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (name)
        fprintf(stderr, "tec: there is no command '%s'\n", name);
    print_help(stderr);
    return TOOL_USAGE;
}
