/* Every byte of a small module changed, every length cut off, every allocation failed: an error each time,
 * never more. */
#include "tests/runtime/kit.h"

#include "base/base.h"
#include "runtime/cpu.h"
#include "runtime/file.h"
#include "tec/runtime.h"
#include "tests/runtime/files.h"

/* A damaged plan may ask for any amount of memory, which must be an error here as it is elsewhere. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const tec_module_options verified = {.verify_weights = true};

typedef struct {
    folder dir;
    char path[2 * PATH_MAX];
    bytes elf, file;
} fixture;

static fixture set_up(void)
{
    fixture t = {.dir = folder_new()};
    rt_module_desc m = kit_module();
    tec_error err = {0};

    m.arch = rt_cpu_arch();
    t.elf = compile_kernels(&t.dir, "-s -Wl,-z,noseparate-code");
    snprintf(t.path, sizeof t.path, "%s", in_folder(&t.dir, "net.so"));
    cr_assert(rt_module_write(&m, t.elf.data, t.elf.size, t.path, 0, &err), "%s", err.text);
    t.file = read_bytes(t.path);
    return t;
}

static void tear_down(fixture *t)
{
    folder_remove(&t->dir);
    free(t->elf.data);
    free(t->file.data);
}

static void assert_error(const tec_module *m, const tec_error *err, const char *name, const char *how,
                         size_t at)
{
    cr_assert_null(m, "%s %zu was not found", how, at);
    cr_assert(err->status == TEC_INVALID || err->status == TEC_UNSUPPORTED, "%s %zu: %s", how, at, err->text);
    cr_assert(strncmp(err->text, name, strlen(name)) == 0, "%s %zu: %s", how, at, err->text);
}

/* A module of the file's first bytes is refused with an error that names it, and nothing of it stays. The
 * bytes lie in a block of just their size, so that the address sanitizer sees a read past them. */
static void assert_refused(const fixture *t, size_t size, const char *how, size_t at)
{
    int64_t before = rt_alloc_live();
    uint8_t *exact = malloc(size + !size);
    tec_error err = {0};

    memcpy(exact, t->file.data, size);
    assert_error(tec_module_open_bytes(exact, size, &verified, &err), &err, "module in memory", how, at);
    free(exact);
    cr_assert_eq(rt_alloc_live(), before);
}

/* The same of a file on disk, which costs twenty times as much: for some changes only. */
static void assert_file_refused(const fixture *t, size_t size, const char *how, size_t at)
{
    int64_t before = rt_alloc_live();
    tec_error err = {0};

    write_bytes(t->path, t->file.data, size);
    assert_error(tec_module_open(t->path, &verified, &err), &err, t->path, how, at);
    cr_assert_eq(rt_alloc_live(), before);
}

Test(damage, every_changed_byte_is_found)
{
    fixture t = set_up();

    for (size_t at = 0; at < t.file.size; at++) {
        t.file.data[at] ^= (uint8_t)(1 << at % 8);
        assert_refused(&t, t.file.size, "byte", at);
        if (at % 97 == 0)
            assert_file_refused(&t, t.file.size, "byte", at);
        t.file.data[at] ^= (uint8_t)(1 << at % 8);
    }
    tear_down(&t);
}

Test(damage, every_cut_off_file_is_refused)
{
    fixture t = set_up();

    for (size_t size = 0; size < t.file.size; size += size < t.file.size - 300 ? 13 : 1) {
        assert_refused(&t, size, "length", size);
        if (size % 31 == 0)
            assert_file_refused(&t, size, "length", size);
    }
    tear_down(&t);
}

/* Sections whose checksums are right and whose contents are not: what an attacker would send. */
static void try_section(rt_section_kind kind, const uint8_t *data, size_t size, int64_t *accepted)
{
    rt_module_desc m = kit_module();
    rt_arena arena = {0};
    int64_t before = rt_alloc_live();
    uint8_t *exact = malloc(size + !size);

    memcpy(exact, data, size);
    if (rt_module_decode(&m, kind, exact, size, &arena, NULL) && rt_module_check(&m, NULL))
        ++*accepted;
    rt_arena_free(&arena);
    free(exact);
    cr_assert_eq(rt_alloc_live(), before);
}

