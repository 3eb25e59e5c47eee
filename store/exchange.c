/* store/exchange.c -- export and import of JSON lines, merging of two stores.
 *
 * An import that skips bad lines commits batches as it goes; one that refuses them is a single transaction.
 */
#include <errno.h>
#include <string.h>

#include "store/sql.h"

enum { BATCH = 500 };

/* ---- export ---- */

static bool export_record(tec_context *cx, tec_context *own, const store_record *record, FILE *to)
{
    const char *line = store_json(own, record);

    if (!line) {
        base_adopt(cx, own);
        base_note(cx, (base_loc){0}, "in record %lld", (long long)record->id);
        return false;
    }
    if (fputs(line, to) >= 0 && fputc('\n', to) != EOF)
        return true;
    return base_fail(cx, TEC_IO, (base_loc){0}, "cannot write the records: %s", strerror(errno));
}

/* One line of JSON per record. The number written, -1 after an error. */
int64_t store_export(tec_context *cx, store *db, const store_query *query, FILE *to)
{
    store_cursor *cursor = store_find(cx, db, query);
    tec_context *own = base_child(cx);
    int64_t n = 0;
    bool ok = true;

    for (store_record r; ok && store_next(cx, cursor, &r); n += ok) {
        ok = export_record(cx, own, &r, to);
        base_reset(own);
    }
    tec_context_free(own);
    ok = store_end(cursor) && ok;
    if (ok && fflush(to) != 0)
        ok = base_fail(cx, TEC_IO, (base_loc){0}, "cannot write the records: %s", strerror(errno));
    return ok ? n : -1;
}

/* ---- import ---- */

typedef struct {
    tec_context *cx, *line_cx; /* the second: of the batch, with the errors of its lines */
    tec_context *text_cx;      /* of `line` alone */
    store *s;
    FILE *from;
    const store_import_options *o;
    store_imported *out;
    char *line;
    size_t size, cap;
    store_record batch[BATCH];
    int n;
} importer;

/* Lines are as long as the caller keeps them, up to STORE_MAX_LINE; the buffer doubles on the way there. */
static bool keep_byte(importer *im, int byte)
{
    if (im->size == im->cap) {
        char *line = base_alloc(im->text_cx, im->cap ? 2 * im->cap : 4096);

        if (im->size)
            memcpy(line, im->line, im->size);
        im->cap = im->cap ? 2 * im->cap : 4096;
        im->line = line;
    }
    im->line[im->size++] = (char)byte;
    return true;
}

/* The next line without its end; of one that is too long only so much that it is known to be. False at the
 * end. */
static bool read_line(importer *im)
{
    int byte;

    im->size = 0;
    while ((byte = getc_unlocked(im->from)) != EOF && byte != '\n')
        if (im->size <= STORE_MAX_LINE)
            keep_byte(im, byte);
    if (im->size && im->line[im->size - 1] == '\r')
        im->size--;
    return byte != EOF || im->size;
}

/* What was wrong, without the "error: " that the context puts before it. */
static const char *reason(const tec_context *cx)
{
    const char *text = tec_context_error(cx), *colon = strstr(text, "error: ");

    return colon == text ? text + strlen("error: ") : text;
}

/* Counted and told; with `refuse` the first one ends the import, and the transaction around it is rolled
 * back. */
static bool bad_line(importer *im)
{
    im->out->bad++;
    if (im->o->bad_line)
        im->o->bad_line(im->o->user, im->out->lines, reason(im->line_cx));
    if (im->o->refuse)
        return base_fail(
            im->cx, TEC_INVALID,
            (base_loc){.file = im->o->name ? im->o->name : "records", .line = (int)im->out->lines},
            "%s; nothing was imported", reason(im->line_cx));
    tec_context_clear(im->line_cx);
    return true;
}

/* With `refuse` all batches belong to one transaction of the caller, else each is one of its own. */
static bool flush_batch(importer *im)
{
    store_added added = {0};
    bool ok = im->o->refuse ? store_insert(im->cx, im->s, im->batch, im->n, &added)
                            : store_add(im->cx, im->s, im->batch, im->n, NULL, &added);

    im->out->added += ok ? added.added : 0;
    im->out->duplicates += ok ? added.duplicates : 0;
    im->n = 0;
    base_reset(im->line_cx);
    return ok;
}

static bool is_blank(const importer *im)
{
    for (size_t i = 0; i < im->size; i++)
        if (!strchr(" \t", im->line[i]))
            return false;
    return true;
}

/* Large records must not wait for hundreds more of their kind. */
static bool is_full(const importer *im)
{
    return im->n == BATCH || base_used(im->line_cx) > STORE_MAX_LINE;
}

