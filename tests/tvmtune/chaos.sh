#!/bin/bash
# chaos -- jobs of mixed size over the cores of this machine and the devices of a pool, while the daemon, the servers and the
# tracker are killed again and again, each time while trials run: every job ends done, no trial is stored twice, and a file that
# is submitted again with one kernel changed issues trials for that kernel only.
#
#   TEC=... TEC_BUILD_DIR=... [CHAOS_JOBS=20] [CHAOS_TRIALS=200] [CHAOS_KILLS=50] [CHAOS_CALM=4] [CHAOS_MODEL=1] tests/tvmtune/chaos.sh
#
# Without these numbers a slice: 3 jobs, 8 trials, 3 kills. CHAOS_MODEL: ResNet-18 is one more job, and then ResNet-18 with another
# last layer. CHAOS_CALM: so many jobs are tuned twice more without kills, with the same seeds and as many trials; the modules run in
# turns with those of the jobs, and the two without kills with each other: what differs there is the noise of tuning.
#
# Trials that ran more than once are counted, and compared with the logs of the servers and of this machine (executions.py).
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
jobs=${CHAOS_JOBS:-3}
trials=${CHAOS_TRIALS:-8}
kills=${CHAOS_KILLS:-3}
seed=${CHAOS_SEED:-$$}
RANDOM=$seed
dir=$(mktemp -d)
state=$dir/state
daemon=
. tests/tvmtune/pool.inc
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; pool_end; rm -rf "$dir"' EXIT
limits=()
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)
servers=(s1 s2 s3 s4)

fail() {
    [ ! -e "$dir/log" ] || tail -n 40 "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "chaos: $* (seed $seed)" >&2
    exit 1
}

start() {
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --jobs 3 --log info --tracker "$tracker" --key-file "$dir/pool.keys" --devices 2 --tolerance 900 \
        --run-log "$dir/runs.all" \
        "${limits[@]}" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 400); do
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

is_done() { # JOB: waits for its end
    timeout 3000 "$tvmtune" watch --state "$state" "$1" >"$dir/out" 2>&1 && return
    # the daemon was killed while the client watched
    for _ in $(seq 300); do
        case $(sql "SELECT state, substr(cause, 1, 11) FROM queue WHERE id = $1") in
        "paused waiting for"* | running* | queued* | interrupted*) sleep 1 ;;
        done*) return ;;
        *) break ;;
        esac
    done
    fail "job $1 does not end as done: $(sql "SELECT state, cause FROM queue WHERE id = $1")"
}

# A product of matrices whose size is the kernel's number: small ones and larger ones.
kernel() { # NAME NUMBER
    printf 'def %s(A: f32[%d, %d], B: f32[%d, %d]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n' \
        "$1" $((16 + 8 * ($2 % 7))) $((8 + $2)) $((8 + $2)) $((16 + 4 * ($2 % 5)))
}

# Where the trials of the job run: every second one on the devices of the pool.
where() { # NUMBER: options of submit
    [ $(($1 % 2)) = 0 ] || echo --device-class=board
}

trials_now() {
    sql "SELECT COUNT(*) FROM records WHERE tuner <> 'adopted'"
}

open_jobs() {
    sql "SELECT COUNT(*) FROM queue WHERE state NOT IN ('done', 'failed')"
}

# Whether a program of the daemon is tuning: the other stages of a job run no trials.
tunes() {
    pgrep -P $daemon -f -- ' --trials=' >"$dir/err"
}

declare -A killed=([daemon]=0 [server]=0 [tracker]=0)
hits=0 # servers that were killed in a trial: their last word is that it begins
all_kills() {
    echo $((killed[daemon] + killed[server] + killed[tracker]))
}

in_trial() { # SERVER: by the last line of its log; two hashes are a comparison and no trial
    tail -n 1 "$dir/$1.server" | grep -qE ": measures '[0-9a-f]+'$"
}

# A server in a trial, or any where none is in one within two seconds.
busy_server() {
    local name
    for _ in $(seq 40); do
        for name in $(shuf -e "${servers[@]}" --random-source=<(yes $RANDOM)); do
            ! in_trial "$name" || { echo "$name"; return; }
        done
        sleep 0.05
    done
    echo "${servers[RANDOM % 4]}"
}