Test(damage, the_decoder_survives_any_change_of_a_section)
{
    rt_module_desc m = kit_module();
    uint64_t seed = 77;
    int64_t accepted = 0, tried = 0;

    m.arch = rt_cpu_arch();
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
        rt_bytes b = {0};

        cr_assert(rt_module_encode(&m, (rt_section_kind)kind, &b, NULL));
        try_section((rt_section_kind)kind, b.data, b.n, &accepted);
        cr_assert_gt(accepted, 0, "the section itself is accepted");
        for (size_t at = 0; at < b.n; at++) {
            uint8_t before = b.data[at];

            for (int i = 0; i < 3; i++, tried++) {
                b.data[at] = (uint8_t)(i == 0 ? 0xff : i == 1 ? before + 1 : (uint8_t)base_random(&seed));
                try_section((rt_section_kind)kind, b.data, b.n, &accepted);
            }
            b.data[at] = before;
            try_section((rt_section_kind)kind, b.data, at, &accepted);
        }
        for (int i = 0; i < 2000; i++, tried++) {
            uint8_t *changed = malloc(b.n);

            memcpy(changed, b.data, b.n);
            for (int k = 0; k < 4; k++)
                changed[base_random_below(&seed, (int64_t)b.n)] = (uint8_t)base_random(&seed);
            try_section((rt_section_kind)kind, changed, b.n, &accepted);
            free(changed);
        }
        rt_bytes_free(&b);
    }
    cr_assert_lt(accepted, tried, "of %d changes, %d were taken", (int)tried, (int)accepted);
}

/* Makes the checksums right again: of the sections but the weights, of the table, of the footer. */
static void sign(fixture *t)
{
    uint8_t *footer = t->file.data + t->file.size - RT_FOOTER_BYTES;
    rt_footer f;

    cr_assert_eq(rt_footer_read(&f, footer), RT_FOOTER_GOOD);
    for (uint64_t i = 0; i < f.n_sections; i++) {
        uint8_t *row = t->file.data + f.table_offset + i * RT_ROW_BYTES;
        rt_section s = rt_section_read(row);

        if (s.kind != RT_SECTION_WEIGHTS && s.offset <= t->file.size && s.size <= t->file.size - s.offset) {
            s.checksum = rt_checksum(t->file.data + s.offset, s.size);
            rt_section_write(&s, row);
        }
    }
    f.table_checksum = rt_checksum(t->file.data + f.table_offset, f.n_sections * RT_ROW_BYTES);
    rt_footer_write(&f, footer);
}

Test(damage, whole_files_with_right_checksums_and_wrong_contents_never_break_the_reader)
{
    fixture t = set_up();
    uint8_t *good = malloc(t.file.size);
    uint64_t seed = 31337;
    int64_t before = rt_alloc_live();
    int opened = 0, refused = 0;
    size_t metadata = (t.elf.size + RT_PAGE - 1) / RT_PAGE * RT_PAGE;

    memcpy(good, t.file.data, t.file.size);
    for (int i = 0; i < 4000; i++) {
        tec_error err = {0};
        tec_module *m;
        size_t room = t.file.size - RT_FOOTER_BYTES - metadata;

        memcpy(t.file.data, good, t.file.size);
        for (int k = 0; k < 2; k++) {
            /* Every other change falls into the section table. */
            size_t at =
                i % 2 ? t.file.size - RT_FOOTER_BYTES - 1 - (size_t)base_random_below(&seed, 5 * RT_ROW_BYTES)
                      : metadata + (size_t)base_random_below(&seed, (int64_t)room);

            t.file.data[at] = (uint8_t)base_random_below(&seed, i % 3 ? 256 : 8);
        }
        sign(&t);
        m = tec_module_open_bytes(t.file.data, t.file.size, NULL, &err);
        opened += m != NULL;
        refused += m == NULL;
        cr_assert(m || strncmp(err.text, "module in memory: ", 18) == 0, "%s", err.text);
        tec_module_free(m);
        cr_assert_eq(rt_alloc_live(), before);
    }
    cr_assert(opened > 10 && refused > 1000, "%d opened, %d refused", opened, refused);
    free(good);
    tear_down(&t);
}

