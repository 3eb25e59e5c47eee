/* tools/te_check.c -- `tec te --check`: the compiled kernel against its definition, at sizes that are drawn.
 *
 * The oracle is the interpreter of ir/, on the definition without a schedule. It checks the data as well: an
 * index in an input that leaves its tensor is told before the kernel, which trusts it, runs. A definition
 * that takes the interpreter more than MOST_STEPS is compared with its plain loops, compiled for this CPU.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "ir/interp/interp.h"
#include "runtime/module.h"
#include "runtime/shape.h"
#include "tools/data.h"
#include "tools/te_run.h"
#include "worker/tensors.h"

enum { MOST_STEPS = 1000 * 1000 };

typedef struct {
    te_run *run;
    const ir_program *tree; /* the definition without a schedule */
    tec_module *plain;      /* the same, compiled; NULL: not needed yet */
    bool by_plain_loops;    /* at some size */
    const char *what;       /* what differs; NULL: nothing */
    tec_error err;
} checker;

/* ---- the oracles ---- */

/* The kernel checks its arguments when it is called; the interpreter takes them as they are. */
static bool fits(const checker *self, const tool_feed *feed)
{
    for (int i = 0; i < feed->n; i++) {
        const tool_port *port = &feed->port[i];
        int64_t shape[RT_MAX_RANK];
        tec_error err = {0};

        if (!rt_shape_eval(port->shape, port->rank, feed->value, shape, port->name, &err))
            return base_fail(self->run->cx, TEC_INVALID, (base_loc){0}, "%s", err.text);
        DLTensor want = {.dtype = port->dtype, .ndim = port->rank, .shape = shape};
        char expected[100], found[100];

        tec_tensor_text(&want, expected, sizeof expected);
        tec_tensor_text(port->tensor, found, sizeof found);
        if (strcmp(expected, found) != 0)
            return base_fail(self->run->cx, TEC_INVALID, (base_loc){0}, "input '%s': expected %s, found %s",
                             port->name, expected, found);
    }
    return true;
}

/* An argument of the interpreter over the memory of a port: a buffer, or the value of a scalar. */
static ir_arg argument(tec_context *cx, const ir_param *param, const tool_port *port)
{
    const DLTensor *tensor = port->tensor;
    void *data = (char *)tensor->data + tensor->byte_offset;
    ir_arg arg = {0};

    if (!param->buffer) {
        arg.scalar_int = base_is_float(port->dtype) ? 0 : worker_get_int(tensor, 0);
        arg.scalar_float = base_is_float(port->dtype) ? worker_get_float(tensor, 0) : 0;
        return arg;
    }
    arg.array = base_new(cx, ir_array);
    *arg.array = (ir_array){.dtype = port->dtype, .n = port->rank, .data = data};
    int64_t stride = 1;
    for (int d = port->rank - 1; d >= 0; stride *= tensor->shape[d--]) {
        arg.array->shape[d] = tensor->shape[d];
        arg.array->strides[d] = stride;
    }
    return arg;
}

typedef enum { WELL, FAILED, TOO_LONG } verdict;

/* Runs the definition on the tensors of the feed, whose outputs become what is expected. */
static verdict interpret(checker *self, const tool_feed *feed)
{
    tec_context *own = base_child(self->run->cx);
    ir_arg *args = base_array(own, ir_arg, feed->n);

    for (int i = 0; i < feed->n; i++)
        args[i] = argument(own, &self->tree->params[i], &feed->port[i]);
    ir_run how = {.args = args,
                  .max_steps = MOST_STEPS,
                  .unchecked_races = true,
                  .symbol_name = feed->symbol,
                  .symbol_value = feed->value,
                  .n_symbols = feed->n_symbols};
    verdict v = ir_interpret(own, self->tree, &how) ? WELL : FAILED;
    if (v == FAILED && tec_context_status(own) == TEC_TIMEOUT)
        v = TOO_LONG;
    if (v == FAILED)
        base_fail_whole(self->run->cx, tec_context_status(own),
                        base_strdup(self->run->cx, tec_context_error(own)));
    tec_context_free(own);
    return v;
}

/* The definition without a schedule, compiled for this CPU. With the same rules of arithmetic (strict), so
 * that differences come from the schedule. */
static bool compile_plain(checker *self)
{
    tec_context *cx = self->run->cx;
    comp_unit u = {.name = self->run->def->name, .tree = self->tree, .origin = "plain"};
    comp_code *code =
        comp_compile(cx, &u, 1, &(comp_options){.target = target_native(cx), .strict = self->run->strict});

    self->plain = code ? comp_load(cx, code, NULL) : NULL;
    return self->plain;
}

static bool call_on(checker *self, const tool_feed *feed, tec_module *module,
                    const rt_function_desc *function, const char *on)
{
    tool_call call = {0};
    bool good = tool_call_open(&call, feed, module, function, on,
                               &(tec_run_options){.threads = self->run->threads}, &self->err) &&
                tool_call_once(&call, &self->err) && tool_call_fetch(&call, &self->err);

    tool_call_close(&call);
    return good;
}

