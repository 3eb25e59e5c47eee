#!/bin/bash
# children -- what the processes of a job may do without hurting others: crash, fail with a word or without one, allocate without end,
# fall silent, leave processes behind. And several jobs at once, and children that die with their daemon.
#
# The compiler is a script here that does what the submitted file says.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "children: $*" >&2
    exit 1
}

cat >"$dir/tec" <<'END2'
#!/bin/bash
# tec STAGE INPUT --json --records STORE [-o MODULE] ...; each file has one kernel, its own
out=
case " $* " in *" --kernels "*)
    echo '{"event":"kernel","key":"'"$(md5sum <"$2" | cut -c1-16)"'","target":"t","task":"k","summary":"","uses":1,"codegen":"1"}'
    exit
    ;;
esac
while [ $# -gt 2 ] && [ "$3" != -o ]; do args+=("$3"); set -- "$1" "$2" "${@:4}"; done
[ "${3:-}" != -o ] || out=$4
[ -z "$out" ] || echo module >"$out"
stage=$1
. "$2"
END2
chmod +x "$dir/tec"

start() { # OPTIONS
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --tec "$dir/tec" "$@" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -s "$state/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

n=0
submit() { # TEXT: a job whose processes do this
    n=$((n + 1))
    printf '%s\n' "$1" >"$dir/job$n.te"
    "$tvmtune" submit --state "$state" "$dir/job$n.te" >"$dir/out" 2>&1 || fail "job $n is refused"
}

ends() { # JOB STATE WORDS
    timeout 60 "$tvmtune" watch --state "$state" "$1" >"$dir/out" 2>&1 || true
    tail -n 1 "$dir/out" | grep -qF -- "$3" || fail "job $1 does not end with '$3'"
    tail -n 1 "$dir/out" | grep -qE "^ +$1 +$2 " || fail "job $1 does not end as $2"
}

start --jobs 3 --patience 8 --memory 512
submit 'python3 -c "x = bytearray(100 << 20)"'
submit 'kill -SEGV $$'
submit 'echo "file.te:3: error: no such kernel" >&2; exit 1'
submit 'exit 7'
submit '[ $stage = tune ] || { echo "error: cannot compile" >&2; exit 1; }'
submit 'python3 -c "x = bytearray(1 << 30)" || { echo "error: refused memory" >&2; exit 1; }'
submit 'sleep 50 & sleep 50'
submit 'echo "error: in $(dirname "$2")/input.te" >&2; exit 1'
submit 'echo "{\"all_trials\":5}"'
ends 1 "done" "job1.te"
ends 2 failed "tuning was ended by signal 11"
ends 3 failed "file.te:3: error: no such kernel"
ends 4 failed "tuning ended with status 7 and said nothing"
ends 5 failed "error: cannot compile"
ends 6 failed "error: refused memory"
ends 7 failed "nothing was heard of it for 8 seconds"
ends 8 failed "error: in input.te"
ends 9 "done" "5 of"
for _ in $(seq 100); do # the store knows the end a moment before the files are gone
    [ -n "$(ls "$state/work")" ] || break
    sleep 0.1
done
[ -z "$(ls "$state/work")" ] || fail "files of jobs stay behind: $(ls "$state/work")"

# three at once, the urgent ones first; a fourth one waits
kill -TERM $daemon
wait $daemon || fail "the daemon ended with $?"
rm -rf "$state"
n=0
start --jobs 3 --memory 0
for i in 1 2 3 4; do
    submit 'echo $$ >>'"$dir/pids; exec sleep 50"
done
for _ in $(seq 100); do
    [ "$("$tvmtune" list --state "$state" | grep -c running)" != 3 ] || break
    sleep 0.1
done
"$tvmtune" list --state "$state" >"$dir/out"
[ "$(grep -c running "$dir/out")" = 3 ] || fail "there are not three jobs at once"
grep -qE '^ +4 +queued' "$dir/out" || fail "the fourth job does not wait"

# children die with a daemon that is killed, and their jobs are taken again
for _ in $(seq 100); do
    [ "$(wc -l <"$dir/pids")" != 3 ] || break
    sleep 0.1
done
mapfile -t pids <"$dir/pids"
kill -KILL $daemon
wait $daemon 2>"$dir/err" || true
daemon=
for _ in $(seq 100); do
    alive=0
    for pid in "${pids[@]}"; do
        ! kill -0 "$pid" 2>"$dir/err" || alive=$((alive + 1))
    done
    [ $alive != 0 ] || break
    sleep 0.1
done
[ $alive = 0 ] || fail "$alive children live on without their daemon"
start --jobs 1 --memory 0
for _ in $(seq 100); do
    [ "$("$tvmtune" list --state "$state" | grep -cE '^ +1 +running')" != 1 ] || break
    sleep 0.1
done
"$tvmtune" list --state "$state" >"$dir/out"
[ "$(grep -c interrupted "$dir/out")" = 2 ] || fail "two interrupted jobs do not wait"
