#!/bin/bash
# run -- bench/run measures, checks results first, prints the table and the CSV that it promises, and fails where it must.
set -eu
: "${TEC_BUILD_DIR:?}"
export TEC_BUILD_DIR
[ -x /usr/bin/python3 ] || { echo "bench: skipped: python3 is not installed"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "bench: $*" >&2
    cat "$dir/out" "$dir/err" >&2
    exit 1
}

bench() {
    bench/run "$@" --only digits --threads 1 --rounds 1 --seconds 0.02 >"$dir/out" 2>"$dir/err"
}

bench models --csv "$dir/csv" || fail "the models do not run"
[ "$(head -1 "$dir/csv")" = suite,workload,threads,ours_ms,ours_gflops,pct_of_peak,peer,peer_ms,ratio,engines ] || fail "wrong columns"
grep -qE '^models,digits,1,[0-9.]+,[0-9.]+,[0-9.]+,,,,$' "$dir/csv" || fail "no row of digits: $(cat "$dir/csv")"

# What peers say of themselves: version, threads, CPUs. An operator that is a program runs too.
if [ -x build/engines/bin/python ]; then
    bench/run ops --peers --only range.1 --threads 1 --rounds 1 --seconds 0.02 --csv "$dir/csv" >"$dir/out" 2>"$dir/err" || fail "no ranges"
    grep -qE '^ops,range.1,1,[0-9.]+,,,.*,onnxruntime-[0-9.]+/1@[0-9]+ openvino-[0-9.]+/1@[0-9]+$' "$dir/csv" ||
        fail "the peers do not say what they are: $(cat "$dir/csv")"
fi
bench compile || fail "the compiler does not run"
grep -qE '^compile,digits,1,[0-9.]+,,,,,$' "$dir/out" || fail "no row of the compiler"

# Tuned, kept, and gone on with: a job that has used its time measures at once.
tuned() {
    bench/run tuning --only D9 --threads 1 --rounds 1 --seconds 0.02 --tune-seconds 6 --records "$dir/db" --csv "$dir/csv" >"$dir/out" 2>"$dir/err" ||
        fail "the suite tuning does not run"
    grep -qE '^tuning,D9,1,[0-9.]+,[0-9.]+,[0-9.]+,,,,[0-9.]+,[0-9.]+,$' "$dir/csv" || fail "no row of D9: $(cat "$dir/csv")"
    trials=$(sed -n 's/^tuned: \([0-9]*\) trials (0 of them.*/\1/p' "$dir/out")
}
tuned
first=$trials
tuned
[ "$first" -ge 2 ] && [ "$trials" = "$first" ] || fail "$first trials, and then $trials"

# A worker that breaks must not look like a fast one.
mkdir "$dir/build"
ln -s "$TEC_BUILD_DIR"/* "$dir/build"
rm "$dir/build/bench"
mkdir "$dir/build/bench"
ln -s "$TEC_BUILD_DIR"/bench/* "$dir/build/bench"
ln -sf /bin/false "$dir/build/bench/bench_model"
! TEC_BUILD_DIR=$dir/build bench models || fail "a broken worker was not noticed"
grep -q 'digits FAILED' "$dir/err" || fail "a broken worker was not reported"
ln -sf "$TEC_BUILD_DIR/bench/bench_model" "$dir/build/bench/bench_model"
ln -sf /bin/false "$dir/build/bench/compare_scores"
! TEC_BUILD_DIR=$dir/build bench models || fail "a wrong result was not noticed"
echo "bench: ok"
