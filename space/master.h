/* space/master.h -- inside the room: templates that fit every definition, one for each kind of target, and
 * what they know of it.
 *
 *     const space_shape *shape = space_analyse(cx, tree, target);
 *     space_new(cx, shape->base, space_cpu_template, (void *)shape);
 *
 * The analysis takes the steps that every point shares (cheap stages are inlined; a tiled stage whose result
 * no one stage takes up gets a copy behind it) and says what each remaining block is:
 *
 *     prologue  read by one tiled stage alone: packed or padded operands
 *     tiled     a reduction that uses its operands many times, so that tiles pay: convolutions, matrix
 *                 products; on a GPU also one that reads windows: pools
 *     output    takes up the sums of a tiled stage, element by element;
 *                 the tiles of its loops are what the tiled stage computes at once
 *     nest      anything else: a nest of its own, or computed inside the nest of its reader
 *     fixed     scans, extern calls, what shares loops with others: left as it is
 */
#ifndef SPACE_MASTER_H
#define SPACE_MASTER_H

#include "space/knobs.h"
#include "space/look.h"

/* tasks: enough for the threads of any machine */
enum { SPACE_MAX_AXES = 8, SPACE_MAX_OPERANDS = 4, SPACE_TASKS = 64 };

typedef enum { SPACE_FIXED, SPACE_NEST, SPACE_PROLOGUE, SPACE_TILED, SPACE_OUTPUT } space_part;

/* A loop of a block's own. */
typedef struct {
    const char *name, *iter; /* iter: the variable of the block that it runs */
    int64_t extent;          /* 0: not constant */
    ir_iter_kind kind;
} space_loop;

typedef struct space_stage space_stage;

/* Where a nest is computed: in a nest of its own, in the outer loop of the nest of its reader, or in the loop
 * over the rows of that. */
typedef enum { SPACE_AT_ROOT, SPACE_IN_READER, SPACE_IN_ROW } space_place;

/* An axis of the output of a tiled stage; those of extent 1 are left out. */
typedef struct {
    const space_loop *loop;
    const char *iter; /* the variable of the sums that follows it last; NULL: none does alone */
    bool column;      /* its innermost part is a vector */
    bool row;         /* a register tile has several of its values */
    bool wide; /* a row whose values have vectors of their own: the column is no longer than one vector */
} space_axis;

/* Results that are chosen by their place along one axis (space/pieces.c). */
typedef struct {
    int axis;                    /* the number of its loop */
    const ir_expr *const *point; /* rising: where the choice changes; over symbols */
    int n;
    bool run; /* from the axis on, a piece goes through memory one by one: its loops may be one */
} space_pieces;
/* Chosen element by element; or in loops of their own, inside of the loops over rows or each in its own. */
typedef enum { SPACE_ONE_PIECE, SPACE_PIECES_INSIDE, SPACE_PIECES_APART } space_piece_choice;

/* A tiled stage with its surroundings. */
typedef struct {
    const space_stage *sums, *out;
    space_axis axis[SPACE_MAX_AXES]; /* in the order in which they start: others, the column, rows */
    int n_axes;
    const char *follows[SPACE_MAX_AXES]; /* variables of the sums that follow the column */
    int n_follows;
    /* the last of these repeats after so many elements of the column: a tile holds whole panels, or divides
     * one; 0: no */
    int64_t panel;
    /* an operand that lanes share is the same for so many neighbouring values of the column or the wide axis;
     * 0: for all */
    int64_t run;
    /* the variable of the sums that the lanes of a vector run over; NULL: no axis is fit for it */
    const char *lane;
    const char *row; /* the variable of the sums that follows the last row; NULL: there is no row */
    /* the variable of the sums by which that operand changes then; NULL: there is none */
    const char *group;
    bool uneven; /* some panels are shorter: those at the end of a group of channels */
    /* operands lie side by side along the last reduction loop: lanes may be partial sums */
    bool along_reduction;
    bool on_reduction; /* they start as these, since along the column operands lie far apart */
    const space_loop *reduce[SPACE_MAX_AXES]; /* of more than one step */
    int n_reduce;
    /* two steps of the reduction that an instruction adds up for all lanes (note `pairs`); none of `reduce`;
     * NULL: there is no such instruction */
    const space_loop *pair;
    const space_stage *producer[SPACE_MAX_OPERANDS]; /* prologues, in order of execution */
    bool in_passing[SPACE_MAX_OPERANDS];             /* it starts computed where it is read */
    int n_producers;
    /* buffers that might be copied so that a tile's part lies together */
    const char *operand[SPACE_MAX_OPERANDS];
    int n_operands;
    const ir_expr *load[SPACE_MAX_OPERANDS]; /* one of each buffer that the sums read */
    int n_loads;
    /* prologues start where they are read: each element is read a few times only. Loops over rows start
     * apart, for edges are cut from these */
    bool seldom;
    /* the parameter that passes through the core, as each element is read once (streamed_once) or for so many
     * rows as a call has; NULL: there is none (space/stream.c) */
    const ir_buffer *streamed;
    bool streamed_once;
    space_tile tile; /* where it starts */
    int registers;   /* of vectors, for sums and operands; 0: multiply-adds read operands from memory */
} space_tiled;

