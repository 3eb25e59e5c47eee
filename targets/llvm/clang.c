/* targets/llvm/clang.c -- a user's C to LLVM's text, by running clang-19.
 *
 * Source, result and messages go through files without a name, so that nothing is left behind whatever
 * happens. The code sees the features of the target and no library: headers of the compiler itself (stdint.h,
 * immintrin.h, arm_neon.h) are there, those of libc are not promised. Equal sources give equal text. Errors
 * carry clang's messages, which name the user's file and line: a #line stands in front of the source.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "targets/llvm/gen.h"

static const char clang[] = "clang-19";

/* "+avx2,-avx512f" as -target-feature +avx2 ... */
static void add_features(tec_context *cx, base_vec *args, const char *features)
{
    while (features && *features) {
        size_t n = strcspn(features, ",");
        const char *const flags[] = {"-Xclang", "-target-feature", "-Xclang"};

        for (int i = 0; i < BASE_COUNT(flags); i++)
            base_push(cx, args, (void *)flags[i]);
        base_push(cx, args, base_strndup(cx, features, n));
        features += n + (features[n] == ',');
    }
}

/* Freestanding C for exactly the target's features. A strict build forbids fusing of multiply-adds. */
static char *const *arguments(tec_context *cx, const target *machine, bool strict)
{
    static const char *const fixed[] = {
        "-x",  "c",  "-std=gnu11", "-O2", "-ffreestanding", "-fPIC", "-fno-math-errno",
        "-g0", "-w", "-fno-ident", "-S",  "-emit-llvm",     "-o",    "-"};
    base_vec args = {0};

    base_push(cx, &args, (void *)clang);
    base_push(cx, &args, base_format(cx, "--target=%s", machine->triple));
    for (int i = 0; i < BASE_COUNT(fixed); i++)
        base_push(cx, &args, (void *)fixed[i]);
    base_push(cx, &args, (void *)(strict ? "-ffp-contract=off" : "-ffp-contract=on"));
    add_features(cx, &args, machine->features);
    base_push(cx, &args, (void *)"-");
    base_push(cx, &args, NULL);
    return (char *const *)args.at;
}

/* The exit status of clang; -1: it did not run, errno says why. */
static int run(tec_context *cx, char *const *args, FILE *const file[3])
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int failed;

    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, fileno(file[i]), i);
    failed = posix_spawnp(&child, clang, &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        errno = failed;
        return -1;
    }
    return llvm_wait(cx, child);
}

static char *read_all(tec_context *cx, FILE *file, size_t *size)
{
    long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = end >= 0 ? base_alloc(cx, (size_t)end + 1) : NULL;

    rewind(file);
    if (!text || fread(text, 1, (size_t)end, file) != (size_t)end)
        return base_fail(cx, TEC_IO, (base_loc){0}, "cannot read the file that %s wrote", clang);
    text[end] = '\0';
    *size = (size_t)end;
    return text;
}

/* Runs clang on file[0] with its output to file[1] and messages to file[2]; a failure shows the user clang's
 * own words. */
static const char *compile(tec_context *cx, const target *machine, bool strict, FILE *const file[3],
                           base_loc loc, size_t *size)
{
    int status = run(cx, arguments(cx, machine, strict), file);
    size_t n;

    if (status == -1)
        return base_fail(cx, TEC_UNSUPPORTED, loc,
                         "importing C needs the program %s, which cannot be run: %s (package %s)", clang,
                         strerror(errno), clang);
    if (status == 0)
        return read_all(cx, file[1], size);
    char *messages = read_all(cx, file[2], &n);
    if (messages && n && messages[n - 1] == '\n')
        messages[n - 1] = '\0';
    return messages ? base_fail(cx, TEC_INVALID, loc, "%s refuses the imported C:\n%s", clang, messages)
                    : NULL;
}

static void close_files(void *files)
{
    FILE **file = files;

    for (int i = 0; i < 3; i++)
        if (file[i])
            fclose(file[i]);
}

/* The text of the LLVM module, `size` bytes, or NULL with an error at `loc`. */
const char *llvm_clang(tec_context *cx, const target *machine, bool strict, const char *source, base_loc loc,
                       size_t *size)
{
    FILE *file[3] = {tmpfile(), tmpfile(), tmpfile()};
    const char *text = NULL;
    base_held files;
    bool good = file[0] && file[1] && file[2];

    base_hold(cx, &files, close_files, file);
    good = good &&
           (!loc.file || fprintf(file[0], "#line %d \"%s\"\n", loc.line > 0 ? loc.line : 1, loc.file) > 0);
    good = good && fputs(source, file[0]) >= 0 && fflush(file[0]) == 0;
    if (good) {
        lseek(fileno(file[0]), 0, SEEK_SET);
        text = compile(cx, machine, strict, file, loc, size);
    } else
        base_fail(cx, TEC_IO, loc, "cannot write temporary files: %s", strerror(errno));
    base_drop(&files);
    return text;
}
