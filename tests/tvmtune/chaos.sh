#!/bin/bash
# chaos -- jobs of mixed size while the daemon is killed again and again, each time while trials run: every job ends done, no trial
# is stored twice, and the files of definitions that are submitted again, with one kernel changed, issue trials for that kernel only.
#
#   TEC=... TEC_BUILD_DIR=... [CHAOS_JOBS=20] [CHAOS_TRIALS=200] [CHAOS_KILLS=50] tests/tvmtune/chaos.sh
#
# Without these numbers a slice: 2 jobs, 8 trials, 2 kills.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
jobs=${CHAOS_JOBS:-2}
trials=${CHAOS_TRIALS:-8}
kills=${CHAOS_KILLS:-2}
seed=${CHAOS_SEED:-$$}
RANDOM=$seed
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT
limits=()
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    [ ! -e "$dir/log" ] || tail -n 40 "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "chaos: $* (seed $seed)" >&2
    exit 1
}

start() {
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --jobs 2 --log info "${limits[@]}" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 200); do
        [ ! -s "$state/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

sql() {
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1], timeout=60).execute(sys.argv[2]): print(*row)' "$state/tune.db" "$1"
}

ask() {
    timeout 60 "$tvmtune" "$@" >"$dir/out" 2>&1 || fail "'$*' fails"
}

# A product of matrices whose size is the kernel's number: small ones and larger ones.
kernel() { # NAME NUMBER
    printf 'def %s(A: f32[%d, %d], B: f32[%d, %d]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n' \
        "$1" $((16 + 8 * ($2 % 7))) $((8 + $2)) $((8 + $2)) $((16 + 4 * ($2 % 5)))
}

trials_now() {
    sql "SELECT COUNT(*) FROM records WHERE tuner <> 'adopted'"
}

open_jobs() {
    sql "SELECT COUNT(*) FROM queue WHERE state NOT IN ('done', 'failed')"
}

start
for i in $(seq "$jobs"); do # 1 to 3 kernels each; every third job shares one with the job before
    : >"$dir/job$i.te"
    for k in $(seq 1 $((1 + i % 3))); do kernel "k$k" $((10 * i + k)) >>"$dir/job$i.te"; done
    [ $((i % 3)) != 0 ] || kernel shared $((10 * (i - 1) + 1)) >>"$dir/job$i.te"
    ask submit --state "$state" "$dir/job$i.te" --trials "$trials" --threads 1 --seed "$i"
done

killed=0
while [ $killed -lt "$kills" ] && [ "$(open_jobs)" != 0 ]; do
    before=$(trials_now)
    for _ in $(seq 600); do
        [ "$(trials_now)" = "$before" ] && [ "$(open_jobs)" != 0 ] || break
        sleep 0.1
    done
    [ "$(open_jobs)" != 0 ] || break
    sleep "0.$((RANDOM % 10))"
    kill -KILL $daemon 2>"$dir/err"
    wait $daemon 2>"$dir/err" || true
    killed=$((killed + 1))
    start
done
for i in $(seq "$jobs"); do
    timeout 3000 "$tvmtune" watch --state "$state" "$i" >"$dir/out" 2>&1 || fail "job $i does not end as done"
done
[ $killed = "$kills" ] || [ -z "${CHAOS_KILLS:-}" ] || fail "the jobs were over after $killed kills"
[ $killed -gt 0 ] || fail "nothing was killed"

twice=$(sql "SELECT COUNT(*) FROM (SELECT 1 FROM records GROUP BY job, workload, target, tuner, batch, trial HAVING COUNT(*) > 1)")
[ "$twice" = 0 ] || fail "$twice trials are stored twice"
[ "$(sql "SELECT COUNT(*) FROM records")" = "$(sql "SELECT COUNT(DISTINCT hash) FROM records")" ] || fail "a record is there twice"
shared=$(sql "SELECT COUNT(*) FROM (SELECT workload FROM records WHERE tuner <> 'adopted' GROUP BY workload HAVING COUNT(DISTINCT job) > 1)")
[ "$shared" = 0 ] || fail "$shared kernels were tuned by several jobs"
ask doctor --state "$state"
"$TEC" records check --no-traces "$state/tune.db" >"$dir/out" 2>&1 || fail "the store is damaged"

# one kernel of the first job changed
all=$(trials_now)
kernel k1 11 >"$dir/changed.te"
kernel k2 999 >>"$dir/changed.te"
ask submit --state "$state" "$dir/changed.te" --trials "$trials" --threads 1
timeout 3000 "$tvmtune" watch --state "$state" $((jobs + 1)) >"$dir/out" 2>&1 || fail "the changed file does not end as done"
touched=$(sql "SELECT COUNT(DISTINCT workload) FROM records WHERE tuner <> 'adopted' AND id > (SELECT MAX(id) FROM (SELECT id FROM records
    WHERE tuner <> 'adopted' ORDER BY id LIMIT $all))")
[ "$touched" = 1 ] || fail "of a file with one changed kernel $touched kernels were tuned"
echo "chaos: $jobs jobs done, $killed kills, $all trials, none stored twice; one changed kernel: $(($(trials_now) - all)) trials for it alone"