/* A changed graph that still passes the checks must fail or run within its own memory. */
Test(damage, graphs_that_pass_the_checks_stay_inside_their_memory)
{
    rt_module_desc m = kit_module();
    rt_bytes b = {0};
    uint64_t seed = 4711;
    int ran = 0;

    m.arch = rt_cpu_arch();
    cr_assert(rt_module_encode(&m, RT_SECTION_GRAPHS, &b, NULL));
    for (int i = 0; i < 4000; i++) {
        rt_arena arena = {0};
        rt_module_desc changed = m;
        size_t at = (size_t)base_random_below(&seed, (int64_t)b.n);
        uint8_t before = b.data[at];
        float x[4 * 8];
        int64_t shape[] = {4, 8};
        DLTensor input = tensor_of(x, 2, shape);

        kit_fill(x, 4);
        b.data[at] = (uint8_t)base_random_below(&seed, 20);
        if (rt_module_decode(&changed, RT_SECTION_GRAPHS, b.data, b.n, &arena, NULL) &&
            changed.n_graphs == 1) {
            tec_module *module = rt_module_from_memory(&changed, &kit_code, 0, NULL);
            tec_run_options one = {.threads = 1};
            tec_executor *ex = tec_executor_new(module, NULL, &one, NULL);

            ran += tec_executor_set_input(ex, 0, &input, NULL) && tec_executor_run(ex, NULL);
            tec_executor_free(ex);
            tec_module_free(module);
        }
        b.data[at] = before;
        rt_arena_free(&arena);
    }
    cr_assert_gt(ran, 0);
    rt_bytes_free(&b);
}

/* The whole life of a module: open, run at two shapes, call a function. False at the first failure. */
static bool live(const fixture *t, bool from_memory, tec_error *err)
{
    tec_module *m = from_memory ? tec_module_open_bytes(t->file.data, t->file.size, NULL, err)
                                : tec_module_open(t->path, NULL, err);
    tec_run_options options = {.profile = true, .keep = true};
    tec_executor *ex = tec_executor_new(m, NULL, &options, err);
    tec_function *f = tec_function_new(m, "relu", NULL, err);
    float x[6 * 8];
    int64_t shape[] = {2, 8};
    DLTensor input = tensor_of(x, 2, shape);
    bool ok;

    kit_fill(x, 6);
    ok = tec_executor_set_input(ex, 0, &input, err) && tec_executor_run(ex, err);
    shape[0] = 6;
    ok = ok && tec_executor_set_input(ex, 0, &input, err) && tec_executor_run(ex, err);
    if (ok)
        kit_check(tec_executor_output(ex, 0), 6);
    tec_array *a = tec_array_copy(&input, err), *b = tec_array_copy(&input, err);
    if (ok && a && b && f)
        ok = tec_function_call(f,
                               (DLTensor *[]){(DLTensor *)(uintptr_t)tec_array_tensor(a),
                                              (DLTensor *)(uintptr_t)tec_array_tensor(b)},
                               2, err);
    ok = ok && a && b && f;
    tec_array_free(a);
    tec_array_free(b);
    tec_function_free(f);
    tec_executor_free(ex);
    tec_module_free(m);
    return ok;
}

static void fail_each_allocation(bool from_memory)
{
    fixture t = set_up();
    int64_t before = rt_alloc_live();
    int failures = 0;

    for (int n = 1;; n++) {
        tec_error err = {0};
        bool ok;

        rt_alloc_fail_at(n);
        ok = live(&t, from_memory, &err);
        rt_alloc_fail_at(0);
        cr_assert_eq(rt_alloc_live(), before, "allocation %d: %d leaked", n, (int)(rt_alloc_live() - before));
        if (ok)
            break;
        cr_assert_eq(err.status, TEC_NO_MEMORY, "allocation %d: %s", n, err.text);
        failures++;
    }
    cr_assert_gt(failures, 30);
    tear_down(&t);
}

Test(damage, every_failed_allocation_is_reported_and_leaks_nothing)
{
    fail_each_allocation(false);
}

Test(damage, every_failed_allocation_of_a_module_in_memory_is_reported_and_leaks_nothing)
{
    fail_each_allocation(true);
}

Test(damage, every_failed_allocation_of_a_writer_leaves_no_file)
{
    fixture t = set_up();
    rt_module_desc m = kit_module();
    int64_t before = rt_alloc_live();

    m.arch = rt_cpu_arch();
    for (int n = 1;; n++) {
        const char *path = in_folder(&t.dir, "other.so");
        tec_error err = {0};
        bool ok;

        rt_alloc_fail_at(n);
        ok = rt_module_write(&m, t.elf.data, t.elf.size, path, RT_WEIGHTS_BESIDE, &err);
        rt_alloc_fail_at(0);
        cr_assert_eq(rt_alloc_live(), before);
        if (ok)
            break;
        cr_assert_eq(err.status, TEC_NO_MEMORY, "allocation %d: %s", n, err.text);
        cr_assert_neq(access(path, F_OK), 0);
    }
    tear_down(&t);
}
