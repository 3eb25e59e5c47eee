/* autotune/api.c -- the public face of autotune/: include/tec/records.h over autotune/source.h. */
#include "tec/records.h"

#include "autotune/source.h"
#include "base/guard.h"
#include "compiler/options.h"

static void close_store(void *db)
{
    store_close(db);
}

TEC_GIVE tec_records *tec_records_open(tec_context *cx, const char *path)
{
    BASE_GUARD(cx, NULL);
    if (!path)
        return base_fail(cx, TEC_INVALID, base_where(cx), "expected the path of a record store, found NULL");
    base_held held;
    store *db = store_open(cx, path, &(store_options){.read_only = true, .must_exist = true});

    base_hold(cx, &held, close_store, db);
    tec_records *records = db ? tune_source(cx, db) : NULL;
    base_keep(&held);
    return records;
}

void tec_records_close(TEC_TAKE tec_records *records)
{
    if (records)
        store_close(records->data);
}

const char *tec_records_trace(const tec_records *records, const tec_def *def,
                              const tec_build_options *options)
{
    BASE_GUARD(records && def ? def->cx : NULL, NULL);
    const space_task *task = records && def ? space_task_new(def->cx, def, NULL) : NULL;
    comp_options o;

    if (!task || !comp_read_options(def->cx, options, NULL, &o))
        return NULL;
    return records->best(records, def->cx, task, o.target, NULL);
}
