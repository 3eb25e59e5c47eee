#!/bin/bash
# doctor -- every step of `tvmtune doctor`, without a pool and with one; and the first step that fails where the tracker, the
# server or the keys are missing, with what to do.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
daemon=
. tests/tvmtune/pool.inc
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; pool_end; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "doctor: $*" >&2
    exit 1
}

serve() { # OPTIONS
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" "$@" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 200); do
        [ ! -s "$state/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

doctor() { # STATUS WORDS OPTIONS...
    local want=$1 words=$2 got=0
    shift 2
    timeout 100 "$tvmtune" doctor --state "$state" "$@" >"$dir/out" 2>&1 || got=$?
    [ $got = "$want" ] || fail "'doctor $*' ended with $got instead of $want"
    grep -qF -- "$words" "$dir/out" || fail "'doctor $*' does not say '$words'"
}

serve
doctor 0 "ok      tracker: none: the daemon measures on its own machine"
[ "$(grep -c '^ok ' "$dir/out")" = 10 ] || fail "not all of the ten steps"
grep -q "^ok      calibration: .* GFLOP/s" "$dir/out" || fail "no calibration"
kill -TERM $daemon
wait $daemon || fail "the daemon ended with $?"

pool_keys
pool_tracker
serve --tracker "$tracker" --key-file "$dir/pool.keys"
doctor 1 "FAILED  match: the tracker has no device" --key-file "$dir/pool.keys"
grep -q "'rpc_server --tracker' announces one" "$dir/out" || fail "it does not say what to do"
doctor 1 "FAILED  match: there is no device class 'nope'" --key-file "$dir/pool.keys" --device-class nope
pool_server s1
pool_says "clients can lease its devices" "$dir/s1.server"
doctor 0 "ok      match: s1/cpu:0 of class 'board'" --key-file "$dir/pool.keys"
[ "$(grep -c '^ok ' "$dir/out")" = 10 ] || fail "not all of the ten steps"
doctor 0 '{"step":"calibration","ok":true' --key-file "$dir/pool.keys" --device-class board --json
"$TEC" keys --key-file "$dir/other.keys" new >"$dir/keys.out"
doctor 1 "FAILED  tracker" --key-file "$dir/other.keys"
# a server that hangs: its device is granted, and the session does not come
kill -STOP "${pool_pid[s1]}"
doctor 1 "FAILED  session" --key-file "$dir/pool.keys" --device-class board
kill -CONT "${pool_pid[s1]}"
pool_kill tracker
doctor 1 "FAILED  tracker: cannot connect to $tracker" --key-file "$dir/pool.keys"
[ -z "$(ls "$TMPDIR" | grep doctor)" ] || fail "folders stay behind"
echo "doctor: ok"
