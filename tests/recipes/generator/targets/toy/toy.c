/* targets/toy/toy.c -- a code generator of one file: C with loops and scalars, for the system's compiler. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/ir.h"
#include "targets/codegen.h"

static const char *const texts[] = {"c", NULL};

typedef struct {
    tec_context *cx;
    base_text out;
    base_map names; /* variable or buffer -> its C name */
    int n_names;
} printer;

static const char *name_of(printer *p, const void *thing)
{
    const char *name = base_map_get(&p->names, thing);

    if (!name) {
        name = base_format(p->cx, "v%d", p->n_names++);
        base_map_put(p->cx, &p->names, thing, name);
    }
    return name;
}

static const char *c_type(printer *p, base_dtype t)
{
    if (base_is_float(t))
        return t.bits == 32 ? "float" : "double";
    return base_is_bool(t) ? "_Bool" : base_format(p->cx, "%sint%d_t", base_is_signed(t) ? "" : "u", t.bits);
}

static const char *expr(printer *p, const ir_expr *e);

static const char *operation(printer *p, const ir_expr *e)
{
    const char *a = expr(p, e->arg[0]), *b = expr(p, e->arg[1]);

    switch ((int)e->op) {
    case IR_FLOORDIV: return base_format(p->cx, "(%s / %s)", a, b); /* indices: never negative */
    case IR_FLOORMOD: return base_format(p->cx, "(%s %% %s)", a, b);
    case IR_MIN: return base_format(p->cx, "(%s < %s ? %s : %s)", a, b, a, b);
    case IR_MAX: return base_format(p->cx, "(%s > %s ? %s : %s)", a, b, a, b);
    default: return base_format(p->cx, "(%s %s %s)", a, ir_ops[e->op].text, b);
    }
}

static const char *expr(printer *p, const ir_expr *e)
{
    switch ((int)e->op) {
    case IR_INT: return base_format(p->cx, "%lld", (long long)e->i);
    case IR_FLOAT: return base_format(p->cx, "%a%s", e->f, e->dtype.bits == 32 ? "f" : "");
    case IR_VAR: return name_of(p, e);
    case IR_CAST: return base_format(p->cx, "(%s)%s", c_type(p, e->dtype), expr(p, e->arg[0]));
    case IR_LOAD: return base_format(p->cx, "%s[%s]", name_of(p, e->load.buffer), expr(p, e->load.index[0]));
    default:
        if (ir_is_op(e->op) && ir_ops[e->op].arity == 2)
            return operation(p, e);
        return base_fail(p->cx, TEC_UNSUPPORTED, e->loc, "the toy generator does not know '%s'",
                         ir_ops[e->op].text);
    }
}

static void stmt(printer *p, const ir_stmt *s);

/* A parallel loop runs as any other: iterations in order are one of the orders allowed. */
static void loop(printer *p, const ir_stmt *s)
{
    const char *i = name_of(p, s->loop.var), *begin = expr(p, s->loop.min), *n = expr(p, s->loop.extent);

    base_addf(p->cx, &p->out, "for (int64_t %s = %s, end = %s + (%s); %s < end; %s++) {\n", i, begin, begin,
              n, i, i);
    stmt(p, s->loop.body);
    base_add(p->cx, &p->out, "}\n");
}

static void stmt(printer *p, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            stmt(p, s->seq.stmt[i]);
        break;
    case IR_FOR: loop(p, s); break;
    case IR_IF:
        base_addf(p->cx, &p->out, "if (%s) {\n", expr(p, s->branch.cond));
        stmt(p, s->branch.then);
        base_add(p->cx, &p->out, "} else {\n");
        if (s->branch.otherwise)
            stmt(p, s->branch.otherwise);
        base_add(p->cx, &p->out, "}\n");
        break;
    case IR_STORE:
        base_addf(p->cx, &p->out, "%s[%s] = %s;\n", name_of(p, s->store.buffer), expr(p, s->store.index[0]),
                  expr(p, s->store.value));
        break;
    case IR_ALLOCATE:
        base_addf(p->cx, &p->out, "{ %s %s[%s];\n", c_type(p, s->allocate.buffer->dtype),
                  name_of(p, s->allocate.buffer), expr(p, s->allocate.buffer->shape[0]));
        stmt(p, s->allocate.body);
        base_add(p->cx, &p->out, "}\n");
        break;
    default: base_fail(p->cx, TEC_UNSUPPORTED, s->loc, "the toy generator does not know this statement");
    }
}

