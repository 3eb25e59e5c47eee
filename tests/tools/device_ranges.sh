#!/bin/bash
# device_ranges -- schedules for ranges of an extent on devices: a record of them becomes several lists of launches, and each call
# runs one, by functions, static graphs and programs, on OpenCL and on the emulated device of CUDA.
set -eu
. tests/tools/same.inc
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$(readlink -f "$TEC_BUILD_DIR")/tests/cuda
cd "$dir"

fail() {
    echo "device_ranges: $*" >&2
    [ ! -f out ] || tail -n 20 out >&2
    exit 1
}
emulated() {
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator "$TEC" "$@"
}

cat >dense.te <<'TE'
def dense(n, X: f32[n, 24], W: f32[24, 16]) where n >= 1 {
  Y[i, j] = sum[k](X[i, k] * W[k, j])
  return Y
}
TE
/usr/bin/python3 - <<'PY'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

w = numpy_helper.from_array(np.random.default_rng(1).random((24, 16), np.float32), 'w')
tensor = helper.make_tensor_value_info
graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'dense',
                          [tensor('x', TensorProto.FLOAT, ['n', 24])], [tensor('y', TensorProto.FLOAT, ['n', 16])], [w])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)]), 'dense.onnx')
PY
cat >twice.tecp <<'TECP'
def main(x: f32[n, 24], w: f32[24, 16], go: bool) -> f32[n, 16] {
  if (go) { matmul(x, w) } else { matmul(x, w) }
}
TECP

# A record of ranges like that which tec tune writes: up to 3 and up to 9 other schedules than above.
ranged() { # a record store, with a record of the kernel; the axes of its result
    "$TEC" records export "$1" -o one.jsonl 2>out
    /usr/bin/python3 - "$2" "$3" <<'PY'
import json
import sys
i, j = sys.argv[1:]
last = [r for r in map(json.loads, open('one.jsonl')) if r['tuner'] == 'adopted'][-1]
last['trace'] = (f'when symbol 0 <= 3:\nbind({i}, blockIdx.x)\nwhen symbol 0 <= 9:\nbind({j}, threadIdx.x)\n'
                 f'otherwise:\nbind({i}, blockIdx.x)\nbind({j}, threadIdx.x)\n')
last.pop('features', None), last.pop('features_version', None), last.pop('hash', None)
json.dump(last, open('more.jsonl', 'w'))
PY
    "$TEC" records import "$1" more.jsonl --strict >out 2>&1 || fail "import"
    "$TEC" records check "$1" >out 2>&1 || fail "a trace does not apply"
}

/usr/bin/python3 - <<'PY'
import numpy as np
for n in 1, 3, 4, 9, 10, 50:
    np.save(f'x{n}.npy', np.random.default_rng(n).random((n, 24), np.float32))
np.save('w.npy', np.random.default_rng(0).random((24, 16), np.float32))
np.save('go.npy', np.array(True))
PY
"$TEC" compile --quiet dense.onnx -o model_host.tec
"$TEC" compile --quiet twice.tecp -o program_host.tec
for target in "opencl -device=pocl" "cuda -arch=sm_80"; do
    rm -f ./*.db
    emulated tune dense.te --target "$target" --records t.db --dim n=1..4 --trials 2 >out 2>&1 || fail "tune for $target"
    grep -qE '^dense, loss by extent: 1: [0-9.]+ %' out || fail "no losses"
    ranged t.db Y.i Y.j
    emulated te dense.te --target "$target" --records t.db -o ranged.tec 2>out || fail "te"
    grep -q "'dense' has the schedule of its record, one for each of 3 ranges of 'n'" out || fail "no ranges"
    "$TEC" inspect ranged.tec >out
    [ "$(grep -cE '^  n <= [39]: function dense \(' out)" = 2 ] || fail "inspect shows no ranges"
    emulated tune dense.onnx --target "$target" --records m.db --dim n=1..4 --trials 2 >out 2>&1 || fail "tune the model for $target"
    ranged m.db matmul.m matmul.n
    emulated compile --quiet dense.onnx --target "$target" --records m.db -o model.tec >out 2>&1 || fail "compile"
    "$TEC" inspect model.tec >out
    [ "$(grep -cE '^  n <= [39]: function ' out)" = 2 ] || fail "the model has no ranges"
    emulated tune twice.tecp --target "$target" --records p.db --dim n=1..4 --trials 2 >out 2>&1 || fail "tune the program for $target"
    ranged p.db matmul.m matmul.n
    emulated compile --quiet twice.tecp --place device --target "$target" --records p.db -o program.tec >out 2>&1 || fail "compile the program"
    "$TEC" inspect program.tec >out
    [ "$(grep -cE '^  n <= [39]: function ' out)" = 2 ] || fail "the program has no ranges"
    for n in 1 3 4 9 10 50; do
        for module in model_host model; do
            rm -rf "$module.$n" "$module.$n.launches"
            TEC_EMULATED_COUNTS=$dir/$module.$n.launches emulated run "$module.tec" --input "x=x$n.npy" --repeat 1 --profile --out "$module.$n" >out 2>&1 || fail "$module for n = $n"
        done
        same "model_host.$n" "model.$n"
        for module in program_host program; do
            rm -rf "$module.$n"
            emulated run "$module.tec" --input "x=x$n.npy" --input w=w.npy --input go=go.npy --repeat 1 --profile \
                --out "$module.$n" >out 2>&1 || fail "$module for n = $n"
        done
        same "program_host.$n" "program.$n"
    done
done

# Which kernels the emulated device ran: those of a range are others, and the same all over the range.
kernels() {
    cut -d' ' -f1 "model.$1.launches" | sort -u
}
for pair in "1 3" "4 9" "10 50"; do
    read -r one other <<<"$pair"
    [ -n "$(kernels "$one")" ] && [ "$(kernels "$one")" = "$(kernels "$other")" ] || fail "n = $one and n = $other ran other kernels"
done
[ "$(kernels 3)" != "$(kernels 4)" ] && [ "$(kernels 9)" != "$(kernels 10)" ] || fail "two ranges ran the same kernels"
echo "device_ranges: ok"