kill_one() {
    local server
    case $((RANDOM % 10)) in
    [0-3])
        kill -KILL $daemon 2>"$dir/err"
        wait $daemon 2>"$dir/err" || true
        killed[daemon]=$((killed[daemon] + 1))
        start
        ;;
    [4-7])
        server=$(busy_server)
        pool_kill "$server"
        ! in_trial "$server" || hits=$((hits + 1))
        killed[server]=$((killed[server] + 1))
        sleep "0.$((RANDOM % 10))"
        pool_server "$server"
        ;;
    *)
        pool_kill tracker
        killed[tracker]=$((killed[tracker] + 1))
        sleep "0.$((RANDOM % 10))"
        pool_tracker
        ;;
    esac
}

pool_keys
pool_tracker
for server in "${servers[@]}"; do pool_server "$server"; done
start
for i in $(seq "$jobs"); do # 1 to 3 kernels each; every third job shares one with the job before
    : >"$dir/job$i.te"
    for k in $(seq 1 $((1 + i % 3))); do kernel "k$k" $((10 * i + k)) >>"$dir/job$i.te"; done
    [ $((i % 3)) != 0 ] || kernel shared $((10 * (i - 2) + 1)) >>"$dir/job$i.te"
    ask submit --state "$state" "$dir/job$i.te" --trials $((trials + trials * (i % 3) / 10)) --threads 1 --seed "$i" $(where $i)
done
if [ -n "${CHAOS_MODEL:-}" ]; then
    "$TEC_BUILD_DIR/bench/write_resnet18" "$dir"
    jobs=$((jobs + 1))
    ask submit --state "$state" "$dir/resnet18/model.onnx" --trials "$trials" --threads 1
fi

before=0
while [ "$(all_kills)" -lt "$kills" ] && [ "$(open_jobs)" != 0 ]; do
    for _ in $(seq 1200); do
        [ "$(trials_now)" = "$before" ] && [ "$(open_jobs)" != 0 ] || break
        sleep 0.1
    done
    sleep "0.$((RANDOM % 10))"
    tunes || continue
    before=$(trials_now)
    kill_one
done
for i in $(seq "$jobs"); do is_done "$i"; done
[ "$(all_kills)" = "$kills" ] || [ -z "${CHAOS_KILLS:-}" ] || fail "the jobs were over after $(all_kills) kills"
[ "$(all_kills)" -gt 0 ] || fail "nothing was killed"

# the audit: one row for each trial of a tuning, nothing twice; a kernel of a target was tuned by one job
twice=$(sql "SELECT COUNT(*) FROM (SELECT 1 FROM records WHERE tuner <> 'adopted' GROUP BY job, trial HAVING COUNT(*) > 1)")
[ "$twice" = 0 ] || fail "$twice trials are stored twice"
[ "$(sql "SELECT COUNT(*) FROM records")" = "$(sql "SELECT COUNT(DISTINCT hash) FROM records")" ] || fail "a record is there twice"
shared=$(sql "SELECT COUNT(*) FROM (SELECT 1 FROM records WHERE tuner <> 'adopted' GROUP BY workload, target HAVING COUNT(DISTINCT job) > 1)")
[ "$shared" = 0 ] || fail "$shared kernels were tuned by several jobs"
far=$(sql "SELECT COUNT(*) FROM records r JOIN devices d ON d.id = r.device WHERE tuner <> 'adopted' AND d.name LIKE 's_/cpu:0'")
[ "$far" -gt 0 ] || fail "no trial was measured by a device of the pool"
[ "$far" -lt "$(trials_now)" ] || fail "no trial was measured by this machine"
ask doctor --state "$state" --key-file "$dir/pool.keys" --device-class board
"$TEC" records check --no-traces "$state/tune.db" >"$dir/out" 2>&1 || fail "the store is damaged"
all=$(trials_now)

