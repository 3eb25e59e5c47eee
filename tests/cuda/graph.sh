#!/bin/bash
# graph -- models compiled for CUDA run on the emulated device and give what the CPU gives; copies, plans and placement are
# shown as for OpenCL; a slice of the ONNX backend tests runs there, and NVRTC compiles it for each architecture.
# With TEC_TEST_FULL: the four suites.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
data=/usr/share/libonnx-testdata/data
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$TEC_BUILD_DIR/tests/cuda

fail() {
    echo "cuda graph: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}
says() {
    grep -qE -- "$1" "$dir/out" || fail "does not say '$1'"
}
emulated() {
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator "$TEC" "$@"
}

[ -d "$data/node" ] || fail "libonnx-testdata is not installed: $data is missing"
model=$data/node/test_relu/model.onnx

# The same bytes from both, and what runs where.
emulated compile "$model" --target "cuda -arch=sm_80" -o "$dir/device.tec" 2>"$dir/out" || fail "compile"
says 'for cuda -arch=sm_80'
"$TEC" compile "$model" --quiet -o "$dir/host.tec"
emulated run "$dir/device.tec" --out "$dir/a" --repeat 2 --profile >"$dir/out"
says 'copy \(x\)'
says 'relu \[3, 4, 5\] \(y\)'
emulated run "$dir/device.tec" --device cuda:0 --out "$dir/a" --repeat 1 >/dev/null
"$TEC" run "$dir/host.tec" --out "$dir/b" --repeat 1 >/dev/null
cmp "$dir/a/y.npy" "$dir/b/y.npy" || fail "the device gives other results"
"$TEC" inspect "$dir/device.tec" >"$dir/out"
says 'on cuda: [0-9]+ bytes for intermediate values'
says 'step 0: copy \(x\) by copy from the host to cuda'
says 'step 1: relu \[3, 4, 5\] \(y\) by relu on cuda'
says 'step 2: copy \(y\) by copy from cuda to the host'
if emulated run "$dir/device.tec" --device cuda:7 >"$dir/out" 2>&1; then fail "ran on a device that is not there"; fi
says "there is no device 'cuda:7'"
TEC_EMULATED_CAPABILITY=75 emulated run "$dir/device.tec" >"$dir/out" 2>&1 && fail "code for sm_80 ran on 7.5"
says "made for 'cuda -arch=sm_80' and 'cuda -arch=compute_80', which this device is not: .*compute capability 7.5"

# A device that came later than the module: the driver compiles the PTX. sm_90a has instructions that no later device has,
# so its module has none.
for capability in 80 90 100 120; do
    TEC_EMULATED_CAPABILITY=$capability emulated run "$dir/device.tec" --out "$dir/a" --repeat 1 >"$dir/out" || fail "later on $capability"
    cmp "$dir/a/y.npy" "$dir/b/y.npy" || fail "a device of capability $capability gives other results"
done
"$TEC" inspect "$dir/device.tec" >"$dir/out"
says '^device code for cuda -arch=compute_80: 1 kernel, [0-9]+ bytes of PTX, for later devices$'
emulated compile "$model" --target "cuda -arch=sm_90a" --quiet -o "$dir/own.tec"
TEC_EMULATED_CAPABILITY=90 emulated run "$dir/own.tec" --repeat 1 >"$dir/out" || fail "sm_90a"
TEC_EMULATED_CAPABILITY=100 emulated run "$dir/own.tec" >"$dir/out" 2>&1 && fail "code for sm_90a ran on 10.0"
says "made for 'cuda -arch=sm_90a', which this device is not: .*compute capability 10.0"
for arch in sm_100 sm_120; do
    emulated compile "$model" --target "cuda -arch=$arch" --quiet -o "$dir/new.tec"
    TEC_EMULATED_CAPABILITY=${arch#sm_} emulated run "$dir/new.tec" --out "$dir/a" --repeat 1 >"$dir/out" || fail "$arch"
    cmp "$dir/a/y.npy" "$dir/b/y.npy" || fail "$arch gives other results"
done

# Launches that follow each other are recorded in the second run and repeated as a whole from then on; a profile runs
# step by step. A fault in a repeated list is told as any other.
emulated compile "$data/node/test_lstm_defaults/model.onnx" --target "cuda -arch=sm_80" --quiet -o "$dir/lstm.tec"
TEC_EMULATED_GRAPHS=$dir/graphs emulated run "$dir/lstm.tec" --out "$dir/a" --repeat 5 >"$dir/out"
[ "$(sort -u "$dir/graphs" | wc -l)" = 1 ] && [ "$(wc -l <"$dir/graphs")" -ge 5 ] && [ "$(head -n 1 "$dir/graphs")" -ge 2 ] ||
    fail "the lists of launches are $(sort "$dir/graphs" | uniq -c)"
rm "$dir/graphs"
TEC_EMULATED_GRAPHS=$dir/graphs emulated run "$dir/lstm.tec" --out "$dir/b" --repeat 5 --profile >"$dir/out"
[ ! -e "$dir/graphs" ] || fail "the steps of a profile were recorded"
cmp "$dir/a/Y_h.npy" "$dir/b/Y_h.npy" || fail "repeated launches give other results"
if TEC_EMULATED_FAULT=30 emulated run "$dir/lstm.tec" --repeat 9 >"$dir/out" 2>&1; then fail "a fault in a list was not told"; fi
says 'cuda:0: cannot .*: CUDA_ERROR_ILLEGAL_ADDRESS; a kernel failed, and this process can no longer use the device'

# Code for two architectures in one module: each device takes its own, and one that has none is told both.
emulated compile "$model" --target "cuda -arch=sm_90a,sm_80" -o "$dir/fat.tec" 2>"$dir/out" || fail "compile for two"
says 'for cuda -arch=sm_80,sm_90a'
for capability in 80 86 90; do
    rm -rf "$dir/a"
    TEC_EMULATED_CAPABILITY=$capability emulated run "$dir/fat.tec" --out "$dir/a" --repeat 1 >"$dir/out" || fail "two on $capability"
    cmp "$dir/a/y.npy" "$dir/b/y.npy" || fail "the device of capability $capability gives other results"
done
TEC_EMULATED_CAPABILITY=75 emulated run "$dir/fat.tec" >"$dir/out" 2>&1 && fail "code for sm_80 and sm_90a ran on 7.5"
says "made for 'cuda -arch=sm_90a', 'cuda -arch=sm_80' and 'cuda -arch=compute_80', which this device is not: emulated on"
"$TEC" inspect "$dir/fat.tec" >"$dir/out"
says '^target cuda -arch=sm_80,sm_90a$'
sed -nE '/^device code/s/[0-9]+ bytes/SIZE bytes/p' "$dir/out" >"$dir/pieces"
cmp "$dir/pieces" - <<'END' || fail "other pieces"
device code for cuda -arch=sm_90a: 1 kernel, SIZE bytes of machine code
device code for cuda -arch=sm_80: 1 kernel, SIZE bytes of machine code
device code for cuda -arch=compute_80: 1 kernel, SIZE bytes of PTX, for later devices
END
emulated check --target "cuda -arch=sm_75,sm_80" "$data"/node/test_{softmax_axis_1,gemm_all_attributes} >"$dir/out" || fail "check for two"
says '^2 passed, 0 failed'
emulated te tests/tools/gpu/map.te --target "cuda -arch=sm_75,sm_80" --dim n=5 --check >"$dir/out" 2>&1 || fail "te for two"

# Control flow: the kernels of loops, conditions and a program over trees run there, the rest on the host.
emulated check --target "cuda -arch=sm_80" "$data"/node/test_{scan9_sum,loop11,if} >"$dir/out" || fail "control flow"
says '^([1-9][0-9]*) of \1 operators ran on the device \(100.0 %\)$'
says '^3 passed, 0 failed, 0 unsupported$'
cat >"$dir/sum.tecp" <<'TECP'
type Tree = Leaf(f32[2]) | Node(Tree, Tree)

def main(t: Tree) -> f32[2] {
  match t {
    Leaf(x) => x * 2
    Node(l, r) => main(l) + main(r)
  }
}
TECP
echo '{"Node": [{"Leaf": [[1, 2]]}, {"Node": [{"Leaf": [[3, 4]]}, {"Leaf": [[5, -6]]}]}]}' >"$dir/t.json"
emulated compile "$dir/sum.tecp" --target "cuda -arch=sm_80" --quiet -o "$dir/sum.tec"
emulated run "$dir/sum.tec" --input "t=$dir/t.json" --repeat 1 >"$dir/out" || fail "a program"
says '^\[18, 0\]'

# A slice of the suites: none fails, all operators run there. `and` and `not` are words of C++.
cases=("$data"/node/test_{relu,and2d,not_2d,gemm_all_attributes,softmax_axis_1,conv_with_strides_padding,averagepool_2d_pads,layer_normalization_2d_axis0,gather_1,reduce_sum_keepdims_example,lstm_defaults,where_example})
[ -z "${TEC_TEST_FULL-}" ] || cases=("$data"/{node,simple,pytorch-converted,pytorch-operator}/*)
emulated check --target "cuda -arch=sm_80" "${cases[@]}" >"$dir/out" || fail "a case"
tail -n 2 "$dir/out"
[ -n "${TEC_TEST_FULL-}" ] || says '\(100.0 %\)'
[ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda
[ -n "${TEC_TEST_FULL-}" ] || cases=("$data"/node/test_{and2d,softmax_axis_1,conv_with_strides_padding,lstm_defaults})
for arch in sm_75 sm_80 sm_90a; do
    "$TEC" check --compile-only --target "cuda -arch=$arch" "${cases[@]}" >"$dir/out" || fail "NVRTC for $arch"
    says ' 0 failed'
done
"$TEC" check --compile-only --target "cuda -arch=sm_75,sm_80,sm_90a" "${cases[0]}" >"$dir/out" || fail "NVRTC for three"
says ' 0 failed'
echo "cuda graph: ok"
