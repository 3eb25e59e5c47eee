#include "tests/runtime/kit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "runtime/cpu.h"
#include "runtime/file.h"
#include "tec/runtime.h"
#include "tests/runtime/files.h"

typedef struct {
    folder dir;
    bytes elf;
    rt_module_desc desc;
    tec_error err;
} fixture;

static fixture set_up(void)
{
    fixture t = {.dir = folder_new(), .desc = kit_module()};

    t.desc.arch = rt_cpu_arch();
    t.elf = compile_kernels(&t.dir, "");
    return t;
}

static void tear_down(fixture *t)
{
    folder_remove(&t->dir);
    free(t->elf.data);
}

static const char *write_module(fixture *t, const char *name, unsigned flags)
{
    const char *path = in_folder(&t->dir, name);

    cr_assert(rt_module_write(&t->desc, t->elf.data, t->elf.size, path, flags, &t->err), "%s", t->err.text);
    return path;
}

/* Runs the graph of a module that was just opened, and closes the module. */
static void run_module(tec_module *m, tec_error err)
{
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
    float x[6 * 8];
    int64_t shape[] = {6, 8};
    DLTensor input = tensor_of(x, 2, shape);

    kit_fill(x, 6);
    tec_module_free(m);
    cr_assert(tec_executor_set_input(ex, 0, &input, &err) && tec_executor_run(ex, &err), "%s", err.text);
    kit_check(tec_executor_output(ex, 0), 6);
    tec_executor_free(ex);
}

static void run_net(const char *path, const tec_module_options *options)
{
    tec_error err = {0};
    tec_module *m = tec_module_open(path, options, &err);

    run_module(m, err);
}

static tec_error open_error(const char *path, const tec_module_options *options)
{
    tec_error err = {0};
    int64_t before = rt_alloc_live();

    cr_assert_null(tec_module_open(path, options, &err));
    cr_assert_neq(err.status, TEC_OK);
    cr_assert(strstr(err.text, path), "'%s' names no file", err.text);
    cr_assert_eq(rt_alloc_live(), before);
    return err;
}

Test(module, a_file_runs_with_mapped_or_copied_weights)
{
    fixture t = set_up();
    tec_module_options copied = {.copy_weights = true, .verify_weights = true},
                       verified = {.verify_weights = true};
    const char *path = write_module(&t, "net.so", 0);
    int64_t before = rt_alloc_live();

    run_net(path, NULL);
    run_net(path, &verified);
    run_net(path, &copied);
    cr_assert_eq(rt_alloc_live(), before);
    tear_down(&t);
}

Test(module, tells_about_itself)
{
    fixture t = set_up();
    tec_module *m = tec_module_open(write_module(&t, "net.so", 0), NULL, &t.err);

    cr_assert_str_eq(tec_module_target(m), "test");
    cr_assert_eq(tec_module_n_functions(m), 4);
    cr_assert_str_eq(tec_module_function_name(m, 1), "matmul");
    cr_assert_null(tec_module_function_name(m, 4));
    cr_assert_eq(tec_module_n_graphs(m), 1);
    cr_assert_str_eq(tec_module_graph_name(m, 0), "net");
    cr_assert_eq((uintptr_t)rt_module_describe(m)->constants[1].data % RT_WEIGHT_ALIGN, 0);
    tec_module_free(m);
    tear_down(&t);
}

Test(module, the_same_description_gives_the_same_bytes)
{
    fixture t = set_up();
    bytes a = read_bytes(write_module(&t, "a.so", 0)), b = read_bytes(write_module(&t, "b.so", 0));

    cr_assert_eq(a.size, b.size);
    cr_assert(memcmp(a.data, b.data, a.size) == 0);
    free(a.data);
    free(b.data);
    tear_down(&t);
}

