#!/bin/bash
# tune -- tec tune --tracker over four servers of this machine: every trial is stored once, devices that are killed
# cost none, an interrupt gives the leases back, the same command goes on, and what is wrong is said clearly.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
keys=$dir/pool.keys
db=$dir/a.db
pids=()

stop_all() {
    [ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap stop_all EXIT

fail() {
    echo "tune: $*" >&2
    tail -n 5 "$dir"/*.log "$dir"/out 2>/dev/null >&2 || true
    exit 1
}

# until WORDS FILE: waits until the file has the words.
until_says() {
    for _ in $(seq 300); do
        grep -qF -- "$1" "$2" 2>/dev/null && return
        sleep 0.1
    done
    fail "'$1' was not said in $2"
}

# start_server NAME
start_server() {
    mkdir -p "$dir/$1"
    "$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --tracker "$tracker" --device-class board \
        --name "$1" --folder "$dir/$1" >"$dir/$1.out" 2>"$dir/$1.log" &
    pids+=($!)
    until_says "can lease its devices" "$dir/$1.log"
}

# sql QUERY: its rows, values separated by blanks.
sql() {
    python3 - "$db" "$1" <<'EOF'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):
    print(*row)
EOF
}

# tune TRIALS OPTIONS...: the command under test, in place of the shell that calls.
tune() {
    local trials=$1
    shift
    exec "$TEC" tune "$dir/mm.te" --tracker "$tracker" --key-file "$keys" --device-class board --threads 1 --tolerance 900 \
        --records "$db" --trials "$trials" "$@"
}

# refuses WORDS OPTIONS...: ends with a failure and says so.
refuses() {
    local words=$1
    shift
    if "$TEC" tune "$dir/mm.te" --records "$dir/none.db" "$@" >"$dir/out" 2>&1; then fail "not refused: $*"; fi
    grep -qF -- "$words" "$dir/out" || fail "'$*' does not say '$words'"
}

all_free() {
    for _ in $(seq 100); do
        "$TEC" devices --tracker "$tracker" --key-file "$keys" --json >"$dir/devices"
        grep -q '"leased":[[:space:]]*0,' "$dir/devices" && return
        sleep 0.1
    done
    fail "leases were not given back: $(cat "$dir/devices")"
}

cat >"$dir/mm.te" <<'EOF'
def mm(A: f32[64, 64], B: f32[64, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
EOF
"$TEC" keys --key-file "$keys" --roles submit,serve,administer --users '*' new >"$dir/out"
"$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --key-file "$keys" --state "$dir/tracker.db" >"$dir/tracker.out" \
    2>"$dir/tracker.log" &
pids+=($!)
until_says "ready at port" "$dir/tracker.out"
tracker=127.0.0.1:$(sed -n 's/.*ready at port \([0-9]*\).*/\1/p' "$dir/tracker.out")
for name in s1 s2 s3 s4; do start_server $name; done
victim=${pids[4]}

# What is wrong.
refuses "which devices of the pool measure is missing: --device-class CLASS" --tracker "$tracker"
refuses "--patience is for --tracker" --patience 3
refuses "--replay measures nothing" --tracker "$tracker" --device-class board --replay
refuses "there is no device class 'nope'; there are: board" --tracker "$tracker" --key-file "$keys" --device-class nope
refuses "cannot connect to 127.0.0.1:1" --tracker 127.0.0.1:1 --key-file "$keys" --device-class board
"$TEC" keys --key-file "$dir/other.keys" new >"$dir/out"
refuses "it does not know the key" --tracker "$tracker" --key-file "$dir/other.keys" --device-class board

# An interrupt, and a server that is killed while it measures: the same command goes on.
(tune 400) >"$dir/out" 2>&1 &
tuner=$!
pids+=($tuner)
until_says " 10 trials" "$dir/out"
kill -9 "$victim"
wait "$victim" 2>"$dir/killed" || true
until_says " 26 trials" "$dir/out"
kill -TERM $tuner
wait $tuner && fail "an interrupted job ended well"
grep -qF "stopped: the same command goes on from here" "$dir/out" || fail "the interrupt was not heard"
all_free
before=$(sql "SELECT COUNT(*) FROM records")
(tune 40 --json) >"$dir/out" 2>&1 || fail "the command does not go on"
grep -qF '"event":"total","trials":40' "$dir/out" || fail "the job has not 40 trials"
grep -qF '"devices":[{"device":"s' "$dir/out" || fail "no devices in JSON"
all_free

# One row for each trial, all good, from three devices at least; each row says what measured it.
[ "$(sql "SELECT COUNT(*), COUNT(DISTINCT trial) FROM records WHERE tuner <> 'adopted' AND trial < 40")" = "40 40" ] ||
    fail "not one row for each trial: $(sql "SELECT trial, COUNT(*) FROM records GROUP BY trial")"
[ "$(sql "SELECT COUNT(*) FROM records WHERE status <> 'ok'")" = 0 ] ||
    fail "failed: $(sql "SELECT trial, status, error FROM records WHERE status <> 'ok'")"
[ "$(sql "SELECT COUNT(DISTINCT d.name) >= 3 FROM records r JOIN devices d ON d.id = r.device WHERE d.name LIKE 's_/cpu:0' AND d.text LIKE 'class board: _%'")" = 1 ] ||
    fail "devices: $(sql "SELECT DISTINCT d.name, d.text FROM records r JOIN devices d ON d.id = r.device")"
[ "$before" -ge 26 ] || fail "what was measured before the interrupt was lost: $before"
[ "$(sql "SELECT COUNT(*) FROM targets WHERE text LIKE '% -model=board-________' AND fingerprint LIKE '%-board-________'")" = 1 ] ||
    fail "the class is not part of the target: $(sql "SELECT fingerprint, text FROM targets")"
echo "tune: ok"