struct space_stage {
    const char *name;
    const ir_block *block;
    space_part part;
    const space_loop *loop; /* outermost first */
    int n_loops, n_spatial, n_reduce;
    double cycles; /* of all its work on one core, roughly; INFINITY where an extent is not constant */
    int lanes;     /* of its element in one vector of the target */
    /* has knobs; otherwise it takes what the start would be, because there are too many stages */
    bool open;
    bool conditional; /* of a prologue: it chooses by its indices, as padding does */
    bool flat;        /* one loop over all elements would do */
    bool columns;     /* of a reduction: neighbouring results read neighbouring elements */
    int rows;         /* of a reduction: so many last loops run along rows of what it reads */
    /* of a reduction of unknown length to one result: so many terms are work for a task; 0: it is none */
    int64_t part_terms;
    /* the axis along which something that it reads lies, where that is not the last; NULL */
    const space_loop *transposed;
    /* what lies along it, where a square of both axes can be turned in registers; NULL */
    const char *turned;
    const space_pieces *pieces; /* NULL: the results are one piece */
    int most_fused;             /* of its outer loops; 0: all (space/pieces.c) */
    /* the nest that all its readers are in, or may be in; NULL: there is no one nest */
    const space_stage *reader;
    const space_stage *readers[SPACE_MAX_AXES]; /* with a reader: all of them */
    int n_readers;
    bool row_by_row; /* all readers read of it the row that they compute, and nothing of other rows */
    space_place start_place;
    space_tiled *tiled; /* TILED */
};

typedef struct {
    const sched *base;
    space_stage *stage; /* blocks in order of execution */
    int n;
    int registers;
} space_shape;

/* What the analysis finds of a tiled stage whose results `out` takes up (space/sums.c). */
space_tiled *space_read_tiled(tec_context *cx, const space_shape *shape, const space_stage *stage,
                              const space_stage *out);
/* The loop along which something lies that is read across; NULL: there is none. */
const space_loop *space_find_transposed(tec_context *cx, const space_stage *stage);

const space_shape *space_analyse(tec_context *cx, const ir_program *tree, const target *machine);
const space_stage *space_stage_named(const space_shape *shape, const char *name);

tec_template space_cpu_template, space_gpu_template;

/* What a GPU gets where the start of its template's space is refused. */
sched *space_gpu_plain(tec_context *cx, const space_shape *shape);
/* A reduction with few results and many terms, in two launches; NULL: the definition is something else. */
sched *space_gpu_in_parts(tec_context *cx, const space_shape *shape);

/* ---- knobs of a stage, named STAGE.WHAT; a stage that is not open takes the start ---- */

int64_t space_pick(tec_knobs *knobs, const space_stage *stage, const char *what, const int64_t *value, int n,
                   int64_t start);
/* The place in the list of words. */
int space_pick_word(tec_knobs *knobs, const space_stage *stage, const char *what, const char *const *word,
                    int count, int start);
const int64_t *space_pick_split(tec_knobs *knobs, const space_stage *stage, const char *what,
                                const char *axis, int64_t extent, const tec_split_domain *domain);
const char *const *space_pick_order(tec_knobs *knobs, const space_stage *stage, const char *what,
                                    const char *const *name, int n);
/* What has the same effect at this point: an order by the groups of its n names, a value, any value. */
void space_group_order(tec_knobs *knobs, const space_stage *stage, const char *what, const int *group, int n);
void space_leave_alias(tec_knobs *knobs, const space_stage *stage, const char *what, int64_t value,
                       int64_t other);
void space_leave_idle(tec_knobs *knobs, const space_stage *stage, const char *what, bool idle);