/* Reads lines into batches and stores them; a bad line ends the import or is skipped, as the options say. */
static bool import_lines(importer *im)
{
    while (read_line(im)) {
        im->out->lines++;
        if (is_blank(im))
            continue;
        const store_record *record = store_json_parse(im->line_cx, im->line, im->size);
        if (!record && !bad_line(im))
            return false;
        if (record)
            im->batch[im->n++] = *record;
        if (is_full(im) && !flush_batch(im))
            return false;
    }
    if (ferror(im->from))
        return base_fail(im->cx, TEC_IO, (base_loc){.file = im->o->name}, "cannot read the records: %s",
                         strerror(errno));
    return im->n == 0 || flush_batch(im);
}

/* With `refuse` all lines are stored or none. */
bool store_import(tec_context *cx, store *db, FILE *from, const store_import_options *options,
                  store_imported *out)
{
    store_import_options none = {0};
    importer *im = base_new(cx, importer);

    *out = (store_imported){0};
    *im = (importer){.cx = cx, .s = db, .from = from, .o = options ? options : &none, .out = out};
    if (!store_begin(cx, db) || (!im->o->refuse && !store_end_write(cx, db, true)))
        return false;
    im->line_cx = base_child(cx);
    im->text_cx = base_child(cx);
    bool ok = import_lines(im);
    if (im->o->refuse)
        ok = store_end_write(cx, db, ok);
    if (!ok && im->o->refuse)
        out->added = out->duplicates = 0;
    tec_context_free(im->text_cx);
    tec_context_free(im->line_cx);
    return ok;
}

/* ---- merge ---- */

static bool is_same(tec_context *cx, store *left, store *right)
{
    return left->engine == right->engine && left->engine->same(cx, left, right);
}

/* Up to BATCH records of the cursor, kept in `own`; their number. */
static int read_batch(tec_context *cx, tec_context *own, store_cursor *cursor, store_record *batch)
{
    int n = 0;

    while (n < BATCH && base_used(own) < STORE_MAX_LINE && store_next(cx, cursor, &batch[n])) {
        batch[n] = *store_keep(own, &batch[n]);
        n++;
    }
    return n;
}

/* Adds records in batches, so that memory does not grow with the store. */
static bool merge_records(tec_context *cx, store *db, store *from, store_added *total)
{
    store_cursor *cursor = store_find(cx, from, NULL);
    tec_context *own = base_child(cx);
    store_record *batch = base_array(cx, store_record, BATCH);
    bool ok = true;

    for (int n; ok && (n = read_batch(cx, own, cursor, batch)) > 0; base_reset(own)) {
        store_added added;

        ok = store_add(cx, db, batch, n, NULL, &added);
        total->added += added.added;
        total->duplicates += added.duplicates;
    }
    tec_context_free(own);
    return store_end(cursor) && ok;
}

/* Of two jobs of one name, that which moved last. */
static bool merge_job(tec_context *cx, store *db, store *from, const char *name)
{
    const store_job *theirs = store_get_job(cx, from, name), *ours = store_get_job(cx, db, name);

    if (!theirs || base_failed(cx) || (ours && ours->updated >= theirs->updated))
        return !base_failed(cx);
    return store_begin(cx, db) && store_end_write(cx, db, store_write_job(cx, db, theirs));
}

static bool merge_jobs(tec_context *cx, store *db, store *from)
{
    int n;
    const store_job *const *jobs = store_jobs(cx, from, &n);

    for (int i = 0; i < n; i++)
        if (!merge_job(cx, db, from, jobs[i]->name))
            return false;
    return jobs;
}

/* The newer of both models stays. */
static bool merge_model(tec_context *cx, store *db, store *from, const store_model *model)
{
    const store_model *theirs = store_get_model(cx, from, model->target, model->name, model->version);
    const store_model *ours =
        theirs ? store_get_model(cx, db, model->target, model->name, model->version) : NULL;

    if (!theirs || base_failed(cx))
        return !base_failed(cx);
    return (ours && ours->time >= theirs->time) || store_put_model(cx, db, theirs);
}

static bool merge_models(tec_context *cx, store *db, store *from)
{
    int n;
    const store_model *const *models = store_models(cx, from, &n);

    for (int i = 0; i < n; i++)
        if (!merge_model(cx, db, from, models[i]))
            return false;
    return models;
}

/* Adds records, jobs and models of `from`; what both stores have stays as it is here. */
bool store_merge(tec_context *cx, store *db, store *from, store_added *added)
{
    store_added total = {0};
    tec_context *own = base_child(cx);
    bool ok = store_usable(own, db) && store_usable(own, from);

    if (ok && is_same(own, db, from))
        ok = base_fail(own, TEC_INVALID, (base_loc){.file = db->path},
                       "cannot merge a record store into itself");
    ok = ok && merge_records(own, db, from, &total) && merge_jobs(own, db, from) &&
         merge_models(own, db, from);
    if (!ok)
        base_adopt(cx, own);
    tec_context_free(own);
    if (added)
        *added = total;
    return ok;
}
