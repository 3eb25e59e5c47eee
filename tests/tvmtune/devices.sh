#!/bin/bash
# devices -- jobs of two users that want the same devices of a pool at once: a job that has all of them shares them with those that
# come later, and goes on; users and priorities are those of the jobs; each trial ran once, by the servers' logs.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
. tests/tvmtune/pool.inc
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; pool_end; rm -rf "$dir"' EXIT
limits=()
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    [ ! -e "$dir/log" ] || tail -n 20 "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "devices: $*" >&2
    exit 1
}

pool_keys
pool_tracker
for server in s1 s2; do pool_server $server; done
for server in s1 s2; do pool_says "can lease its devices" "$dir/$server.server"; done
"$tvmtune" serve --state "$state" --jobs 3 --tracker "$tracker" --key-file "$dir/pool.keys" --devices 2 --tolerance 900 "${limits[@]}" \
    2>>"$dir/log" &
daemon=$!
for _ in $(seq 300); do
    [ ! -s "$state/port" ] || break
    sleep 0.1
done

as() { # USER COMMAND...
    local user=$1
    shift
    timeout 200 "$tvmtune" "$@" --port "$(cat "$state/port")" --token-file "$dir/$user.token" >"$dir/out" 2>&1 || fail "'$*' of $user"
}

submit() { # USER SIZE TRIALS PRIORITY
    printf 'def mm(A: f32[%d, 48], B: f32[48, 48]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n' "$2" >"$dir/$1$2.te"
    as "$1" submit "$dir/$1$2.te" --trials "$3" --priority "$4" --threads 1 --device-class board
}

tried() { # JOB
    python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1], timeout=60).execute("SELECT tried FROM queue WHERE id = ?", sys.argv[2:]).fetchone()[0])' \
        "$state/tune.db" "$1"
}

# What the tracker says of the jobs: a line 'USER PRIORITY DEVICES' for each.
jobs() {
    "$TEC" devices --tracker "$tracker" --key-file "$dir/pool.keys" --json >"$dir/devices" 2>"$dir/err" || fail "tec devices"
    python3 -c 'import json, sys
for job in json.load(open(sys.argv[1]))["jobs"]: print(job["user"], "%g" % job["priority"], job["leased"])' "$dir/devices"
}

until_jobs() { # PATTERN...: until a line of each pattern is there at the same time
    local seen pattern missing
    for _ in $(seq 600); do
        seen=$(jobs)
        missing=
        for pattern in "$@"; do grep -qE "$pattern" <<<"$seen" || missing=1; done
        [ -n "$missing" ] || return 0
        sleep 0.1
    done
    fail "the tracker does not say '$*' but '$seen'"
}

cp "$state/token" "$dir/owner.token"
for user in ada bob; do
    as owner user add $user
    cp "$dir/out" "$dir/$user.token"
done

# ada's job has both devices; then bob's comes, and another one of ada's
submit ada 64 100000 -4
until_jobs '^ada 6 2$'
before=$(tried 1)
submit bob 48 40 500
until_jobs '^ada 6 1$' '^bob 100 1$'
submit ada 40 40 20
until_jobs '^ada 30 1$'
as bob watch 2
as ada watch 3
as ada list 1
grep -q " running " "$dir/out" || fail "the first job has not gone on"
[ "$(tried 1)" -gt "$before" ] || fail "the first job was never served again"
until_jobs '^ada 6 2$' # and has both devices again
as ada cancel 1
for _ in $(seq 300); do
    as ada list 1
    ! grep -q " failed " "$dir/out" || break
    sleep 0.1
done
grep -q "cancelled" "$dir/out" || fail "the first job is not cancelled"

# in the logs of the servers each trial once; of the job that was cancelled the last ones may not be stored
read -r executions stored repeated unstored missing _ <<<"$(tests/tvmtune/executions.py "$state/tune.db" "$dir"/s?.server | sed -n 1p)"
[ "$stored" -ge 80 ] && [ "$repeated $missing" = "0 0" ] && [ "$executions" = $((stored + unstored)) ] ||
    fail "$executions executions of $stored trials, $repeated repeated, $unstored not stored, $missing in no log"
[ "$unstored" -le 32 ] || fail "$unstored executions are of no trial"