Test(module, what_was_decoded_encodes_to_the_same_bytes)
{
    fixture t = set_up();
    tec_module *m = tec_module_open(write_module(&t, "net.so", 0), NULL, &t.err);

    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
        rt_bytes first = {0}, second = {0};

        cr_assert(rt_module_encode(&t.desc, (rt_section_kind)kind, &first, &t.err));
        cr_assert(rt_module_encode(rt_module_describe(m), (rt_section_kind)kind, &second, &t.err));
        cr_assert(first.n == second.n && memcmp(first.data, second.data, first.n) == 0, "section %d", kind);
        rt_bytes_free(&first);
        rt_bytes_free(&second);
    }
    tec_module_free(m);
    tear_down(&t);
}

/* The length word of a .safetensors file and the header. */
static size_t head_size(const bytes *b)
{
    return 8 + (b->data[0] | (size_t)b->data[1] << 8);
}

Test(module, weights_may_lie_beside_it)
{
    fixture t = set_up();
    tec_module_options verified = {.verify_weights = true};
    const char *header = "{\"__metadata__\":{\"format\":\"tec\"}"
                         ",\"bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}"
                         ",\"pad.1\":{\"dtype\":\"U8\",\"shape\":[52],\"data_offsets\":[12,64]}"
                         ",\"w\":{\"dtype\":\"F32\",\"shape\":[8,4],\"data_offsets\":[64,192]}} ";
    bytes b;

    run_net(write_module(&t, "net.so", RT_WEIGHTS_BESIDE), &verified);
    b = read_bytes(in_folder(&t.dir, "net.so.safetensors"));
    cr_assert_eq(head_size(&b) % 4096, 0);
    cr_assert_eq(b.size, head_size(&b) + 192);
    cr_assert(strncmp((const char *)b.data + 8, header, strlen(header)) == 0);
    free(b.data);
    tear_down(&t);
}

/* The error of a module whose weights beside it have byte `at` changed (no byte where that is past the end)
 * and this size. */
static tec_error open_beside(fixture *t, size_t at, size_t cut, const tec_module_options *options)
{
    const char *path = write_module(t, "net.so", RT_WEIGHTS_BESIDE),
               *beside = in_folder(&t->dir, "net.so.safetensors");
    bytes b = read_bytes(beside);
    tec_error err = {0};
    tec_module *m;

    if (at < b.size)
        b.data[at] ^= 1;
    write_bytes(beside, b.data, b.size - cut);
    m = tec_module_open(path, options, &err);
    cr_assert_eq(m == NULL, err.status != TEC_OK);
    tec_module_free(m);
    free(b.data);
    return err;
}

Test(module, refuses_other_weights_beside_it)
{
    fixture t = set_up();
    tec_module_options verified = {.verify_weights = true};
    tec_error err = {0};

    cr_assert_eq(open_beside(&t, SIZE_MAX, 0, &verified).status, TEC_OK);
    cr_assert_eq(open_beside(&t, 4096 + 191, 0, NULL).status, TEC_OK);
    ASSERT_SAYS(open_beside(&t, 4096 + 191, 0, &verified),
                "net.so.safetensors: damaged module: its weights do not match their checksum");
    ASSERT_SAYS(open_beside(&t, SIZE_MAX, 1, NULL), "net.so.safetensors: has 4287 bytes, but ");
    ASSERT_SAYS(open_beside(&t, 20, 0, NULL), "holds other weights than those that");
    unlink(in_folder(&t.dir, "net.so.safetensors"));
    cr_assert_null(tec_module_open(in_folder(&t.dir, "net.so"), NULL, &err));
    ASSERT_SAYS(err, "net.so.safetensors: cannot open it: No such file or directory");
    tear_down(&t);
}

Test(module, damaged_weights_are_found_on_request)
{
    fixture t = set_up();
    tec_module_options verified = {.verify_weights = true};
    const char *path = write_module(&t, "net.so", 0);
    bytes b = read_bytes(path);
    size_t at = b.size;

    /* The table follows the last weight; the weights end with 1.0f, whose last byte is 0x3f. */
    while (memcmp(b.data + at - 128, kit_weights, 128) != 0)
        at--;
    b.data[at - 1] ^= 0x40;
    write_bytes(path, b.data, b.size);
    ASSERT_SAYS(open_error(path, &verified), "its weights do not match their checksum");
    free(b.data);
    tear_down(&t);
}

