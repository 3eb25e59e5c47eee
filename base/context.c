/* context.c -- the context: its errors, its log, where its caller stands; and the facts about the library as
 * a whole.
 *
 * The first error wins: base_fail after another failure changes nothing, and the notes that follow it are
 * dropped too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"

const char *tec_status_text(tec_status status)
{
    static const char *const text[] = {
#define X(name, text) text,
        TEC_STATUS_LIST(X)
#undef X
    };

    return (unsigned)status < sizeof text / sizeof *text ? text[status] : "unknown status";
}

const char *tec_version(void)
{
    return TEC_VERSION;
}

tec_context *tec_context_new(void)
{
    tec_context *cx = calloc(1, sizeof *cx);

    if (cx)
        cx->limits = &cx->own_limits;
    return cx;
}

void base_free_child(void *cx)
{
    tec_context_free(cx);
}

/* A child shares the parent's limits and inherits log, place and settings, but not the error. */
tec_context *base_child(tec_context *parent)
{
    tec_context *cx = base_calloc(parent, 1, sizeof *cx);

    cx->parent = parent;
    cx->limits = parent->limits;
    base_hold(parent, &cx->as_held, base_free_child, cx);
    cx->where = parent->where;
    tec_context_set_log(cx, parent->log, parent->log_user, parent->log_level);
    cx->cuda = parent->cuda;
#ifdef TEC_DEBUG
    cx->plant = parent->plant;
#endif
    return cx;
}

void base_hand_up(tec_context *child, tec_context *to)
{
    base_keep(&child->as_held);
    base_hold(to, &child->as_held, base_free_child, child);
    child->parent = to;
}

void base_reset(tec_context *cx)
{
    tec_context_clear(cx);
    base_arena_reset(&cx->arena);
}

void tec_context_free(tec_context *cx)
{
    if (!cx)
        return;
    base_keep(&cx->as_held);
    while (cx->held)
        base_drop(cx->held);
    base_arena_free(&cx->arena);
    tec_context_clear(cx);
    free(cx);
}

tec_status tec_context_status(const tec_context *cx)
{
    return cx ? cx->status : TEC_NO_MEMORY;
}

const char *tec_context_error(const tec_context *cx)
{
    return cx ? cx->error : "no context: out of memory";
}

void tec_context_clear(tec_context *cx)
{
    if (!cx)
        return;
    if (cx->error != cx->in_place)
        free(cx->error);
    cx->error = NULL;
    cx->status = TEC_OK;
    cx->gave_up = false;
    cx->noting = false;
}

tec_context *tec_here(tec_context *cx, const char *file, int line)
{
    if (cx)
        cx->where = (base_loc){.file = file, .line = line};
    return cx;
}

base_loc base_where(const tec_context *cx)
{
    return cx->where;
}

void base_set_where(tec_context *cx, base_loc loc)
{
    cx->where = loc;
}

bool base_failed(const tec_context *cx)
{
    return cx->status != TEC_OK;
}

/* Memory of an error or a log's line; giving up where there is none. */
static char *allocate(tec_context *cx, size_t size)
{
    return base_calloc(cx, 1, size);
}

void base_adopt(tec_context *cx, const tec_context *from)
{
    cx->noting = !base_failed(cx) && base_failed(from);
    if (!cx->noting)
        return;
    char *text = allocate(cx, strlen(from->error) + 1);
    cx->error = strcpy(text, from->error);
    cx->status = from->status;
}

void base_fail_in_place(tec_context *cx, tec_status status, const char *fmt, va_list args)
{
    if (base_failed(cx))
        return;
    cx->status = status;
    cx->noting = false;
    cx->error = cx->in_place;
    strcpy(cx->in_place, ERROR_PREFIX);
    size_t n = strlen(cx->in_place);
    base_print(cx->in_place + n, sizeof cx->in_place - n, fmt, args);
}

