#!/bin/bash
# fleet -- two daemons share the queue of a PostgreSQL database: 10 jobs are all done, no kernel is tuned by both at
# once, the jobs of a daemon that was killed are taken over when its lease is over, and a restart and a crash of the
# database in the middle lose nothing.
#
#   TEC=... TEC_BUILD_DIR=... [FLEET_JOBS=10] [FLEET_TRIALS=6] tests/tvmtune/fleet.sh
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
. tests/postgres.inc
tvmtune=$TEC_BUILD_DIR/tvmtune
jobs=${FLEET_JOBS:-10}
trials=${FLEET_TRIALS:-6}
dir=$(mktemp -d)
one= two=
trap 'kill -KILL $one $two 2>"$dir/err" || true; stop_postgres || true; rm -rf "$dir"' EXIT
limits=()
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    cat "$dir"/*.log
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "fleet: $*" >&2
    exit 1
}

wait_for() { # WHAT SQL: until its first row says t
    local what=$1
    for _ in $(seq 600); do
        [ "$(pg_sql "$2" 2>"$dir/err")" != t ] || return 0
        sleep 0.2
    done
    fail "$what does not come"
}

serve() { # NAME: in the background; its process is in $!
    "$tvmtune" serve --state "$dir/$1" --store "$pg_url" --jobs 2 --lease 3 --log info "${limits[@]}" 2>>"$dir/$1.log" &
}

ask() {
    timeout 60 "$tvmtune" "$@" >"$dir/out" 2>&1 || fail "'$*' fails"
}

# A log of who tunes which kernel, made by the database itself: each claim and its end with the daemon of the job.
watch_claims() {
    pg_sql "CREATE TABLE claims (at bigserial, key text, target text, job bigint, owner text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.claimed <> OLD.claimed THEN
          INSERT INTO claims (key, target, job, owner) SELECT NEW.key, NEW.target, NEW.claimed,
          COALESCE((SELECT owner FROM queue WHERE id = NEW.claimed), chr(32)); END IF; RETURN NEW; END';
        CREATE TRIGGER claims AFTER UPDATE ON queue_tasks FOR EACH ROW EXECUTE FUNCTION note()"
}

kernel() { # NUMBER: a definition of its own for each
    printf 'def k%s(A: f32[%d]) {\n  B[i] = A[i] * %d.0\n  return B\n}\n' "$1" $((64 + 32 * $1)) "$1"
}

start_postgres "$dir/pg"
serve one
one=$!
wait_for "the first daemon" "SELECT to_regclass('queue') IS NOT NULL"
serve two
two=$!
for name in one two; do
    for _ in $(seq 100); do [ -s "$dir/$name/port" ] && break || sleep 0.1; done
done
watch_claims
for i in $(seq "$jobs"); do # each job shares two kernels with its neighbour
    { kernel $i; kernel $((i + 1)); kernel $((i + 2)); } >"$dir/job$i.te"
    ask submit --state "$dir/$([ $((i % 2)) = 0 ] && echo one || echo two)" "$dir/job$i.te" --trials "$trials" --threads 1
done

# both daemons have jobs; then one of them dies with its jobs in hand
wait_for "work of both daemons" "SELECT COUNT(DISTINCT owner) = 2 FROM queue WHERE owner <> ''"
wait_for "a job of the first daemon" "SELECT COUNT(*) > 0 FROM queue WHERE state = 'running' AND owner = '$(cat "$dir/one/name")'"
kill -KILL $one
wait $one 2>"$dir/err" || true
left=$(pg_sql "SELECT string_agg(id::text, ',') FROM queue WHERE state = 'running' AND owner = '$(cat "$dir/one/name")'")
[ -n "$left" ] || fail "the daemon that was killed had no job"
restart_postgres fast
wait_for "the takeover of jobs $left" "SELECT bool_and(owner = '$(cat "$dir/two/name")') FROM queue WHERE id IN ($left)"
serve one
one=$!
restart_postgres immediate
wait_for "the end of all jobs" "SELECT bool_and(state IN ('done', 'failed')) FROM queue"

[ "$(pg_sql "SELECT COUNT(*) FROM queue WHERE state = 'done'")" = "$jobs" ] ||
    fail "not all are done: $(pg_sql "SELECT id, state, cause FROM queue WHERE state <> 'done'")"
both=$(pg_sql "SELECT COUNT(*) FROM claims c JOIN LATERAL (SELECT * FROM claims d WHERE d.key = c.key AND d.target = c.target
    AND d.at > c.at ORDER BY d.at LIMIT 1) n ON true WHERE c.job <> 0 AND n.job <> 0 AND n.job <> c.job AND c.owner <> n.owner
    AND c.job NOT IN ($left)")
[ "$both" = 0 ] || fail "a kernel was tuned by two daemons at once: $(pg_sql "SELECT * FROM claims ORDER BY at")"
doubled=$(pg_sql "SELECT COUNT(*) FROM (SELECT 1 FROM records GROUP BY workload, target, job, batch, trial, tuner
    HAVING COUNT(*) > 1) x")
[ "$doubled" = 0 ] || fail "$doubled trials are stored twice"
tuned=$(pg_sql "SELECT COUNT(*) FROM (SELECT workload FROM records WHERE tuner <> 'adopted' GROUP BY workload HAVING COUNT(DISTINCT job) > 1) x")
[ "$tuned" = 0 ] || fail "$tuned kernels were tuned by several jobs"
for i in $(seq "$jobs"); do
    ask fetch --state "$dir/two" "$i" -o "$dir/$i.tec"
done
ask list --state "$dir/two"
echo "fleet: $jobs jobs done by $(pg_sql "SELECT COUNT(DISTINCT owner) FROM claims WHERE owner <> ' '") daemons," \
    "$(pg_sql "SELECT COUNT(*) FROM records WHERE tuner <> 'adopted'") trials, jobs $left taken over, 2 restarts of the database"