/* ---- pieces of schedules; false where a step was refused ---- */

int64_t space_extent(const sched *schedule, const char *loop); /* 0: not constant */
/* the loop; of one, itself; NULL: refused */
const char *space_fuse(sched *schedule, const char *const *loop, int n);
/* The loops of a block inside the loop `outer` (NULL: all), spatial ones and reduction ones. */
int space_own_loops(const sched *schedule, const char *block, const char *outer, const char **spatial,
                    const char **reduce, int *n_reduce);
/* The last spatial loop of a spatial block inside `outer`, as vectors of at most `lanes`. */
bool space_vectorise_inside(sched *schedule, const char *block, const char *outer, int64_t lanes);

/* ---- results in pieces (space/pieces.c) ---- */

const space_pieces *space_find_pieces(const ir_facts *facts, const space_stage *stage);
/* How many outer loops may be fused where the results are chosen at a symbolic place of an axis; 0: all. */
int space_count_fusible(tec_context *cx, const space_stage *stage);

/* ---- parallel loops (space/work.c) ---- */

double space_cycles(tec_context *cx, const space_shape *shape, const space_stage *stage);
bool space_pays_in_parallel(const space_stage *stage);
/* Of one of several parts, each with a fork of its own. */
bool space_is_worth_forks(double cycles);
/* Into how many pieces each of so many tasks is to be cut; 1 where there are enough, or where pieces would be
 * too small. */
int64_t space_more_tasks(const space_stage *stage, int64_t tasks);
/* How many terms of a reduction of unknown length one task takes: two tasks are worth a fork. */
int64_t space_terms_of_task(tec_context *cx, const space_stage *stage);

/* ---- stages on a CPU ---- */

/* Sets tiled->streamed, of a stage whose loads are listed. */
void space_find_streamed(tec_context *cx, const space_shape *shape, space_tiled *tiled);
/* Knob `ahead`: how many steps early each step of the last reduction loop asks for the streamed operand; 0:
 * it does not. step_bytes: what a step reads of the operand where the tile starts. */
int64_t space_pick_ahead(tec_knobs *knobs, const space_stage *stage, int64_t step_bytes);
/* The parallel loop over panels of the streamed operand runs backwards in every other call. */
bool space_alternate(sched *schedule, const space_tiled *tiled, const char *loop);

/* Whether a stage that goes into the tiled one, a prologue, writes the buffer: such stages are computed where
 * they are read. */
bool space_is_produced(const space_tiled *tiled, const ir_buffer *buffer);

typedef struct space_tiled_choice space_tiled_choice;
const space_tiled_choice *space_declare_tiled(tec_knobs *knobs, const space_shape *shape,
                                              const space_stage *stage);
bool space_apply_tiled(sched *schedule, const space_stage *stage, const space_tiled_choice *choice);

typedef struct {
    int64_t lanes, unroll, parallel, tile;
    int64_t factor; /* so many partial results; 0: none */
    int64_t part;   /* partial results of so many terms; 0: none */
    int how;        /* of a reduction: lanes on columns, on rows, on neither */
    int place;      /* a space_place */
    space_piece_choice pieces;
    bool by_rows; /* stages are computed in its rows, so that no parallel loop goes across these */
} space_nest_choice;
space_nest_choice space_declare_nest(tec_knobs *knobs, const space_stage *stage);
/* Results in pieces: how they are cut apart, and the stage with the choice that they are. */
space_piece_choice space_pick_pieces(tec_knobs *knobs, const space_stage *stage);
bool space_apply_pieces(sched *schedule, const space_stage *stage, const space_nest_choice *choice);
/* *outer (may be NULL) becomes the loop inside of which other stages may be computed; NULL: there is none. */
bool space_apply_nest(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                      const char **outer);
/* The last loop in vectors, several at once; *left stays outside, NULL where nothing does. */
bool space_cut_vectors(sched *schedule, const char *loop, int64_t lanes, int64_t unroll, const char **left);
/* Fuses the first n loops into one parallel loop, *outer (may be NULL); a loop of one iteration stays
 * serial. */
bool space_run_outer(sched *schedule, const char *const *loop, int n, const char **outer);
/* The loop over the rows of a stage: that of its last but one spatial variable; NULL: it has no rows. */
const char *space_row_loop(const sched *schedule, const space_stage *stage);
/* Moves the stage into the loop, and makes vectors of it there. */
bool space_apply_inside(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                        const char *outer);

#endif
