#!/bin/bash
# tune_values -- tec tune --dim NAME=N,N: a kernel stays symbolic and gets a version for each value, with a schedule that was found for
# this value alone; builds of the symbolic kernel and model use them, and results are those of a build without. What is wrong with a
# list is told.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

refuses() { # words, then the options of tec tune
    local words=$1
    shift
    ! "$TEC" tune --records no.db "$@" >out 2>&1 || { echo "tune_values: '$*' is taken"; exit 1; }
    grep -qF -- "$words" out || { cat out; echo "tune_values: '$*' does not say '$words'"; exit 1; }
}

has() { # words, in `out`
    grep -qF -- "$1" out || { cat out; echo "tune_values: '$1' is missing"; exit 1; }
}

cat >dense.te <<'TE'
def dense(n, X: f32[n, 24], W: f32[24, 16]) where n >= 1 {
  Y[i, j] = sum[k](X[i, k] * W[k, j])
  return Y
}
TE
printf '1 3\n8 1\n' >lengths
"$TEC" tune dense.te --records t.db --dim n=8,1 --histogram lengths --trials 8 --threads 1 >out 2>err || { cat err; exit 1; }
has "dense (n = 1)"
has "dense (n = 8)"
"$TEC" records check t.db >out
"$TEC" te dense.te --records t.db --threads 1 -o versions.tec 2>err
grep -qF "'dense' has the schedule of its record, one for each of 5 ranges of 'n'" err || { cat err; exit 1; }
"$TEC" te dense.te --threads 1 -o plain.tec 2>err
"$TEC" inspect versions.tec >out
has "  n <= 1: function dense (n == 1)"
has "  n <= 7: function dense"
has "  n <= 8: function dense (n == 8)"
has "  input  X: f32[8, 24]"
for n in 1 2 7 8 9 30; do
    for name in versions plain; do
        "$TEC" run $name.tec --dim n=$n --repeat 1 --out $name.$n --format npy >out 2>&1 || { cat out; exit 1; }
    done
    /usr/bin/python3 - versions.$n plain.$n <<'PY' || { echo "tune_values: other results for n = $n"; exit 1; }
import os
import sys

import numpy as np

def read(folder):
    name, = os.listdir(folder)
    return np.load(os.path.join(folder, name))
sys.exit(not np.allclose(read(sys.argv[1]), read(sys.argv[2]), rtol=1e-4, atol=1e-4))
PY
done

# The same command goes on: nothing is measured again, and nothing new is adopted.
"$TEC" tune dense.te --records t.db --dim n=1,8 --histogram lengths --trials 8 --threads 1 >out 2>err || { cat err; exit 1; }
has "0 of 0 measurements valid"

# Another value stands beside them.
"$TEC" tune dense.te --records t.db --dim n=2,8 --trials 4 --threads 1 >out 2>err || { cat err; exit 1; }
"$TEC" te dense.te --records t.db --threads 1 -o more.tec 2>err
"$TEC" inspect more.tec >out
has "  n <= 1: function dense (n == 1)"
has "  n <= 2: function dense (n == 2)"

expected="expected at most 16 different extents of 1 or more, as in 1,8,32"
refuses "--dim n: $expected, found '1,1'" dense.te --dim n=1,1
refuses "--dim n: $expected, found '1,'" dense.te --dim n=1,
refuses "--dim n: $expected, found '0,4'" dense.te --dim n=0,4
refuses "--dim n: $expected, found '1,x'" dense.te --dim n=1,x
refuses "--dim n: $expected, found '1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17'" dense.te --dim n=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
refuses "--dim m: no kernel has a symbol of this name" dense.te --dim n=1,4 --dim m=1,4
echo "tune_values: ok"
