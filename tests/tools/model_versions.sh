#!/bin/bash
# model_versions -- tec compile --dispatch: products of models and programs get versions for the remainders of a symbol, which give
# what a single version gives at every remainder; what can have none is told.
set -eu
. tests/tools/same.inc
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "model_versions: $*" >&2
    [ ! -f out ] || tail -n 20 out >&2
    exit 1
}

/usr/bin/python3 - <<'PY'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

r = np.random.default_rng(1)
weights = [numpy_helper.from_array(r.random(shape, np.float32), name)
           for name, shape in (('w', (24, 16)), ('b', (16,)), ('v', (16, 8)))]
tensor = helper.make_tensor_value_info
nodes = [helper.make_node('Gemm', ['x', 'w', 'b'], ['h']), helper.make_node('Relu', ['h'], ['a']),
         helper.make_node('MatMul', ['a', 'v'], ['y'])]
graph = helper.make_graph(nodes, 'dense', [tensor('x', TensorProto.FLOAT, ['n', 24])],
                          [tensor('y', TensorProto.FLOAT, ['n', 8])], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)]), 'dense.onnx')
for n in range(1, 20):
    np.save(f'x{n}.npy', r.random((n, 24), np.float32))
np.save('w.npy', r.random((24, 16), np.float32))
np.save('go.npy', np.array(True))
PY
cat >twice.tecp <<'TECP'
def main(x: f32[n, 24], w: f32[24, 16], go: bool) -> f32[n, 16] {
  if (go) { matmul(x, w) } else { matmul(x, w) }
}
TECP

"$TEC" compile --quiet dense.onnx -o plain.tec
"$TEC" compile dense.onnx --dispatch n%8 -o versions.tec 2>out || fail "compile"
[ "$(grep -cE "^'.*' has 8 versions$" out)" = 2 ] || fail "not two kernels with 8 versions"
[ "$(stat -c %s versions.tec)" -gt "$(stat -c %s plain.tec)" ] || fail "the versions take no place"
"$TEC" compile --quiet twice.tecp -o plain_program.tec
"$TEC" compile twice.tecp --dispatch n%8=1,3 -o versions_program.tec 2>out || fail "compile the program"
grep -qE "^'.*' has 2 versions$" out || fail "no versions in the program"
for n in $(seq 1 19); do
    for module in plain versions; do
        rm -rf "$module" "${module}_program"
        "$TEC" run $module.tec --input "x=x$n.npy" --repeat 1 --out $module >out 2>&1 || fail "$module for n = $n"
        "$TEC" run ${module}_program.tec --input "x=x$n.npy" --input w=w.npy --input go=go.npy --repeat 1 --out ${module}_program \
            >out 2>&1 || fail "the program $module for n = $n"
    done
    same plain versions
    same plain_program versions_program
done

refuses() { # words, then the options
    local words=$1
    shift
    if "$TEC" compile dense.onnx -o no.tec "$@" >out 2>&1; then fail "takes $*"; fi
    grep -qF -- "$words" out || fail "'$*' does not say '$words'"
}
refuses "dispatch 'm%8': no product or convolution of the host has this symbol" --dispatch m%8
refuses "dispatch 'n%8': no product or convolution of the host has this symbol" --dispatch n%8 --dim n=4
refuses "no kernel can have the versions: " --dispatch n%1
refuses "no kernel can have the versions: " --dispatch n%8=9
echo "model_versions: ok"