Test(module, refuses_another_machine_and_names_both)
{
    fixture t = set_up();
    const char *path;
    tec_error err;

    t.desc.arch = "riscv64";
    t.desc.target = "llvm -mtriple=riscv64-linux-gnu";
    path = write_module(&t, "net.so", 0);
    err = open_error(path, NULL);
    ASSERT_SAYS(err, "is code for riscv64 (target 'llvm -mtriple=riscv64-linux-gnu'); this machine is ");
    ASSERT_SAYS(err, rt_cpu_arch());
    cr_assert_eq(err.status, TEC_UNSUPPORTED);
    tear_down(&t);
}

Test(module, refuses_a_cpu_that_lacks_a_feature)
{
    fixture t = set_up();
    const char *lacking = NULL;

    for (int i = 0; rt_cpu_feature(i) && !lacking; i++)
        if (rt_cpu_has(rt_cpu_feature(i)) == RT_CPU_LACKS)
            lacking = rt_cpu_feature(i);
    t.desc.n_features = 1;
    t.desc.features = (const char *const[]){"x87-emulation"};
    ASSERT_SAYS(open_error(write_module(&t, "a.so", 0), NULL),
                "needs CPU feature 'x87-emulation' (target 'test'), which this runtime does not know");
    if (lacking) {
        t.desc.features = &lacking;
        ASSERT_SAYS(open_error(write_module(&t, "b.so", 0), NULL), lacking);
    }
    tear_down(&t);
}

/* Changes a field of the footer and mends its checksum. */
static tec_error open_with_footer(fixture *t, void (*change)(rt_footer *f))
{
    const char *path = write_module(t, "net.so", 0);
    bytes b = read_bytes(path);
    rt_footer f;

    cr_assert_eq(rt_footer_read(&f, b.data + b.size - RT_FOOTER_BYTES), RT_FOOTER_GOOD);
    change(&f);
    rt_footer_write(&f, b.data + b.size - RT_FOOTER_BYTES);
    write_bytes(path, b.data, b.size);
    free(b.data);
    return open_error(path, NULL);
}

static void other_abi(rt_footer *f)
{
    f->abi = 7;
}

static void other_version(rt_footer *f)
{
    f->version = 9;
}

static void many_sections(rt_footer *f)
{
    f->n_sections = UINT64_MAX / 8;
}

static void far_table(rt_footer *f)
{
    f->table_offset = UINT64_MAX - 8;
}

static void large_elf(rt_footer *f)
{
    f->elf_size = f->file_size;
}

Test(module, refuses_another_abi_or_format_version)
{
    fixture t = set_up();
    tec_error err = open_with_footer(&t, other_abi);

    ASSERT_SAYS(err, "the module has kernels of ABI version 7, but this runtime calls version 1");
    cr_assert_eq(err.status, TEC_UNSUPPORTED);
    ASSERT_SAYS(open_with_footer(&t, other_version),
                "the module has format version 9, but this runtime reads version 5");
    tear_down(&t);
}

Test(module, refuses_a_footer_that_reaches_beyond_the_file)
{
    fixture t = set_up();

    ASSERT_SAYS(open_with_footer(&t, many_sections), "damaged module: has ");
    ASSERT_SAYS(open_with_footer(&t, far_table), "its section table does not lie before its footer");
    ASSERT_SAYS(open_with_footer(&t, large_elf), "its section table does not lie before its footer");
    tear_down(&t);
}

static void no_sections(rt_footer *f)
{
    f->table_offset += f->n_sections * RT_ROW_BYTES;
    f->n_sections = 0;
}

static void shorter_file(rt_footer *f)
{
    f->file_size -= 1;
}

Test(module, refuses_a_footer_that_does_not_fit_its_file)
{
    fixture t = set_up();

    ASSERT_SAYS(open_with_footer(&t, no_sections), "damaged module: has no sections");
    ASSERT_SAYS(open_with_footer(&t, shorter_file), "damaged module: says that it has ");
    tear_down(&t);
}

