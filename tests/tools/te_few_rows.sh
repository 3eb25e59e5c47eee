#!/bin/bash
# te_few_rows -- a product with a symbolic number of rows has three default schedules, one of them for one row, and gives what the
# interpreter gives at the numbers where one takes over from the other.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >f.te <<'END'
def dense(n, X: f32[n, 40], W: f32[2, 40, 32], b: f32[64]) where n >= 1 {
  C[i, j: 64] = sum[k](X[i, k] * W[floordiv(j, 32), k, j % 32])
  R[i, j] = max(C[i, j] + b[j], 0.0)
  return R
}
END
fail() {
    echo "te_few_rows: $1"
    exit 1
}

# Small integers, so that no order of a sum rounds.
rows() {
    python3 -c "
import json
print(json.dumps([[(i * 7919 + k * 13) % 37 - 20 for k in range(40)] for i in range($1)]))" >x.json
}

for target in "llvm -mcpu=x86-64-v4" "llvm -mcpu=x86-64-v3"; do
    "$TEC" te f.te -o f.tec --target "$target"
    "$TEC" inspect f.tec >functions
    [ "$(grep -c '^function dense' functions)" = 3 ] || { cat functions; fail "$target: expected three functions"; }
    grep -q '^  n <= 1: function dense (n == 1)$' functions || fail "$target: one row"
done
# On this machine, numbers around the ends of the ranges of CPUs with tiles of 6 and of 12 rows.
for n in 1 2 6 7 9 10 12 13 15 16 24 25 27 28 49; do
    rows $n
    "$TEC" te f.te --check --input X=x.json >out 2>&1 || { cat out; fail "$n rows"; }
done
"$TEC" te f.te --dispatch n%12 -o f.tec --target "llvm -mcpu=x86-64-v4"
"$TEC" inspect f.tec | grep -q '^  n <= 12: function dense$' || fail "remainders and ranges together"
echo "te_few_rows: three schedules, the same results"
