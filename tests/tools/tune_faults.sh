#!/bin/bash
# tune_faults -- what may go wrong under tec tune costs a trial and not the run: candidates that crash, hang, allocate without end, answer wrongly or
# do not build; workers that are killed; a disk that is full; a store that may not be written.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "tune_faults: $*" >&2
    exit 1
}

# A product whose inner tile a C function does; a schedule brings the function along.
cat >"$dir/mm.te" <<'END'
intrinsic tile(m, a: f32[4, m], b: f32[m, 8]) {
  c[i: 4, j: 8] = sum[k: m](a[i, k] * b[k, j])
  return c
  strides a[lda, 1] strides b[ldb, 1] strides c[ldc, 1]
  update "call tile_update"
}
def mm(A: f32[64, 64], B: f32[64, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
END
doing() { # NAME BODY: a schedule whose tile does this
    cat >"$dir/$1.schedule" <<END
y0, y1 = split(C.y, _, 4)
x0, x1 = split(C.x, _, 8)
reorder(y0, x0, C.k, y1, x1)
tensorize(C.k, tile)
pragma(y0, import_c, "int tile_update(const float *a, const float *b, float *c, long m, long lda, long ldb, long ldc) { $2 return 0; }")
END
}
tune=(tune "$dir/mm.te" --threads 1)

causes() { # STORE: how often which status, stage and kind
    "$TEC" records export "$1" 2>"$dir/err" | python3 -c '
import collections, json, sys
n = collections.Counter()
for r in map(json.loads, sys.stdin):
    if r["status"] != "ok":
        n[r["status"], r["stage"], r["error_kind"]] += 1
for (status, stage, kind), k in sorted(n.items()):
    print(f"{k} x {status} in {stage}: {kind}")'
}
is_whole() { # STORE N: it is sound, and has the trials 0 to N - 1 of its job, each once
    [ "$("$TEC" records check "$1")" = "$1: 0 problems" ] || fail "$1 is damaged"
    "$TEC" records export "$1" 2>"$dir/err" | python3 -c '
import json, sys
trials = sorted(r.get("trial", 0) for r in map(json.loads, sys.stdin) if r["tuner"] != "adopted")
sys.exit(0 if trials == list(range(int(sys.argv[1]))) else f"trials: {trials}")' "$2" || fail "$1 has not its $2 trials"
}
wait_for() { # WORDS FILE: until they are there
    for _ in $(seq 600); do
        ! grep -qF -- "$1" "$2" || return 0
        sleep 0.1
    done
    fail "'$1' does not come"
}

# ---- candidates ----

doing right 'for (int i = 0; i < 4; i++) for (long k = 0; k < m; k++) for (int j = 0; j < 8; j++) c[i * ldc + j] += a[i * lda + k] * b[k * ldb + j];'
doing crash '*(volatile int *)8 = 1;'
doing wrong 'c[1] = 1e9f;'
doing unbuildable 'return x;'
doing trap '__builtin_trap();'
doing hang 'for (;;) __asm__ volatile(\"\");'
schedules=(right crash wrong unbuildable trap)
cat >"$dir/expected" <<'END'
1 x build error in build: error
1 x run error in run: SIGILL
1 x run error in run: SIGSEGV
1 x wrong answer in check: wrong answer
END
if [ -n "${TEC_TEST_FULL-}" ]; then
    schedules+=(hang)
    echo "1 x timeout in run: timeout" >>"$dir/expected"
fi
if [ -n "${TEC_TEST_FULL-}" ] && [ "$(uname -m)" = x86_64 ]; then
    doing allocate 'for (;;) { long p; register long f __asm__(\"r10\") = 0x8022, d __asm__(\"r8\") = -1, o __asm__(\"r9\") = 0; __asm__ volatile(\"syscall\" : \"=a\"(p) : \"a\"(9), \"D\"(0), \"S\"(16L << 20), \"d\"(3), \"r\"(f), \"r\"(d), \"r\"(o) : \"rcx\", \"r11\", \"memory\"); if (p < 0) __builtin_trap(); }'
    schedules+=(allocate)
    echo "1 x run error in run: memory" >>"$dir/expected"
fi
"$TEC" "${tune[@]}" --records "$dir/a.db" --trials 10 $(printf -- "--schedule $dir/%s.schedule " "${schedules[@]}") >"$dir/out" 2>&1 || fail "failing candidates end the run"
# On a busy machine, 4 GiB may take longer to touch than a candidate has time.
causes "$dir/a.db" | sort >"$dir/causes"
grep -v ": memory" "$dir/expected" | sed 's/1 x timeout/2 x timeout/' | sort >"$dir/slow"
sort "$dir/expected" | diff - "$dir/causes" || { [ -n "${TEC_TEST_FULL-}" ] && diff "$dir/slow" "$dir/causes" >"$dir/err"; } ||
    fail "the causes are others: $(cat "$dir/causes")"
is_whole "$dir/a.db" 10
"$TEC" records list "$dir/a.db" >"$dir/out"
for cause in "run error in run SIGSEGV: ended by SIGSEGV" "run error in run SIGILL: ended by SIGILL" "wrong answer in check wrong answer: output 'C' [0, 0] is" \
    "build error in build error: trace:5:25: error: clang-19 refuses the imported C: trace:5:"; do
    grep -qF -- "1 x $cause" "$dir/out" || fail "tec records list does not say '$cause'"
done
"$TEC" "${tune[@]}" --records "$dir/a.db" $(printf -- "--schedule $dir/%s.schedule " "${schedules[@]}") --replay >"$dir/out" 2>&1 || fail "no replay"
doing bad ''
sed -i 's/^reorder.*/reorder(y0, C.z)/' "$dir/bad.schedule"
! "$TEC" "${tune[@]}" --records "$dir/b.db" --schedule "$dir/bad.schedule" >"$dir/out" 2>&1 || fail "a schedule that is refused is taken"
grep -q "bad.schedule:3:[0-9]*: " "$dir/out" || fail "the line of a refused schedule is not told"

# ---- workers ----

kill_worker() { # NAME: one of the tuner's
    local worker
    worker=$(pgrep -P $pid -f "$1" | head -1)
    [ -z "$worker" ] || kill -KILL "$worker" || true
}
"$TEC" "${tune[@]}" --records "$dir/k.db" --trials 16 >"$dir/out" 2>&1 &
pid=$!
for _ in 1 2 3; do
    sleep 0.4
    kill_worker tec_runner
    kill_worker build-worker
done
wait $pid || fail "a tuner whose workers are killed fails"
pid=
is_whole "$dir/k.db" 16
! causes "$dir/k.db" | grep -v SIGKILL || fail "a killed worker has another cause"

# ---- a disk without room, and one that may not be written ----

export -f fail wait_for is_whole
export TEC dir
if ! unshare -rm true 2>"$dir/err"; then
    echo "tune_faults: no file systems of one's own here: full disks are not tested"
    exit 0
fi
mkdir "$dir/disk" "$dir/temp"
unshare -rm bash -eu <<'END'
mount -t tmpfs -o size=2m tmpfs "$dir/disk"
db=$dir/disk/a.db
tune=("$TEC" tune "$dir/mm.te" --threads 1 --records "$db")
export TMPDIR=$dir/temp
run_until_full() { # TRIALS: in the background; when the first results are there, the disk has no room left
    "${tune[@]}" --trials $1 >"$dir/full" 2>&1 &
    pid=$!
    wait_for " trials, " "$dir/full"
    ! head -c 4m /dev/zero >"$dir/disk/filler" 2>"$dir/err" || fail "the disk is not full"
    wait_for "held back and written as soon as that is possible" "$dir/full"
    grep -q "full\|No space left" "$dir/full" || fail "a full disk is not told: $(cat "$dir/full")"
}
trap 'kill -KILL $pid 2>"$dir/err" || true' EXIT

run_until_full 24
rm "$dir/disk/filler"
wait $pid || fail "it does not go on when there is room again: $(cat "$dir/full")"
is_whole "$db" 24

run_until_full 40
kill -INT $pid
! wait $pid || fail "results that could not be stored are a success"
grep -q "could not be stored; they are in $dir/temp/" "$dir/full" || fail "it is not told where the results are: $(cat "$dir/full")"
rm "$dir/disk/filler"
"$TEC" records import "$db" "$dir"/temp/*.jsonl >"$dir/out" 2>&1 || fail "the results cannot be imported"
"${tune[@]}" --trials 40 >"$dir/out" 2>&1 || fail "it does not go on from there"
is_whole "$db" 40

mount -o remount,ro "$dir/disk"
! "${tune[@]}" --trials 200 >"$dir/out" 2>&1 || fail "it tunes into a store that may not be written"
grep -q "cannot be written, so nothing was measured" "$dir/out" || fail "a store that may not be written is not told"
"${tune[@]}" --replay >"$dir/out" 2>&1 || fail "a store that may not be written cannot be replayed"
END