# one kernel of the first job changed: what was tuned since
executions_of() { # STATE: the numbers of executions.py, of the pool and of this machine
    local name
    for name in "${servers[@]}"; do
        cat "$dir/$name.lives" "$dir/$name.server" 2>"$dir/err" >"$dir/$name.all" || true
    done
    tests/tvmtune/executions.py "$1/tune.db" "$dir"/s?.all "$dir/runs.all"
}
tuned_since() { # ID: kernels, trials
    sql "SELECT COUNT(DISTINCT workload), COUNT(*) FROM records WHERE tuner <> 'adopted' AND id > $1"
}
last=$(sql "SELECT MAX(id) FROM records")
kernel k1 11 >"$dir/changed.te"
kernel k2 999 >>"$dir/changed.te"
jobs=$((jobs + 1))
ask submit --state "$state" "$dir/changed.te" --trials "$trials" --threads 1 $(where 1)
is_done $jobs
changed=$(tuned_since "$last")
[ "${changed% *}" = 1 ] || fail "of a file with one changed kernel ${changed% *} kernels were tuned"
if [ -n "${CHAOS_MODEL:-}" ]; then
    "$TEC_BUILD_DIR/bench/write_resnet18" "$dir" 500
    last=$(sql "SELECT MAX(id) FROM records")
    jobs=$((jobs + 1))
    ask submit --state "$state" "$dir/resnet18/model.onnx" --trials "$trials" --threads 1
    is_done $jobs
    echo "chaos: ResNet-18 with another last layer: kernels and trials since then: $(tuned_since "$last")," \
        "$(sql "SELECT DISTINCT w.summary FROM records r JOIN workloads w ON w.id = r.workload WHERE r.id > $last AND tuner <> 'adopted'")"
    last=$(tuned_since "$last")
    [ "${last% *}" = 1 ] || fail "of a model with one changed layer ${last% *} kernels were tuned"
fi

echo "chaos: $jobs jobs done, $(all_kills) kills (daemon ${killed[daemon]}, servers ${killed[server]}: $hits of them in a trial, tracker ${killed[tracker]})," \
    "$all trials, $far of them by devices of the pool, none stored twice; one changed kernel: ${changed#* } trials for it alone"

# every trial that is stored is in a log; what ran again was lost by a kill, or measured again
count_executions() { # STATE WHERE: sets the numbers of this machine, or of the pool
    read -r executions stored repeated unstored missing pairs <<<"$(executions_of "$1" | sed -n "$([ "$2" = pool ] && echo 1 || echo 2)p")"
    echo "chaos: in the logs of the $2 $executions executions of $stored stored trials: $repeated repeated, $unstored of trials that are" \
        "not stored; $missing stored trials in no log; $pairs comparisons of two"
    [ "$missing" = 0 ] || fail "$missing trials are stored that are in no log"
    [ "$executions" = $((stored + repeated + unstored)) ] || fail "the executions do not add up"
}
count_executions "$state" machine
[ "$stored" -gt 0 ] || fail "the logs are compared with no trial of this machine"
count_executions "$state" pool
[ "$((repeated + unstored))" -ge "$hits" ] || fail "$hits servers were killed in a trial, and fewer trials ran again"
[ "$stored" -ge "$far" ] || fail "the logs are compared with $stored trials, and $far were measured by the pool"

# the same jobs without kills, twice: are the schedules that were found as good?
[ -n "${CHAOS_CALM:-}" ] || exit 0
trials_of() { # JOB: trials of its file in the store
    sql "SELECT COUNT(*) FROM records r JOIN jobs j ON j.name = r.job WHERE tuner <> 'adopted' AND j.arguments LIKE '%/$1/input.te'"
}
tried=()
for i in $(seq "$CHAOS_CALM"); do
    ask fetch --state "$state" "$i" -o "$dir/killed$i.tec"
    tried[i]=$(trials_of "$i")
done
for run in calm again; do
    kill -TERM $daemon
    wait $daemon || true
    state=$dir/$run
    start
    for i in $(seq "$CHAOS_CALM"); do
        ask submit --state "$state" "$dir/job$i.te" --trials $((trials + trials * (i % 3) / 10)) --threads 1 --seed "$i" $(where $i)
        is_done "$i"
        ask fetch --state "$state" "$i" -o "$dir/$run$i.tec"
        tried[i]="${tried[i]}, $(trials_of "$i")"
    done
    echo "chaos: without kills:"
    count_executions "$state" machine
    count_executions "$state" pool
done

# ratio FIRST SECOND: time of the first module / time of the second one, measured twice, in both orders
ratio() {
    "$TEC" compare "$1" "$2" --threads 1 --duration 3 --json >"$dir/first" && "$TEC" compare "$2" "$1" --threads 1 --duration 3 --json \
        >"$dir/second" || fail "compare"
    python3 -c 'import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
print("%.3f and %.3f" % (a["first_ms"] / a["second_ms"], b["second_ms"] / b["first_ms"]))' "$dir/first" "$dir/second"
}
for i in $(seq "$CHAOS_CALM"); do
    echo "chaos: job $i, trials with kills and twice without: ${tried[i]}; time with kills / without $(ratio "$dir/killed$i.tec" "$dir/calm$i.tec")," \
        "without / without $(ratio "$dir/again$i.tec" "$dir/calm$i.tec")"
done
