/* tree/sites.h -- the blocks of a loop tree: where each stands, and who touches a buffer.
 *
 *     tree_sites all = tree_all_sites(cx, program->body);
 *     // all.at[i].block stands in the loops all.at[i].loop[0 .. n_loops-1]
 *     for (int i = 0; i < all.n; i++)
 *
 * Children are numbered in order of execution, and sites are listed in that order. A tree that is rewritten
 * has new sites.
 */
#ifndef TREE_SITES_H
#define TREE_SITES_H

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/region/region.h"
#include "ir/walk.h"

/* The program that a question is about: its parameters tell what is an output, its facts what holds of its
 * symbols. */
typedef struct {
    tec_context *cx;
    const ir_program *program;
    const ir_facts *facts;
} tree_view;

/* The children of a statement; the inside of a block is none. */
int tree_n_children(const ir_stmt *stmt);
const ir_stmt *tree_child(const ir_stmt *stmt, int index);

/* The range of a loop's variable. Of a loop that never runs nothing is said: everything would follow, and
 * what is simplified to a constant there could stand outside of it later. */
void tree_know_loop(ir_facts *facts, const ir_expr *var, const ir_expr *extent, bool may_be_empty);
/* A block in the loop reduces over it and initialises itself, which it also does where the loop has no
 * iteration: what stands in the loop does not say that it has one. */
bool tree_may_be_empty(tec_context *cx, const ir_stmt *loop);
/* Adds the conditions `0 < extent` of a block's spatial variables that do not follow from the facts. An init
 * that is moved away from its block runs under them. */
void tree_domain_guards(const ir_facts *facts, const ir_stmt *stmt, base_vec *out);
/* A block and the loops around it. */
typedef struct {
    const ir_stmt *stmt;
    const ir_block *block;
    const ir_stmt *const *loop; /* outermost first */
    int n_loops;
    const ir_stmt *const *path;    /* all statements around it, the loops among them, outermost first */
    int n;                         /* of the path */
    const ir_facts **facts;        /* made when asked for: inside the first k loops */
    const ir_expr *const **guards; /* made when asked for: see tree_loop_guards */
    int order;                     /* of execution, among all blocks of the tree */
    bool branches;                 /* below a condition */
} tree_site;

typedef struct {
    tree_site *at;
    int n;
} tree_sites;
tree_sites tree_all_sites(tec_context *cx, const ir_stmt *root);
/* How many loops stand around and including the one of `var`; 0: not under it. */
int tree_depth_under(const tree_site *site, const ir_expr *var);
const tree_site *tree_site_named(const tree_sites *all, const char *block);

bool tree_reads(const ir_block *block, const ir_buffer *buffer); /* or the same alias class */
bool tree_writes(const ir_block *block, const ir_buffer *buffer);
bool tree_same_storage(const ir_buffer *left, const ir_buffer *buffer);
bool tree_is_parameter(const ir_program *program, const ir_buffer *buffer);

#endif
