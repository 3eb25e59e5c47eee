#!/bin/bash
# life -- jobs through the daemon: submitted, tuned, compiled, fetched and run; a daemon that is killed in the middle of a job loses
# nothing and measures nothing twice; pause, resume, cancel and rm; a hostile file fails its own job alone.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT
limits=()
# A sanitizer's shadow is memory that the process allocates.
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "life: $*" >&2
    exit 1
}

start() { # OPTIONS: the daemon, until it can be asked
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --run-log "$dir/runs" "${limits[@]}" "$@" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -s "$state/port" ] || return 0
        kill -0 $daemon 2>"$dir/err" || fail "the daemon ended"
        sleep 0.1
    done
    fail "the daemon does not answer"
}

finish() { # SIGNAL
    kill -"$1" $daemon
    wait $daemon 2>"$dir/err" || true
    daemon=
}

# expect STATUS WORDS COMMAND...: tvmtune COMMAND ends with the status, and its output has WORDS.
expect() {
    local status=$1 words=$2 got=0 command=$3
    shift 3
    timeout 120 "$tvmtune" "$command" --state "$state" "$@" >"$dir/out" 2>&1 || got=$?
    [ $got = "$status" ] || fail "'$command $*' ended with $got instead of $status"
    [ -z "$words" ] || grep -qF -- "$words" "$dir/out" || fail "'$command $*' does not say '$words'"
}

until_state() { # JOB STATE, within 30 s
    for _ in $(seq 300); do
        "$tvmtune" list --state "$state" "$1" >"$dir/out" 2>&1
        ! grep -q " $2 " "$dir/out" || return 0
        sleep 0.1
    done
    fail "job $1 does not become $2"
}

trials() { # of all records but those that were adopted: how many, and how many different ones
    "$TEC" records export "$state/tune.db" 2>"$dir/err" | python3 -c '
import json, sys
rows = [r for r in map(json.loads, sys.stdin) if r["tuner"] != "adopted"]
print(len(rows), len({(r["job"], r.get("trial", 0)) for r in rows}))'
}

