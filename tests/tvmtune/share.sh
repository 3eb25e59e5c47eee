#!/bin/bash
# share -- an ONNX model from end to end; kernels that jobs share are tuned once, also by jobs that run at the same time; a file in
# which one kernel changed tunes that one; a pause that was asked for before the daemon was killed holds after it.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT
limits=()
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "share: $*" >&2
    exit 1
}

start() {
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --jobs 2 "${limits[@]}" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -s "$state/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

ask() { # COMMAND...: succeeds
    local command=$1
    shift
    timeout 200 "$tvmtune" "$command" --state "$state" "$@" >"$dir/out" 2>&1 || fail "'$command $*' fails"
}

sql() {
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row)' "$state/tune.db" "$1"
}

trials() { # by definition: how many
    sql "SELECT CASE WHEN w.definition LIKE '%def mm(%' THEN 'mm' WHEN w.definition LIKE '%def double%' THEN 'double' ELSE 'triple' END
         AS d, COUNT(*) FROM records r JOIN workloads w ON w.id = r.workload WHERE r.tuner <> 'adopted' GROUP BY d ORDER BY d" | tr '\n' ' '
}

mm='def mm(A: f32[24, 24], B: f32[24, 24]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}'
double='def double(A: f32[96]) {
  B[i] = A[i] * 2.0
  return B
}'
printf '%s\n%s\n' "$mm" "$double" >"$dir/one.te"
printf '%s\n%s\n' "$double" "$mm" >"$dir/two.te"
printf '%s\n%s\n' "$mm" "${double//double/triple}" | sed 's/2\.0/A[i]/' >"$dir/changed.te"

# two files with the same kernels, at the same time
start
ask submit "$dir/one.te" --trials 6 --threads 1 --seed 1
ask submit "$dir/two.te" --trials 6 --threads 1 --seed 2
ask watch 1
ask watch 2
known=$(trials)
total=$(sql "SELECT COUNT(*) FROM records WHERE tuner <> 'adopted'")
[ "$total" = 6 ] || fail "two jobs with the same kernels and 6 trials made $total trials: $known"
[ "$(sql "SELECT COUNT(DISTINCT job) FROM records WHERE tuner <> 'adopted'")" -le 2 ] || fail "a kernel was tuned by several jobs"
for job in 1 2; do
    ask fetch $job -o "$dir/$job.tec"
    ask fetch $job --file report -o "$dir/$job.json"
done
python3 - "$dir/1.json" "$dir/2.json" <<'END2' || fail "the reports of jobs with the same kernels differ"
import json, sys
one, two = ({k["key"]: (k["trials"], k["schedule"], k["state"]) for k in json.load(open(f))["kernels"]} for f in sys.argv[1:])
assert one == two and len(one) == 2 and all(k[2] == "tuned" for k in one.values()), (one, two)
END2

# one kernel changed
ask submit "$dir/changed.te" --trials 6 --threads 1
ask watch 3
[ "$(trials)" = "${known}triple 3 " ] || fail "of a changed file more than the change was tuned: $known, then $(trials)"

# a pause that was asked for outlives the daemon
ask submit "$dir/one.te" --trials 2000 --threads 1
for _ in $(seq 200); do
    [ "$(sql "SELECT tried > 0 FROM queue WHERE id = 4")" != 1 ] || break
    sleep 0.1
done
kill -STOP "$(pgrep -P $daemon | head -n 1)" # its child cannot follow
ask pause 4
grep -q running "$dir/out" || fail "the job does not run"
kill -KILL $daemon
wait $daemon 2>"$dir/err" || true
start
ask list 4
grep -q "paused .*on request" "$dir/out" || fail "the pause was forgotten"

# a model; its tuned module computes what the untuned one does
"$TEC" tune tests/models/digits/model.onnx --dim batch=1 --kernels >"$dir/kernels"
n=$(wc -l <"$dir/kernels")
[ "$n" -gt 1 ] || fail "the model has no kernels"
ask submit tests/models/digits/model.onnx --trials $((2 * n)) --dim batch=1 --threads 1
ask watch 5
ask fetch 5 -o "$dir/digits.tec"
"$TEC" compile tests/models/digits/model.onnx --dim batch=1 --threads 1 -o "$dir/plain.tec" >"$dir/out" 2>&1 || fail "tec compile"
for m in digits plain; do
    mkdir "$dir/$m.out"
    "$TEC" run "$dir/$m.tec" --out "$dir/$m.out" >"$dir/out" 2>&1 || fail "tec run $m"
done
python3 - "$dir"/digits.out "$dir"/plain.out <<'END2' || fail "the tuned module gives other results"
import os, struct, sys
def load(path):
    data = open(path, "rb").read()
    head, = struct.unpack("<H", data[8:10])
    assert b"'<f4'" in data[:10 + head], data[:80]
    return struct.unpack(f"<{(len(data) - 10 - head) // 4}f", data[10 + head:])
a, b = ({f: load(d + "/" + f) for f in os.listdir(d)} for d in sys.argv[1:])
assert a and a.keys() == b.keys(), (a, b)
assert all(abs(x - y) <= 1e-3 * abs(y) + 1e-5 for f in a for x, y in zip(a[f], b[f], strict=True))
END2
ask fetch 5 --file report -o "$dir/5.json"
python3 - "$dir/5.json" <<'END2' || fail "the report does not say which module is the job's"
import json, sys
whole = json.load(open(sys.argv[1]))["end_to_end"]
assert ("gain" in whole) != ("not_compared" in whole), whole
assert (whole["module"] == "tuned") == ("gain" not in whole or whole["gain"] > max(whole["noise"], 0.01)), whole
END2
python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["kernels"]) == int(sys.argv[2])' "$dir/5.json" "$n" || fail "a kernel is missing in the report"
