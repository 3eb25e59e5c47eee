#!/bin/bash
# tune -- tec tune on a .te file and on a model: records, resumption, replay, adoption, interrupts, stores that cannot be written.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT

fail() {
    echo "tune: $*" >&2
    exit 1
}

# expect STATUS WORDS OPTIONS...: tec tune ends with the status, and a line of its output has WORDS.
expect() {
    local status=$1 words=$2 got=0
    shift 2
    timeout 120 "$TEC" tune "$@" >"$dir/out" 2>&1 || got=$?
    [ $got = "$status" ] || { cat "$dir/out"; fail "'$*' ended with $got instead of $status"; }
    grep -qF -- "$words" "$dir/out" || { cat "$dir/out"; fail "'$*' does not say '$words'"; }
}

trials() { # STORE: batch, trial and schedule of all but what was adopted, in order
    "$TEC" records export "$1" 2>"$dir/err" | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
for r in sorted((r for r in lines if r["tuner"] != "adopted"), key=lambda r: r.get("trial", 0)):
    print(r.get("trial", 0), r.get("batch", 0), r["workload"]["exact_key"], r["trace"].replace("\n", ";"))'
}

cat >"$dir/mm.te" <<'END'
def mm(A: f32[64, 64], B: f32[64, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
def scale(n, A: f32[n]) {
  S[i] = A[i] * 2.0
  return S
}
END
mm=("$dir/mm.te" --name mm --threads 1)

# wrong usage
expect 2 "where the records go is missing" "${mm[@]}"
expect 2 "there is no option" "${mm[@]}" --records "$dir/a.db" --trails 5
expect 2 "found 'guess'" "${mm[@]}" --records "$dir/e.db" --explorer guess
[ ! -e "$dir/e.db" ] || fail "a wrong explorer left a store behind"
expect 1 "there is no definition 'none'" "$dir/mm.te" --records "$dir/e.db" --name none
expect 1 "'scale' has a symbolic extent 'n': give it a value with --dim n=N" "$dir/mm.te" --records "$dir/e.db"
expect 1 "has a symbolic extent 'batch'" tests/models/digits/model.onnx --records "$dir/e.db"

# a run, the same again, and its replay
expect 0 "all trials are done" "${mm[@]}" --records "$dir/a.db" --trials 8 --plot "$dir/a.svg"
grep -q "^sum of the kernels .*8 " "$dir/out" || fail "no table"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/a.svg" || fail "the plot is no SVG"
for words in "Gain of each kernel while tuning" "times as fast as the default schedule" "trials of the kernel"; do
    grep -qF "$words" "$dir/a.svg" || fail "the plot does not say '$words'"
done
[ "$(trials "$dir/a.db" | wc -l)" = 8 ] || fail "the store has $(trials "$dir/a.db" | wc -l) trials"
"$TEC" records export "$dir/a.db" >"$dir/before" 2>&1
expect 0 "all trials are done" "${mm[@]}" --records "$dir/a.db" --trials 8
"$TEC" records export "$dir/a.db" 2>&1 | cmp - "$dir/before" || fail "a second call changed the store"
expect 0 "8 trials of job" "${mm[@]}" --records "$dir/a.db" --replay
expect 1 "to replay" "${mm[@]}" --records "$dir/a.db" --seed 7 --replay
grep -q '"tuner":"adopted"' "$dir/before" || fail "nothing was adopted, not even the default schedule"

# what tec te takes of it: what was adopted, and a line where there is none
te() { # WORDS OPTIONS...: tec te says so
    local words=$1
    shift
    "$TEC" te "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; fail "tec te '$*' failed"; }
    grep -qF -- "$words" "$dir/err" || { cat "$dir/err"; fail "'tec te $*' does not say '$words'"; }
}
te "a.db: 'mm' has the schedule of its record" "${mm[@]}" --records "$dir/a.db" --emit trace
"$TEC" records export "$dir/a.db" 2>"$dir/err" | python3 -c '
import json, sys
print([r["trace"] for r in map(json.loads, sys.stdin) if r["tuner"] == "adopted"][-1].rstrip())' | diff - "$dir/out" || fail "tec te takes another schedule than the adopted one"
te "a.db: no record for 'scale' on this target with 1 threads; its schedule is where a tuner would begin" "$dir/mm.te" --name scale --threads 1 \
    --records "$dir/a.db" --emit trace
te "a.db: no record for 'mm' on this target with 2 threads" "$dir/mm.te" --name mm --threads 2 --records "$dir/a.db" --emit trace
"$TEC" te "${mm[@]}" --records "$dir/none.db" >"$dir/out" 2>&1 && fail "tec te takes schedules from a store that is not there"
grep -q "the record store does not exist" "$dir/out" || fail "a missing store is not told"
got=0
"$TEC" te "${mm[@]}" --records "$dir/a.db" --schedule "$dir/mm.te" >"$dir/out" 2>&1 || got=$?
[ $got = 2 ] || fail "--schedule and --records together end with $got"

# longer, after an interrupt at any moment: what a run without one tries, for proposals that do not follow from times
expect 0 "all trials are done" "${mm[@]}" --records "$dir/whole.db" --explorer random --trials 16
for wait in 0.7 1.2; do
    "$TEC" tune "${mm[@]}" --records "$dir/parts.db" --explorer random --trials 16 >"$dir/out" 2>&1 &
    pid=$!
    sleep $wait
    kill -INT $pid 2>/dev/null || true
    wait $pid || true
    [ ! -e "$dir/parts.db" ] || "$TEC" records check "$dir/parts.db" >"$dir/out" || fail "the store is damaged"
done
for round in $(seq "${TEC_TEST_KILLS:-2}"); do
    "$TEC" tune "${mm[@]}" --records "$dir/parts.db" --explorer random --trials 16 >"$dir/out" 2>&1 &
    pid=$!
    sleep "0.$((RANDOM % 9 + 1))"
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    [ ! -e "$dir/parts.db" ] || "$TEC" records check "$dir/parts.db" >"$dir/out" || fail "the store is damaged"
done
expect 0 "all trials are done" "${mm[@]}" --records "$dir/parts.db" --explorer random --trials 16
trials "$dir/whole.db" >"$dir/whole"
trials "$dir/parts.db" | diff "$dir/whole" - || fail "an interrupted run tried something else"

# two at once: with other seeds side by side, the same command not
"$TEC" tune "${mm[@]}" --records "$dir/two.db" --trials 8 --seed 1 >"$dir/one" 2>&1 &
one=$!
"$TEC" tune "${mm[@]}" --records "$dir/two.db" --trials 8 --seed 2 >"$dir/two" 2>&1 &
two=$!
wait $one || { cat "$dir/one"; fail "the first of two failed"; }
wait $two || { cat "$dir/two"; fail "the second of two failed"; }
[ "$("$TEC" records check "$dir/two.db")" = "$dir/two.db: 0 problems" ] || fail "two tuners damaged the store"
for seed in 1 2; do
    expect 0 "8 trials of job" "${mm[@]}" --records "$dir/two.db" --seed $seed --replay
done
"$TEC" tune "${mm[@]}" --records "$dir/same.db" --trials 5000 >"$dir/one" 2>&1 &
one=$!
for _ in $(seq 100); do
    [ -z "$(ls "$dir"/same.db.*.lock 2>/dev/null)" ] || break
    sleep 0.1
done
expect 1 "another process is tuning this file with the same options" "${mm[@]}" --records "$dir/same.db" --trials 5000
kill -INT $one
wait $one && fail "an interrupted run ends with 0"
grep -q "the same command goes on from here" "$dir/one" || fail "an interrupt is not told"
[ -z "$(ls "$dir"/*.lock 2>/dev/null)" ] || fail "a lock was left"

# a store that may not be written (root may write anything)
if [ "$(id -u)" != 0 ]; then
    mkdir "$dir/closed"
    cp "$dir/a.db" "$dir/closed/a.db"
    chmod a-w "$dir/closed" "$dir/closed/a.db"
    expect 1 "may not be written, so nothing was measured" "${mm[@]}" --records "$dir/closed/a.db" --trials 20
fi
expect 1 "No such file or directory" "${mm[@]}" --records "$dir/nowhere/a.db" --trials 20

# a model; what it finds is what tec compile takes
expect 0 "all trials are done" tests/models/digits/model.onnx --dim batch=1 --records "$dir/d.db" --trials 24 --threads 1 --json
grep -q '"event":"total","trials":24' "$dir/out" || fail "no total in JSON"
"$TEC" compile tests/models/digits/model.onnx --dim batch=1 --records "$dir/d.db" --threads 1 -o "$dir/d.tec" 2>"$dir/out"
grep -q "d.db: 0 of [0-9]* kernels have no record" "$dir/out" || { cat "$dir/out"; fail "tec compile does not find the records"; }
