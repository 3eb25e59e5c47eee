#!/bin/bash
# regressions -- bench/regressions tunes, compiles and compares; keeps each run, and goes on; and knows a regression when there is one.
set -eu
: "${TEC_BUILD_DIR:?}"
export TEC_BUILD_DIR
[ -x /usr/bin/python3 ] || { echo "regressions: skipped: python3 is not installed"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "regressions: $*" >&2
    cat "$dir/out" >&2
    exit 1
}

run() { # the two poolings of the first seven tasks: what they come to depends on the noise
    bench/regressions --runs 7 --only pooling --trials 4 --pairs 5 --out "$dir/r" >"$dir/out" 2>&1 || grep -q " [1-9] slower" "$dir/out" || fail "it does not run"
}
run
[ "$(wc -l <"$dir/r.csv")" = 3 ] || fail "not two runs: $(cat "$dir/r.csv")"
grep -qE '^2,pooling,"?(max|sum) .*,[0-9.]+,4,0,(yes|no),[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,(equal|faster|SLOWER)$' "$dir/r.csv" || fail "no row: $(cat "$dir/r.csv")"
sed -i 's/^2,.*/2,pooling,given,1.00,4,0,yes,1.0,2.0,0.500,0.010,0.0,SLOWER/' "$dir/r.csv"
if bench/regressions --runs 7 --only pooling --trials 4 --pairs 5 --out "$dir/r" >"$dir/out" 2>&1; then
    fail "a regression is a success"
fi
grep -q "pooling  given" "$dir/out" || fail "a run that is done was done again"
grep -qE "^2 runs: [12] adopted a schedule, of which [12] are slower" "$dir/out" || fail "the summary is another"

/usr/bin/python3 - <<'END' || fail "the verdict is another"
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('regressions', 'bench/regressions')
m = importlib.util.module_from_spec(importlib.util.spec_from_loader('regressions', loader))
loader.exec_module(m)
assert m.is_slower(-0.05, 0.03) and not m.is_slower(-0.05, 0.06) and not m.is_slower(-0.009, 0.001) and not m.is_slower(0.05, 0.01)
tasks = [m.draw_task(i, 1) for i in range(200)]
assert tasks == [m.draw_task(i, 1) for i in range(200)] and len({t[1] for t in tasks}) > 150
assert all(m.LEAST_FLOPS < t[3] <= m.MOST_FLOPS for t in tasks)
END