/* int32_t SYMBOL(env, args, dims) { the buffers, the symbols, the body } */
static void function(printer *p, const ir_program *q, const char *symbol)
{
    base_addf(p->cx, &p->out,
              "int32_t %s(const void *env, void *const *args, const int64_t *dims) {\n(void)env, (void)args, "
              "(void)dims;\n",
              symbol);
    for (int i = 0; i < q->n_symbols; i++)
        base_addf(p->cx, &p->out, "int64_t %s = dims[%d];\n", name_of(p, q->symbols[i]), i);
    for (int i = 0; i < q->n_params; i++) {
        const ir_buffer *b = q->params[i].buffer;

        base_addf(p->cx, &p->out, "%s *%s = args[%d];\n", c_type(p, b->dtype), name_of(p, b), i);
    }
    stmt(p, q->body);
    base_add(p->cx, &p->out, "return 0;\n}\n");
}

static const target_code *generate(tec_context *cx, const ir_program *const *programs, int n, const target *t,
                                   const target_codegen_options *o)
{
    printer p = {.cx = cx};
    target_code *code = base_new(cx, target_code);
    target_code_form *form = base_new(cx, target_code_form);

    if (o->dispatch)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "the toy generator has no versions");
    base_add(cx, &p.out, "#include <stdint.h>\n");
    for (int i = 0; i < n; i++)
        function(&p, programs[i], o->symbols[i]);
    *form = (target_code_form){"c", base_text_str(cx, &p.out)};
    *code = (target_code){.target = t,
                          .symbols = o->symbols,
                          .n = n,
                          .format = "c",
                          .bytes = form->text,
                          .size = p.out.n,
                          .forms = form,
                          .n_forms = target_wants_text(o, "c")};
    return base_failed(cx) ? NULL : code;
}

/* A shared object of all codes at path; false with an error. */
static bool compile(tec_context *cx, const target_code *const *codes, int n, const char *path)
{
    FILE *f = popen(base_format(cx, "cc -O1 -shared -fPIC -x c - -o %s", path), "w");

    for (int i = 0; f && i < n; i++)
        fwrite(codes[i]->bytes, 1, codes[i]->size, f);
    if (!f || pclose(f) != 0)
        base_fail(cx, TEC_INTERNAL, (base_loc){0}, "the compiler of the toy generator failed");
    return !base_failed(cx);
}

static const void *link_codes(tec_context *cx, const target_code *const *codes, int n, size_t *size)
{
    char path[] = "/tmp/toy.XXXXXX";
    int fd = mkstemp(path);
    const void *bytes = compile(cx, codes, n, path) ? base_read_file(cx, path, size) : NULL;

    close(fd);
    unlink(path);
    return bytes;
}

static void *load(tec_context *cx, const target_code *const *codes, int n)
{
    char path[] = "/tmp/toy.XXXXXX";
    int fd = mkstemp(path);
    void *library = compile(cx, codes, n, path) ? dlopen(path, RTLD_NOW) : NULL;

    close(fd);
    unlink(path);
    return library;
}

static tec_kernel_fn *find(void *library, const char *symbol)
{
    return (tec_kernel_fn *)(uintptr_t)dlsym(library, symbol);
}

static void unload(void *library)
{
    dlclose(library);
}

extern const target_codegen toy_codegen;
const target_codegen toy_codegen = {
    .texts = texts, .generate = generate, .link = link_codes, .load = load, .find = find, .unload = unload};