cat >"$dir/mm.te" <<'END2'
def mm(A: f32[32, 32], B: f32[32, 32]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
END2

expect 1 "port" list # nobody is there
start
[ "$(stat -c %a "$state/token")" = 600 ] || fail "others may read the token"
timeout 10 "$tvmtune" serve --state "$state" >"$dir/out" 2>&1 && fail "a second daemon serves the folder"
grep -q "another daemon serves this folder" "$dir/out" || fail "no reason"

# a kernel from end to end
expect 0 "queued" submit "$dir/mm.te" --trials 6 --threads 1
expect 0 "done" watch 1
expect 0 "" fetch 1 -o "$dir/mm.tec"
"$TEC" inspect "$dir/mm.tec" >"$dir/out" 2>&1 || fail "the module cannot be inspected"
grep -q "mm" "$dir/out" || fail "the module has no 'mm'"
expect 0 '"total"' fetch 1 --file report -o -
python3 - "$dir/out" <<'END2' || fail "the report is not that of 6 trials"
import json, sys
report = json.load(open(sys.argv[1]))
kernel, = report["kernels"]
assert report["total"]["trials"] == kernel["trials"] == 6 and report["job"]["state"] == "done"
assert kernel["before_ms"] > 0 and kernel["after_ms"] > 0 and kernel["schedule"]
curve = kernel["curve"]
assert curve[-1][0] <= 6 and all(a[0] < b[0] and a[1] >= b[1] > 0 for a, b in zip(curve, curve[1:]))
END2
expect 0 "<polyline" fetch 1 --file report.html -o -
expect 0 "def mm" fetch 1 --file input -o -
[ "$(trials)" = "6 6" ] || fail "the store has $(trials) trials instead of 6"

# each run was logged before it began
audit() { # the numbers of executions.py for this machine
    tests/tvmtune/executions.py "$state/tune.db" "$dir/runs" | tail -n 1
}
read -r executions stored repeated unstored missing _ <<<"$(audit)"
[ "$executions $repeated $unstored $missing" = "$stored 0 0 0" ] && [ "$stored" -gt 0 ] || fail "the log of runs: $(audit)"

# hostile files fail their own jobs; the others go on
head -c 300 /dev/urandom >"$dir/noise.onnx"
printf 'def deep(A: f32[4]) {\n  return %s\n}\n' "$(printf '(%.0s' $(seq 20000))" >"$dir/deep.te"
expect 0 "queued" submit "$dir/noise.onnx" --trials 2
expect 0 "queued" submit "$dir/deep.te" --trials 2
expect 1 "failed" watch 2
expect 1 "failed" watch 3
grep -qE 'failed +.*deep.te: .+' "$dir/out" || fail "no cause"
expect 1 "ends in .te or .onnx" submit "$dir/log"
expect 1 "there is no job 99" list 99
expect 1 "has no file 'module'" fetch 2
expect 1 "must be paused to become queued" resume 2

# killed in the middle, twice
sed 's/32, 32/48, 48/g' "$dir/mm.te" >"$dir/other.te"
expect 0 "queued" submit "$dir/other.te" --trials 90 --threads 1
for kill in 1 2; do
    before=$(trials)
    for _ in $(seq 60); do
        [ "$(trials)" = "$before" ] || break
        sleep 0.05
    done
    [ "$(trials)" != "$before" ] || fail "no trials"
    finish KILL
    over=work/99 # the folder of a job that was over when its daemon was killed
    mkdir -p "$state/$over"
    touch "$state/$over/input.te"
    if [ "$kill" = 2 ]; then # the program of a killed daemon may take its time to end, and has the lock of its job until then
        python3 -c 'import fcntl, os, sys, time
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX)
open(sys.argv[2], "w")
while os.path.exists(sys.argv[2]): time.sleep(0.1)' "$state"/tune.db.*.lock "$dir/holds" &
        for _ in $(seq 300); do
            [ ! -e "$dir/holds" ] || break
            sleep 0.1
        done
    fi
    start
    [ ! -e "$state/$over" ] || fail "the folder of a job that is over stays"
done
until_state 4 paused
grep -q "waiting for another process" "$dir/out" || fail "the job does not wait for the lock"
(sleep 1 && rm "$dir/holds") &
expect 0 "done" watch 4
[ "$(trials)" = "96 96" ] || fail "the store has $(trials) trials instead of 96, each once"

read -r _ stored _ _ missing _ <<<"$(audit)"
[ "$missing" = 0 ] && [ "$stored" -gt 30 ] || fail "the log of runs: $(audit)"

# submitted again: everything is known
expect 0 "queued" submit "$dir/other.te" --trials 90 --threads 1
expect 0 "done" watch 5
[ "$(trials)" = "96 96" ] || fail "a second submission measured again: $(trials) trials"

# paused, resumed, cancelled, removed
expect 0 "queued" submit "$dir/mm.te" --trials 300 --threads 1 --seed 3
until_state 6 running
expect 0 "" pause 6
until_state 6 paused
expect 0 "queued" submit "$dir/mm.te" --trials 4 --threads 1 --seed 4
expect 0 "done" watch 7
expect 0 "queued" resume 6
until_state 6 running
expect 1 "is running: cancel it first" rm 6
expect 0 "" cancel 6
until_state 6 failed
grep -q "cancelled" "$dir/out" || fail "the cause is not 'cancelled'"
expect 0 "" rm 6
expect 1 "there is no job 6" list 6

# stopped as one stops it: what ran goes on later
expect 0 "queued" submit "$dir/mm.te" --trials 200 --threads 1 --seed 5
until_state 8 running
finish TERM
[ ! -e "$state/port" ] || fail "the port of a daemon that is gone"
start --jobs 2
until_state 8 running
expect 0 "" cancel 8
until_state 8 failed
for _ in $(seq 100); do # the store knows the end a moment before the files are gone
    [ -n "$(ls "$state/work")" ] || break
    sleep 0.1
done
[ -z "$(ls "$state/work")" ] || fail "files of jobs stay behind: $(ls "$state/work")"