/* Changes a row of the section table and mends the checksums. */
static tec_error open_with_row(fixture *t, int row, uint64_t kind, int64_t move)
{
    const char *path = write_module(t, "net.so", 0);
    bytes b = read_bytes(path);
    uint8_t *footer = b.data + b.size - RT_FOOTER_BYTES, *rows;
    rt_footer f;
    rt_section s;

    cr_assert_eq(rt_footer_read(&f, footer), RT_FOOTER_GOOD);
    rows = b.data + f.table_offset;
    s = rt_section_read(rows + row * RT_ROW_BYTES);
    s.kind = kind;
    s.offset += (uint64_t)move;
    rt_section_write(&s, rows + row * RT_ROW_BYTES);
    f.table_checksum = rt_checksum(rows, f.n_sections * RT_ROW_BYTES);
    rt_footer_write(&f, footer);
    write_bytes(path, b.data, b.size);
    free(b.data);
    return open_error(path, NULL);
}

Test(module, refuses_sections_that_are_not_where_they_should_be)
{
    fixture t = set_up();

    ASSERT_SAYS(open_with_row(&t, 0, 9, 0), "section 0 is of kind 9");
    ASSERT_SAYS(open_with_row(&t, 2, 2, 0), "section 2 is of kind 2");
    ASSERT_SAYS(open_with_row(&t, 3, 5, 0), "section 4 is of kind 5");
    ASSERT_SAYS(open_with_row(&t, 6, 8, 0), "it does not say well where its weights are");
    ASSERT_SAYS(open_with_row(&t, 1, 2, 1 << 20), "section 'functions' does not lie inside the file");
    ASSERT_SAYS(open_with_row(&t, 1, 2, -64), "section 'functions' does not lie inside the file");
    ASSERT_SAYS(open_with_row(&t, 6, 7, -8), "section 'weights' is not where it should be");
    tear_down(&t);
}

Test(module, refuses_to_write_functions_without_code)
{
    fixture t = set_up();

    cr_assert(!rt_module_write(&t.desc, NULL, 0, in_folder(&t.dir, "net.so"), 0, &t.err));
    ASSERT_SAYS(t.err, "net.so: has functions but no shared object");
    tear_down(&t);
}

/* A graph that only copies needs no code: such a module has no shared object inside, and still runs. */
Test(module, may_have_constants_and_graphs_without_code)
{
    rt_step_desc step = {
        .function = RT_STEP_COPY, .values = (const int32_t[]){0, 1}, .n_values = 2, .name = "Identity"};
    rt_value_desc values[] = {{F32, 1, (const rt_dim[]){CONST(3)}, RT_IN_CONSTANT, 0, {0}, 0},
                              {F32, 1, (const rt_dim[]){CONST(3)}, RT_IN_OUTPUT, 0, {0}, 0}};
    rt_graph_desc g = {.name = "g",
                       .outputs = (const rt_tensor_desc[]){{"y", F32, 1, (const rt_dim[]){CONST(3)}}},
                       .n_outputs = 1,
                       .values = values,
                       .n_values = 2,
                       .steps = &step,
                       .n_steps = 1};
    rt_module_desc m = {
        .target = "any", .constants = kit_constants, .n_constants = 1, .graphs = &g, .n_graphs = 1};
    folder dir = folder_new();
    const char *path = in_folder(&dir, "data.tec");
    tec_error err = {0};

    cr_assert(rt_module_write(&m, NULL, 0, path, 0, &err), "%s", err.text);
    tec_module *module = tec_module_open(path, NULL, &err);
    tec_executor *ex = tec_executor_new(module, NULL, NULL, &err);
    cr_assert(tec_executor_run(ex, &err), "%s", err.text);
    cr_assert_eq(((float *)tec_executor_output(ex, 0)->data)[2], 3);
    tec_executor_free(ex);
    tec_module_free(module);
    folder_remove(&dir);
}

