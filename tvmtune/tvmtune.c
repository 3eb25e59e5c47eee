/* tvmtune/tvmtune.c -- the program `tvmtune`: the tuning daemon, and the commands that talk to it. */
#include <stdio.h>
#include <string.h>

#include "tec/base.h"
#include "tvmtune/commands.h"

static const tool_command commands[] = {
    {"serve", tvm_serve, "run the daemon"},
    {"submit", tvm_submit, "give a model or a file of definitions to the daemon"},
    {"list", tvm_list, "list the jobs, or show one"},
    {"watch", tvm_watch, "follow a job to its end"},
    {"fetch", tvm_fetch, "get the module, the report or the input of a job"},
    {"best", tvm_best, "show the fastest schedule of each kernel of a job"},
    {"pause", tvm_pause, "stop a job for now; what it measured stays"},
    {"resume", tvm_resume, "let a paused job go on"},
    {"cancel", tvm_cancel, "end a job as failed"},
    {"user", tvm_user, "add, list and remove users, and show who did what"},
    {"doctor", tvm_doctor, "walk from the folder to the store, and name the first step that fails"},
    {"rm", tvm_rm, "remove a job that does not run; its records stay"},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: tvmtune COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\n'tvmtune COMMAND --help' tells more.\n");
}

/* The command that the first word names, or help. */
static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (name && (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)) {
        print_help(stdout);
        return TOOL_OK;
    }
    if (name && strcmp(name, "--version") == 0) {
        printf("tvmtune %s\n", tec_version());
        return TOOL_OK;
    }
    if (name)
        fprintf(stderr, "tvmtune: there is no command '%s'\n", name);
    print_help(stderr);
    return TOOL_USAGE;
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "tvmtune: standard output could not be written\n");
    return status == TOOL_OK ? TOOL_FAILED : status;
}
