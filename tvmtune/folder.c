/* tvmtune/folder.c -- the folder of a running job: the submitted file, the modules, and what its programs
 * print.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tvmtune/slot.h"

enum { MOST_OUTPUT = 64 << 20 };

static const struct {
    const char *doing, *output;
} stages[] = {
    [TVM_LIST] = {"importing", "list.json"},       [TVM_TUNE] = {"tuning", "tune.json"},
    [TVM_BUILD] = {"compiling", "build.json"},     [TVM_PLAIN] = {"compiling without records", "plain.json"},
    [TVM_COMPARE] = {"comparing", "compare.json"},
};

/* ---- files ---- */

static const char *folder(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    return base_format(cx, "%s/%lld", runner->o.work, (long long)id);
}

const char *tvm_file(tec_context *cx, const tvm_runner *runner, int64_t id, const char *file)
{
    return base_format(cx, "%s/%s", folder(cx, runner, id), file);
}

bool tvm_is_definitions(const char *name)
{
    size_t n = strlen(name);

    return n > 3 && strcmp(name + n - 3, ".te") == 0;
}

const char *tvm_input(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry)
{
    return tvm_file(cx, runner, entry->id, tvm_is_definitions(entry->name) ? "input.te" : "input.onnx");
}

void tvm_clear_folder(tec_context *cx, const tvm_runner *runner, int64_t id)
{
    static const char *const files[] = {"input.te",  "input.onnx", "module.tec", "plain.tec",    "list.json",
                                        "tune.json", "build.json", "plain.json", "compare.json", "errors"};

    for (int i = 0; i < BASE_COUNT(files); i++)
        unlink(tvm_file(cx, runner, id, files[i]));
    rmdir(folder(cx, runner, id));
}

/* A daemon that was killed leaves the folders of its jobs behind, also of one that it had just ended and that
 * nobody takes again. */
void tvm_sweep_folders(tec_context *cx, const tvm_runner *runner)
{
    DIR *work = opendir(runner->o.work);
    const struct dirent *entry;
    char *end;

    while (work && (entry = readdir(work))) {
        int64_t id = strtoll(entry->d_name, &end, 10);

        if (id > 0 && *end == '\0')
            tvm_clear_folder(cx, runner, id);
    }
    if (work)
        closedir(work);
}

/* Each try starts from a fresh folder with the input, so that nothing of an earlier try is taken for a
 * result. */
bool tvm_lay_out(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry)
{
    size_t size;
    const void *input = store_queue_read(cx, runner->db, entry->id, "input", &size);

    if (!input)
        return false;
    tvm_clear_folder(cx, runner, entry->id);
    if (mkdir(folder(cx, runner, entry->id), 0700) != 0 && errno != EEXIST)
        return base_fail(cx, TEC_IO, (base_loc){.file = folder(cx, runner, entry->id)},
                         "cannot make the folder: %s", strerror(errno));
    return base_write_file(cx, tvm_input(cx, runner, entry), input, size);
}

/* ---- output of the child ---- */

const char *tvm_doing(tvm_stage stage)
{
    return stages[stage].doing;
}

const char *tvm_output(const tvm_slot *entry)
{
    return stages[entry->stage].output;
}

/* The number behind the last "all_trials": lines are complete or absent, since the child writes each at
 * once. */
static void read_tried(tvm_slot *entry, const char *text)
{
    static const char key[] = "\"all_trials\":";

    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
        entry->tried = entry->earlier + strtoll(at + sizeof key - 1, NULL, 10);
}

/* Whether the child has said something more. */
void tvm_listen_to(tec_context *cx, const tvm_runner *runner, tvm_slot *entry)
{
    const char *path = tvm_file(cx, runner, entry->id, tvm_output(entry));
    struct stat st;
    size_t size;

    if (stat(path, &st) != 0 || st.st_size <= entry->seen || st.st_size > MOST_OUTPUT)
        return;
    const char *text = base_read_file(cx, path, &size);
    entry->seen = st.st_size;
    entry->heard = tvm_seconds(runner);
    if (text && entry->stage == TVM_TUNE)
        read_tried(entry, text);
}

/* The first line that the child said of an error, without the names of our own files' folder. */
const char *tvm_first_error(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, tvm_file(trial, runner, entry->id, "errors"), &size),
               *line = text ? text : "";
    const char *own = base_format(cx, "%s/", folder(cx, runner, entry->id)), *mark = strstr(line, "error");

    while (mark && mark > line && mark[-1] != '\n')
        mark--;
    line = mark ? mark : line;
    const char *at = strstr(line, own);
    int length = (int)strcspn(line, "\n");
    const char *cause = at && at < line + length
                            ? base_format(cx, "%.*s%.*s", (int)(at - line), line,
                                          (int)(line + length - at) - (int)strlen(own), at + strlen(own))
                            : base_format(cx, "%.*s", length, line);
    tec_context_free(trial);
    return cause;
}

/* All that the child has printed; "" where it printed nothing. */
const char *tvm_said(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry)
{
    tec_context *trial = base_child(cx);
    size_t size;
    const char *text = base_read_file(trial, tvm_file(trial, runner, entry->id, tvm_output(entry)), &size);
    const char *copy = base_strdup(cx, text && size <= MOST_OUTPUT ? text : "");

    tec_context_free(trial);
    return copy;
}