/* Fills the feed's outputs with what the definition gives. */
static bool expect(checker *self, const tool_feed *feed)
{
    verdict v = self->by_plain_loops ? TOO_LONG : interpret(self, feed);

    if (v != TOO_LONG)
        return v == WELL;
    self->by_plain_loops = true;
    return (self->plain || compile_plain(self)) &&
           call_on(self, feed, self->plain, rt_module_describe(self->plain)->functions, NULL);
}

/* ---- comparing ---- */

/* At one size. Both feeds have the same inputs, as both begin with the same seed. */
static bool compare(checker *self, const te_size *sizes, int n_sizes, tool_feed *feed)
{
    te_run *run = self->run;
    tool_feed want;
    char text[300];

    if (!tool_te_feed(run, sizes, n_sizes, 1, feed) || !tool_te_feed(run, sizes, n_sizes, 1, &want) ||
        !fits(self, feed) || !expect(self, &want) ||
        !call_on(self, feed, run->module, run->function, run->on))
        return false;
    for (int k = 0; k < feed->n && !self->what; k++) {
        const tool_port *port = &feed->port[k];
        bool (*same)(const DLTensor *, const DLTensor *, char *, size_t) =
            run->rough ? worker_compare_rough : worker_compare;

        if (port->is_output && !same(port->tensor, want.port[k].tensor, text, sizeof text))
            self->what = base_format(run->cx, "result '%s': %s", port->name, text);
    }
    return true;
}

/* "n = 3, m = 2", of the feed's symbols; "" without any. */
static const char *sizes_text(const tool_feed *feed)
{
    base_text text = {0};

    for (int k = 0; k < feed->n_symbols; k++)
        base_addf(feed->cx, &text, "%s%s = %lld", k ? ", " : "", feed->symbol[k], (long long)feed->value[k]);
    return base_text_str(feed->cx, &text);
}

/* At each of the sizes, until one differs; what was tried is added to the text. */
static bool compare_all(checker *self, const fuzz_sizes *sets, int n, base_text *tried)
{
    for (int i = 0; i < n && !self->what; i++) {
        te_size sizes[FUZZ_MAX_SYMBOLS];
        tool_feed feed;

        for (int k = 0; k < sets[i].n; k++)
            sizes[k] = (te_size){sets[i].name[k], sets[i].value[k]};
        if (!compare(self, sizes, sets[i].n, &feed))
            return false;
        const char *at = sizes_text(&feed);
        if (self->what && *at)
            self->what = base_format(self->run->cx, "at %s, %s", at, self->what);
        base_addf(self->run->cx, tried, "%s%s", *at && i ? "; " : "", at);
    }
    return true;
}

/* One line for people, or an object. */
static void print_result(const checker *self, base_text *tried)
{
    const char *oracle = self->by_plain_loops ? "plain loops on this CPU" : "the interpreter";
    const char *name = self->run->function->name, *at = base_text_str(self->run->cx, tried);

    if (self->run->json) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", name);
        cJSON_AddBoolToObject(row, "same", !self->what);
        cJSON_AddStringToObject(row, "oracle", oracle);
        cJSON_AddStringToObject(row, "sizes", at);
        if (self->what)
            cJSON_AddStringToObject(row, "difference", self->what);
        char *text = cJSON_PrintUnformatted(row);
        puts(text);
        cJSON_free(text);
        cJSON_Delete(row);
    } else if (self->what) {
        printf("%s: %s\n", name, self->what);
    } else {
        printf("%s: same results as %s%s%s\n", name, oracle, *at ? ", at " : "", at);
    }
}

/* Sizes are drawn for the symbols that neither --dim nor a file gives. */
int tool_te_check(te_run *run)
{
    checker c = {.run = run, .tree = te_tree(run->cx, run->def)};
    fuzz_sizes sets[FUZZ_MAX_SETS] = {{0}};
    base_text tried = {0};
    int n = 1;

    if (c.tree && run->function->n_symbols > 0 && run->inputs->n == 0 &&
        run->function->n_symbols <= FUZZ_MAX_SYMBOLS) {
        n = fuzz_draw_sizes(run->cx, c.tree, 1, sets);
        if (!n)
            base_fail(run->cx, TEC_INVALID, run->def->loc,
                      "no small sizes fit the conditions of '%s': give each symbol a value with --dim NAME=N",
                      run->function->name);
    }
    bool ran = c.tree && n && compare_all(&c, sets, n, &tried);
    tec_module_free(c.plain);
    if (base_failed(run->cx))
        return tool_fail("te", run->cx);
    if (!ran)
        return tool_fail_run("te", &c.err);
    print_result(&c, &tried);
    return c.what ? TOOL_FAILED : TOOL_OK;
}
