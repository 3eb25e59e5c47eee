/* targets/codegen.h -- the seam between the compiler and what makes code: a code generator is a const struct.
 *
 *     // compiler/generators.h; a row of targets/kinds.def
 *     const target_codegen *g = comp_codegen(t);
 *     const target_code *code = g->generate(cx, &program, 1, t, NULL);
 *     const void *file = g->link(cx, &code, 1, &size);         // the shared object of a module file, or
 *     void *loaded = g->load(cx, &code, 1);                    // functions of this process
 *     tec_kernel_fn *f = g->find(loaded, code->symbols[0]);
 *     g->unload(loaded);
 *
 * A generator gets programs that went through the rows of lower/passes.def that its kind's features allow;
 * lower/pass.h says what then holds.
 * Lifetime: code is plain data in the context; what `load` gives belongs to the caller until `unload`.
 * Errors: in the context, with NULL. What the target cannot do is UNSUPPORTED, and names the target.
 * Threads: several threads may generate at once, each with a context of its own.
 */
#ifndef TARGETS_CODEGEN_H
#define TARGETS_CODEGEN_H

#include "targets/target.h"
#include "tec/kernel.h"

typedef struct ir_program ir_program; /* ir/ir.h, which this room may not include */

/* A function that runs one of the programs by the remainder of a symbol. The chosen program gets the symbols
 * of the call, with the quotient in the place of that symbol. */
typedef struct {
    const char *symbol; /* of that function */
    int dim;            /* which symbol the remainder is taken of */
    int64_t modulus;
    const int *program; /* [modulus]; program 0 is the general one, and gets the symbols as they are */
} target_dispatch;

typedef struct {
    const char *const *symbols;      /* the name of each program's function; NULL: the programs' names */
    const target_dispatch *dispatch; /* NULL: none */
    /* Which forms of text to keep beside the bytes, of the generator's `texts`; ends with NULL; NULL:
     * none. */
    const char *const *texts;
    bool keep_denormals; /* strict floating point: kernels leave the caller's mode as it is */
    bool unoptimised;    /* leave the generator's own optimisation out, for looking at what was generated */
} target_codegen_options;

typedef struct {
    const char *name, *text; /* "asm" and the assembly */
} target_code_form;

/* What a generator made of some programs. */
typedef struct {
    const target *target;
    const char *const *symbols; /* the functions that may be called */
    int n;
    const char *format; /* of the bytes: "elf" is a relocatable object */
    const void *bytes;
    size_t size;
    /* Functions of the architecture that the bytes call and do not hold, "__aeabi_ldivmod, ..."; NULL:
     * none. */
    const char *helpers;
    const target_code_form *forms; /* the texts that were asked for */
    int n_forms;
} target_code;

/* Code for devices that came after the target's. */
typedef struct {
    const char *target; /* text: "cuda -arch=compute_80" */
    const void *bytes;  /* NULL: there is none */
    size_t size;
} target_later;

typedef struct {
    /* The forms of text that code has beside its bytes ("llvm", "asm"), for --emit; ends with NULL. */
    const char *const *texts;
    /* What a lowered program becomes before it is described and generated: the same with more launches, say.
     * NULL: it stays what it is. */
    const ir_program *(*prepare)(tec_context *cx, const ir_program *program, const target *machine);
    const target_code *(*generate)(tec_context *cx, const ir_program *const *programs, int count,
                                   const target *machine,
                                   const target_codegen_options *options); /* options NULL: none */
    /* The bytes of one ELF shared object that holds all functions of the codes; of a device, of one piece of
     * device code for the codes' target, which names one device then. */
    const void *(*link)(tec_context *cx, const target_code *const *codes, int count, size_t *size);
    /* The functions of the codes in this process, which must be able to run them. */
    void *(*load)(tec_context *cx, const target_code *const *codes, int count);
    tec_kernel_fn *(*find)(void *loaded, const char *symbol); /* NULL: no such function */
    void (*unload)(void *loaded);
    /* The kind of device of runtime/devices.def that runs the code; NULL: the host. Its `link` gives the
     * bytes of a piece of device code, its `load`, `find` and `unload` are NULL: the functions are lists of
     * launches (lower/launches.h). Kernels are called SYMBOL_NUMBER. */
    const char *device;
    int device_format; /* of that piece: an rt_code_format of runtime/format.h */
    /* What `link` gives, and the same code in a form that the driver of a later device compiles when the
     * module is loaded (*later; NULL: later devices do not run code for this target). NULL: there is no
     * such form. */
    const void *(*link_with_later)(tec_context *cx, const target_code *const *codes, int count, size_t *size,
                                   target_later *later);
    int later_format;
} target_codegen;

/* Of a kind that has no generator: all its fields are NULL. */
extern const target_codegen target_no_codegen;

/* The text of that name; NULL where it was not asked for. */
const char *target_code_text(const target_code *code, const char *name);
/* Whether the options ask for the text of that name. */
bool target_wants_text(const target_codegen_options *options, const char *name);

/* The place of a target's kind in targets/kinds.def, for tables that are made from it. */
int target_kind_number(const target *machine);

#endif
