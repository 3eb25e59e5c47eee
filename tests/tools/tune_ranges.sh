#!/bin/bash
# tune_ranges -- tec tune --dim NAME=FROM..TO: the kernel stays symbolic, the best schedule over the extents is adopted, and builds of
# the symbolic kernel use it; a program's kernels are tuned too. Schedules for ranges become one function each, and the run chooses.
# What is wrong with a range or a histogram is told.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
target="native"

refuses() { # words, then the options of tec tune
    local words=$1
    shift
    ! "$TEC" tune --records no.db "$@" >out 2>&1 || { echo "tune_ranges: '$*' is taken"; exit 1; }
    grep -qF -- "$words" out || { cat out; echo "tune_ranges: '$*' does not say '$words'"; exit 1; }
}

cat >dense.te <<'TE'
def dense(n, X: f32[n, 24], W: f32[24, 16]) where n >= 1 {
  Y[i, j] = sum[k](X[i, k] * W[k, j])
  return Y
}
TE
printf '3 10\n40 1\n' >lengths
"$TEC" tune dense.te --target "$target" --records t.db --dim n=1..4 --histogram lengths --trials 6 --threads 1 >out 2>err || { cat err; exit 1; }
grep -qE '^dense, loss by extent: 1: [0-9.]+ %, 2: [0-9.]+ %, 4: [0-9.]+ %(; schedules for [2-4] ranges, .*)?$' out || { cat out; exit 1; }
"$TEC" te dense.te --target "$target" --records t.db --threads 1 -o dense.tec 2>err
grep -q "'dense' has the schedule of its record" err || { cat err; exit 1; }
"$TEC" run dense.tec --dim n=3 --repeat 1 >out 2>&1 || { cat out; exit 1; }

# Another schedule up to 3 and up to 9, as a record like that which tec tune writes.
"$TEC" records export t.db -o t.jsonl 2>err
/usr/bin/python3 - <<'PY'
import json
last = [r for r in map(json.loads, open('t.jsonl')) if r['tuner'] == 'adopted'][-1]
last['trace'] = 'when symbol 0 <= 3:\nwhen symbol 0 <= 9:\nparallel(Y.i)\notherwise:\nunroll(Y.j)\n'
last.pop('features', None), last.pop('features_version', None), last.pop('hash', None)
json.dump(last, open('r.jsonl', 'w'))
PY
cp t.db r.db
"$TEC" records import r.db r.jsonl --strict >out 2>&1 || { cat out; exit 1; }
"$TEC" records check r.db >out 2>&1 || { cat out; exit 1; }
"$TEC" te dense.te --target "$target" --records r.db --threads 1 -o ranged.tec 2>err
grep -q "'dense' has the schedule of its record, one for each of 3 ranges of 'n'" err || { cat err; exit 1; }
"$TEC" inspect ranged.tec >out
grep -qF '  n <= 3: function dense (n <= 3)' out && grep -qF '  n <= 9: function dense (n <= 9)' out || { cat out; exit 1; }
for n in 1 3 4 9 10 50; do
    for name in dense ranged; do
        "$TEC" run $name.tec --dim n=$n --repeat 1 --out $name.$n --format pb >out 2>&1 || { cat out; exit 1; }
    done
    /usr/bin/python3 - dense.$n ranged.$n <<'PY' || { echo "tune_ranges: other results for n = $n"; exit 1; }
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

def read(folder):
    name, = os.listdir(folder)
    return numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, name)))
sys.exit(not np.allclose(read(sys.argv[1]), read(sys.argv[2]), rtol=1e-4, atol=1e-4))
PY
done

# A record whose ranges are of a symbol that the definition does not have.
sed 's/when symbol 0/when symbol 7/g' r.jsonl >wrong.jsonl
cp t.db wrong.db
"$TEC" records import wrong.db wrong.jsonl >out 2>&1 || { cat out; exit 1; }
if "$TEC" records check wrong.db >out 2>&1; then cat out; exit 1; fi
grep -qF "its ranges are of symbol 7, but 'dense' has 1 symbols" out || { cat out; exit 1; }

cat >rows.tecp <<'TECP'
def main(x: f32[n, 24], s: f32[24]) -> f32[24] { fold(x, s, (s, row) => s * 0.5 + row) }
TECP
"$TEC" tune rows.tecp --records p.db --kernels >out
grep -q 'mul+add' out || { cat out; exit 1; }

refuses "give it a value with --dim n=N, values with --dim n=N,N, or a range with --dim n=FROM..TO" dense.te
refuses "--dim m: no kernel has a symbol of this name" dense.te --dim n=1..4 --dim m=1..4
refuses "--dim n: expected FROM..TO with 1 <= FROM <= TO, found '4..2'" dense.te --dim n=4..2
echo 'some words' >wrong
refuses "--histogram wrong: expected lines 'EXTENT COUNT'" dense.te --dim n=1..4 --histogram wrong
refuses "--histogram weighs the extents of one --dim NAME=FROM..TO or NAME=N,N, found 0" dense.te --dim n=4 --histogram lengths
echo "tune_ranges: ok"
