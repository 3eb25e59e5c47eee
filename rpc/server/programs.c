/* rpc/server/programs.c -- programs of a session: instances, the values that they take and give, runs.
 *
 * A value belongs to the instance that it was made for, and goes with it. An example, the list [1.5]:
 *
 *     program (module)                      -> 4
 *     value (program 4, array 2)            -> 5          a tensor
 *     value (program 4, "Nil")              -> 6
 *     value (program 4, "Cons", parts 5 6)  -> 7
 *     execute (program 4, values 7)         -> 8          what the function gives
 *     look (value 8)                        -> "Cons", parts 9 10
 *     read (value 9)                        -> elements
 */
#include "rpc/server/inside.h"

#include "runtime/alloc.h"

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* !(x >= 0) is also true for a NaN, which came over the wire. */
static bool are_limits(const rpc_program *message, tec_error *err)
{
    return (message->max_steps >= 0 && message->max_depth >= 0 && message->max_bytes >= 0 &&
            message->deadline >= 0) ||
           rt_fail(err, TEC_INVALID, "expected limits of a program from 0 on, found %lld, %lld, %lld and %g",
                   (long long)message->max_steps, (long long)message->max_depth,
                   (long long)message->max_bytes, message->deadline);
}

/* The memory of an instance's values is bounded by that of the process; its time by the server. */
bool rpc_on_program(rpc_session *session, const rpc_program *message)
{
    tec_error err = {0};
    rpc_thing *thing = rpc_find_thing(session, message->module, RPC_THING_MODULE, &err);
    tec_program_options options = {.run = rpc_run_options(session, message->threads),
                                   .max_steps = message->max_steps,
                                   .max_depth = message->max_depth,
                                   .max_bytes = message->max_bytes
                                                    ? min_of(message->max_bytes, session->o.memory_bytes)
                                                    : session->o.memory_bytes,
                                   .deadline = message->deadline};
    options.run.profile = message->profile != 0;
    tec_program *program =
        thing && rpc_are_threads(message->threads, &err) && are_limits(message, &err)
            ? tec_program_new(thing->module, *message->function ? message->function : NULL, &options, &err)
            : NULL;
    int64_t handle =
        program ? rpc_add_thing(session, (rpc_thing){RPC_THING_PROGRAM, {.program = program}}, &err) : 0;

    return handle ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

/* Values of one instance, for its calls; NULL with an error. One place more than there are, since an
 * allocation of nothing would look like a failure. */
tec_object **rpc_find_values(rpc_session *session, int64_t program, const rpc_numbers *handles,
                             rt_arena *arena, tec_error *err)
{
    tec_object **values = rt_arena_alloc(arena, handles->n + 1, sizeof(tec_object *), err);

    for (int64_t i = 0; values && i < handles->n; i++) {
        const rpc_thing *thing = rpc_find_thing(session, handles->at[i], RPC_THING_VALUE, err);

        if (!thing)
            return NULL;
        if (thing->value.of != program) {
            rt_fail(err, TEC_INVALID, "value %lld is of program %lld, not of %lld", (long long)handles->at[i],
                    (long long)thing->value.of, (long long)program);
            return NULL;
        }
        values[i] = thing->value.object;
    }
    return values;
}

/* Takes the value over; 0 with an error. */
static int64_t keep_value(rpc_session *session, int64_t program, tec_object *object, tec_error *err)
{
    const rpc_thing thing = {RPC_THING_VALUE, {.value = {object, program}}};

    return object ? rpc_add_thing(session, thing, err) : 0;
}

/* A copy of an array as a tensor, or a tuple or data of values of the same instance. */
static tec_object *make_value(rpc_session *session, const rpc_value *message, rt_arena *arena, tec_error *err)
{
    const rpc_thing *thing = rpc_find_thing(session, message->program, RPC_THING_PROGRAM, err);
    tec_program *program = thing ? thing->program : NULL;

    if (!program)
        return NULL;
    if (message->array) {
        thing = rpc_find_thing(session, message->array, RPC_THING_ARRAY, err);
        return thing ? tec_object_tensor(program, tec_array_tensor(thing->array), err) : NULL;
    }
    tec_object **parts = rpc_find_values(session, message->program, &message->parts, arena, err);
    if (!parts)
        return NULL;
    return *message->constructor
               ? tec_object_data(program, message->constructor, parts, (int)message->parts.n, err)
               : tec_object_tuple(program, parts, (int)message->parts.n, err);
}

bool rpc_on_value(rpc_session *session, const rpc_value *message)
{
    rt_arena arena = {0};
    tec_error err = {0};
    int64_t handle = keep_value(session, message->program, make_value(session, message, &arena, &err), &err);

    rt_arena_free(&arena);
    return handle ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

/* Handles for the values, which are taken over; where one fails, all of them are given back. */
static bool keep_values(rpc_session *session, int64_t program, tec_object **values, int count,
                        int64_t *handles, tec_error *err)
{
    bool good = true;

    for (int i = 0; i < count; i++) {
        handles[i] = good ? keep_value(session, program, values[i], err) : (tec_object_free(values[i]), 0);
        good = good && handles[i];
    }
    for (int i = 0; i < count && !good; i++)
        if (handles[i])
            rpc_drop_thing(session, handles[i]);
    return good;
}

/* Runs the instance; its results become values of the session. */
static bool execute(rpc_session *session, const rpc_execute *message, rpc_executed *answer, rt_arena *arena,
                    tec_error *err)
{
    const rpc_thing *thing = rpc_find_thing(session, message->program, RPC_THING_PROGRAM, err);
    tec_program *program = thing ? thing->program : NULL;
    tec_object **in =
        program ? rpc_find_values(session, message->program, &message->values, arena, err) : NULL;
    int n = in ? tec_program_n_outputs(program) : 0;
    tec_object **out = in ? rt_arena_alloc(arena, n + 1, sizeof(tec_object *), err) : NULL;
    int64_t *handles = out ? rt_arena_alloc(arena, n + 1, sizeof *handles, err) : NULL;
    double begun = tec_clock();

    if (!handles || !tec_program_run(program, in, (int)message->values.n, out, n, err))
        return false;
    *answer = (rpc_executed){tec_clock() - begun, {handles, n}};
    return keep_values(session, message->program, out, n, handles, err);
}

bool rpc_on_execute(rpc_session *session, const rpc_execute *message)
{
    rt_arena arena = {0};
    tec_error err = {0};
    rpc_executed answer;
    bool sent = execute(session, message, &answer, &arena, &err)
                    ? rpc_answer_with(session, RPC_KIND_executed, &answer)
                    : rpc_answer_error(session, &err);

    rt_arena_free(&arena);
    return sent;
}

/* Parts are references of their own: they stay when the whole is given back. */
static bool look(rpc_session *session, int64_t handle, rpc_seen *answer, rt_arena *arena, tec_error *err)
{
    const rpc_thing *thing = rpc_find_thing(session, handle, RPC_THING_VALUE, err);

    if (!thing)
        return false;
    const tec_object *object = thing->value.object;
    int64_t of = thing->value.of;
    const char *constructor = tec_object_constructor(session->things[of - 1].program, object);
    bool tensor = tec_object_dltensor(object) != NULL;
    int n = tensor ? 0 : tec_object_n_parts(object);
    tec_object **parts = rt_arena_alloc(arena, n + 1, sizeof(tec_object *), err);
    int64_t *handles = rt_arena_alloc(arena, n + 1, sizeof *handles, err);

    if (!parts || !handles)
        return false;
    for (int i = 0; i < n; i++)
        parts[i] = tec_object_ref(tec_object_part(object, i));
    *answer = (rpc_seen){tensor, constructor ? constructor : "", {handles, n}};
    return keep_values(session, of, parts, n, handles, err);
}

bool rpc_on_look(rpc_session *session, const rpc_look *message)
{
    rt_arena arena = {0};
    tec_error err = {0};
    rpc_seen answer;
    bool sent = look(session, message->value, &answer, &arena, &err)
                    ? rpc_answer_with(session, RPC_KIND_seen, &answer)
                    : rpc_answer_error(session, &err);

    rt_arena_free(&arena);
    return sent;
}