/* A formatted text in memory of its own, which the caller frees. */
static char *format(tec_context *cx, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = base_print(NULL, 0, fmt, again);
    va_end(again);
    char *text = allocate(cx, (size_t)n + 1);
    base_print(text, (size_t)n + 1, fmt, args);
    return text;
}

/* Appends to the error text, on a line of its own. */
static void append_text(tec_context *cx, const char *added)
{
    size_t before = cx->error ? strlen(cx->error) : 0, n = strlen(added);
    char *text = allocate(cx, before + n + 2);

    if (before)
        memcpy(text, cx->error, before);
    if (before)
        text[before++] = '\n';
    memcpy(text + before, added, n + 1);
    if (cx->error != cx->in_place)
        free(cx->error);
    cx->error = text;
}

/* Appends "FILE:LINE:COLUMN: WORD: message" and the excerpt of the source to the error text, on lines of
 * their own. */
static void append(tec_context *cx, base_loc loc, const char *word, const char *fmt, va_list args)
{
    base_mark mark = base_arena_mark(cx);
    base_text t = {0};

    base_add_place(cx, &t, loc);
    base_addf(cx, &t, "%s: ", word);
    base_add(cx, &t, base_vformat(cx, fmt, args));
    base_add_excerpt(cx, &t, loc);
    append_text(cx, base_text_str(cx, &t));
    base_arena_release(cx, mark);
}

static void fail(tec_context *cx, tec_status status, base_loc loc, const char *fmt, va_list args)
{
    cx->noting = !base_failed(cx);
    if (!cx->noting)
        return;
    append(cx, loc, "error", fmt, args);
    cx->status = status == TEC_OK ? TEC_INTERNAL : status;
}

void *base_fail(tec_context *cx, tec_status status, base_loc loc, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(cx, status, loc, fmt, args);
    va_end(args);
    return NULL;
}

void *base_fail_whole(tec_context *cx, tec_status status, const char *text)
{
    cx->noting = !base_failed(cx);
    if (cx->noting) {
        append_text(cx, text);
        cx->status = status;
    }
    return NULL;
}

void base_note(tec_context *cx, base_loc loc, const char *fmt, ...)
{
    va_list args;

    if (!cx->noting)
        return;
    va_start(args, fmt);
    append(cx, loc, "note", fmt, args);
    va_end(args);
}

#ifdef TEC_DEBUG
/* The process ends here, so its own diagnostics are the only place left for the reason. */
void *base_bug(tec_context *cx, const char *file, int line, const char *fmt, ...)
{
    va_list args;

    (void)cx;
    fprintf(stderr, "%s:%d: internal error: ", file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
#else
void *base_bug(tec_context *cx, const char *file, int line, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(cx, TEC_INTERNAL, (base_loc){.file = file, .line = line}, fmt, args);
    va_end(args);
    return NULL;
}
#endif

void tec_context_set_cuda(tec_context *cx, const char *folder)
{
    if (cx)
        cx->cuda = folder;
}

const char *base_cuda(const tec_context *cx)
{
    return cx->cuda;
}

void tec_context_set_log(tec_context *cx, tec_log_fn *fn, void *user, int level)
{
    if (!cx)
        return;
    cx->log = fn;
    cx->log_user = user;
    cx->log_level = level;
}

int base_log_level(const tec_context *cx)
{
    return cx->log ? cx->log_level : 0;
}

void base_log(tec_context *cx, int level, const char *fmt, ...)
{
    va_list args;

    if (level > base_log_level(cx))
        return;
    base_held held;
    va_start(args, fmt);
    char *text = format(cx, fmt, args);
    va_end(args);
    base_hold(cx, &held, free, text);
    cx->log(cx->log_user, level, text);
    base_drop(&held);
}

void base_forward_log(tec_context *cx, int level, const char *text)
{
    if (level <= base_log_level(cx))
        cx->log(cx->log_user, level, text);
}