Test(module, refuses_what_is_no_module)
{
    fixture t = set_up();
    const char *path = in_folder(&t.dir, "text");

    write_bytes(path, "hello", 5);
    ASSERT_SAYS(open_error(path, NULL), "not a module: the file has only 5 bytes");
    ASSERT_SAYS(open_error(in_folder(&t.dir, "kernels.so"), NULL),
                "not a module, or cut off: there is no footer at its end");
    ASSERT_SAYS(open_error(t.dir.path, NULL), "is not a file");
    tear_down(&t);
}

Test(module, refuses_code_that_lacks_a_function)
{
    fixture t = set_up();
    rt_function_desc functions[4];

    memcpy(functions, kit_functions, sizeof functions);
    functions[2].symbol = "kernel_missing";
    t.desc.functions = functions;
    ASSERT_SAYS(open_error(write_module(&t, "net.so", 0), NULL),
                "function 'scale' should be symbol 'kernel_missing', which its code lacks");
    tear_down(&t);
}

Test(module, refuses_code_that_does_not_load)
{
    fixture t = set_up();
    const char *path;

    memset(t.elf.data + 4, 0xff, 12);
    path = write_module(&t, "net.so", 0);
    ASSERT_SAYS(open_error(path, NULL), "its code cannot be loaded: ");
    tear_down(&t);
}

Test(module, a_file_that_was_replaced_gives_its_own_code)
{
    fixture t = set_up();
    const char *path = write_module(&t, "net.so", 0);
    tec_module *old = tec_module_open(path, NULL, &t.err), *twin = tec_module_open(path, NULL, &t.err), *new;
    bytes elf = t.elf;

    cr_assert(old && twin, "%s", t.err.text);
    cr_assert_eq((void *)(uintptr_t)rt_module_code(old, 0), (void *)(uintptr_t)rt_module_code(twin, 0));
    t.elf = compile_kernels(&t.dir, "-O3 -fno-inline");
    write_module(&t, "net.so", 0);
    new = tec_module_open(path, NULL, &t.err);
    cr_assert(new, "%s", t.err.text);
    cr_assert_neq((void *)(uintptr_t)rt_module_code(old, 0), (void *)(uintptr_t)rt_module_code(new, 0));
    tec_module_free(old);
    run_net(path, NULL);
    tec_module_free(twin);
    tec_module_free(new);
    free(elf.data);
    tear_down(&t);
}

/* Whether the folder holds the files of this test's set-up alone. */
static bool holds_no_more(const folder *f, const char *names)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command, "test \"$(ls '%s' | tr '\\n' ' ')\" = '%s '", f->path, names);
    return system(command) == 0;
}

Test(module, leaves_no_file_behind_when_writing_fails)
{
    fixture t = set_up();

    cr_assert(!rt_module_write(&t.desc, t.elf.data, t.elf.size, in_folder(&t.dir, "no/net.so"), 0, &t.err));
    ASSERT_SAYS(t.err, "no/net.so: cannot create it: No such file or directory");
    t.desc.target = NULL;
    t.err = (tec_error){0};
    cr_assert(!rt_module_write(&t.desc, t.elf.data, t.elf.size, in_folder(&t.dir, "net.so"), 0, &t.err));
    cr_assert_str_eq(t.err.text, "module: has no target");
    cr_assert(holds_no_more(&t.dir, "kernels.so"));
    tear_down(&t);
}

Test(module, a_disk_that_is_full_leaves_no_file)
{
    fixture t = set_up();
    struct rlimit limit = {4096, 4096};

    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert(!rt_module_write(&t.desc, t.elf.data, t.elf.size, in_folder(&t.dir, "net.so"), 0, &t.err));
    ASSERT_SAYS(t.err, "net.so: cannot write it: File too large");
    cr_assert(holds_no_more(&t.dir, "kernels.so"));
    tear_down(&t);
}

Test(module, does_not_replace_a_folder)
{
    fixture t = set_up();

    cr_assert_eq(mkdir(in_folder(&t.dir, "net.so"), 0777), 0);
    cr_assert(!rt_module_write(&t.desc, t.elf.data, t.elf.size, in_folder(&t.dir, "net.so"), 0, &t.err));
    ASSERT_SAYS(t.err, "net.so: cannot rename a file to it: Is a directory");
    cr_assert(holds_no_more(&t.dir, "kernels.so net.so"));
    tear_down(&t);
}

Test(module, runs_where_the_cpu_has_all_features)
{
    fixture t = set_up();
    const char *names[64];

    for (int i = 0; rt_cpu_feature(i); i++)
        if (rt_cpu_has(rt_cpu_feature(i)) == RT_CPU_HAS)
            names[t.desc.n_features++] = rt_cpu_feature(i);
    t.desc.features = names;
    cr_assert_gt(t.desc.n_features, 0);
    run_net(write_module(&t, "net.so", 0), NULL);
    tear_down(&t);
}

Test(module, names_of_weights_beside_it_are_escaped_and_unique)
{
    rt_constant_desc constants[4];
    rt_module_desc m = {.target = "any", .constants = constants, .n_constants = 4};
    folder dir = folder_new();
    const char *path = in_folder(&dir, "data.tec");
    tec_error err = {0};
    bytes b;

    for (int i = 0; i < 4; i++)
        constants[i] = kit_constants[0];
    constants[1].name = "a \"quoted\" name";
    constants[2].name = "bias";
    constants[3].name = NULL;
    constants[3].dtype = (base_dtype){kDLInt, 4, 1};
    cr_assert(rt_module_write(&m, NULL, 0, path, RT_WEIGHTS_BESIDE, &err), "%s", err.text);
    b = read_bytes(in_folder(&dir, "data.tec.safetensors"));
    b.data[4096] = 0;
    const char *json = (const char *)b.data + 8;
    cr_assert(strstr(json, "\"a \\u0022quoted\\u0022 name\":{\"dtype\":\"F32\""), "%s", json);
    cr_assert(strstr(json, "\"bias\":{") && strstr(json, "\"bias.2\":{"), "%s", json);
    cr_assert(strstr(json, "\"constant.3\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[192,195]}"),
              "%s", json);
    free(b.data);
    folder_remove(&dir);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

Test(module, code_in_memory_is_released_with_the_last_reference)
{
    rt_module_desc m = kit_module();
    int released = 0;
    rt_memory_code code = {.resolve = kit_resolve, .release = count_release, .user = &released};
    int64_t before = rt_alloc_live();
    tec_module *module = rt_module_from_memory(&m, &code, 0, NULL);

    tec_module_free(tec_module_ref(module));
    cr_assert_eq(released, 0);
    tec_module_free(module);
    cr_assert_eq(released, 1);
    m.n_functions = -1;
    cr_assert_null(rt_module_from_memory(&m, &code, 0, NULL));
    cr_assert_eq(released, 2);
    cr_assert_eq(rt_alloc_live(), before);
}

Test(module, every_failed_allocation_of_one_in_memory_releases_its_code)
{
    rt_module_desc m = kit_module();
    int released = 0;
    rt_memory_code code = {.resolve = kit_resolve, .release = count_release, .user = &released};
    int64_t before = rt_alloc_live();

    for (int n = 1;; n++) {
        tec_error err = {0};
        tec_module *module;

        rt_alloc_fail_at(n);
        module = rt_module_from_memory(&m, &code, 0, &err);
        rt_alloc_fail_at(0);
        tec_module_free(module);
        cr_assert_eq(released, n);
        cr_assert_eq(rt_alloc_live(), before);
        if (module)
            break;
        cr_assert_eq(err.status, TEC_NO_MEMORY);
    }
}

Test(module, constants_in_memory_are_copied_unless_borrowed)
{
    rt_module_desc m = kit_module();
    tec_module *copy = rt_module_from_memory(&m, &kit_code, 0, NULL);
    tec_module *borrowed = rt_module_from_memory(&m, &kit_code, RT_BORROW_CONSTANTS, NULL);

    cr_assert_neq(rt_module_describe(copy)->constants[1].data, (const void *)kit_weights);
    cr_assert(memcmp(rt_module_describe(copy)->constants[1].data, kit_weights, sizeof kit_weights) == 0);
    cr_assert_eq(rt_module_describe(borrowed)->constants[1].data, (const void *)kit_weights);
    tec_module_free(copy);
    tec_module_free(borrowed);
}

/* What is written to memory is what would be written to a file, and a file in memory is opened like one with
 * a name. */
Test(module, opens_from_a_file_in_memory)
{
    fixture t = set_up();
    size_t size;
    rt_bytes b = {0};

    cr_assert(rt_module_bytes(&t.desc, t.elf.data, t.elf.size, &b, &t.err), "%s", t.err.text);
    tec_context *cx = tec_context_new();
    const char *file = base_read_file(cx, write_module(&t, "net.tec", RT_WEIGHTS_INSIDE), &size);
    cr_assert(file && size == b.n && memcmp(file, b.data, size) == 0);
    for (int i = 0; i < 2; i++) {
        int fd = memfd_create("net", MFD_CLOEXEC);

        cr_assert_eq(write(fd, b.data, b.n), (ssize_t)b.n);
        run_net(base_format(cx, "/proc/self/fd/%d", fd), NULL);
        close(fd);
    }
    tec_context_free(cx);
    rt_bytes_free(&b);
    tear_down(&t);
}

Test(module, opens_from_bytes_at_any_address_that_are_freed_afterwards)
{
    fixture t = set_up();
    rt_bytes b = {0};
    int64_t before;

    cr_assert(rt_module_bytes(&t.desc, t.elf.data, t.elf.size, &b, &t.err), "%s", t.err.text);
    before = rt_alloc_live();
    for (size_t shift = 0; shift < 9; shift++) {
        tec_module_options options = {.verify_weights = true, .copy_weights = shift % 2};
        uint8_t *given = malloc(b.n + shift);
        tec_error err = {0};
        tec_module *m;

        memcpy(given + shift, b.data, b.n);
        m = tec_module_open_bytes(given + shift, b.n, &options, &err);
        memset(given, 0xff, b.n + shift);
        free(given);
        run_module(m, err);
    }
    cr_assert_eq(rt_alloc_live(), before);
    rt_bytes_free(&b);
    tear_down(&t);
}

/* Two modules of other weights at once: neither is taken for the other. */
Test(module, bytes_of_two_modules_stay_apart)
{
    fixture t = set_up();
    bytes stripped = compile_kernels(&t.dir, "-s");
    rt_bytes a = {0}, b = {0};
    tec_error err = {0};
    tec_module *first, *second;

    cr_assert(rt_module_bytes(&t.desc, t.elf.data, t.elf.size, &a, &err) &&
              rt_module_bytes(&t.desc, stripped.data, stripped.size, &b, &err));
    first = tec_module_open_bytes(a.data, a.n, NULL, &err);
    second = tec_module_open_bytes(b.data, b.n, NULL, &err);
    cr_assert(first && second, "%s", err.text);
    cr_assert(rt_module_code(first, 0) != rt_module_code(second, 0));
    run_module(second, err);
    run_module(first, err);
    rt_bytes_free(&a);
    rt_bytes_free(&b);
    free(stripped.data);
    tear_down(&t);
}

Test(module, bytes_without_their_weights_are_refused)
{
    fixture t = set_up();
    bytes b = read_bytes(write_module(&t, "net.so", RT_WEIGHTS_BESIDE));
    tec_error err = {0}, none = {0};

    cr_assert_null(tec_module_open_bytes(b.data, b.size, NULL, &err));
    cr_assert_eq(err.status, TEC_UNSUPPORTED);
    cr_assert_str_eq(err.text, "module in memory: the weights are in a separate file, 'net.so.safetensors': "
                               "open the module by its path");
    cr_assert_null(tec_module_open_bytes(NULL, 0, NULL, &none));
    cr_assert_str_eq(none.text, "expected the bytes of a module, found NULL");
    free(b.data);
    tear_down(&t);
}
