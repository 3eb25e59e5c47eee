#!/bin/bash
# networks -- a whole network on devices: NVRTC compiles ResNet-18 for two architectures, no operator stays on the host, and no kernel needs
# the stack of a thread, where spilled registers go; on PoCL it gives the scores of the CPU. tests/full/batches.sh: all networks.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda

fail() {
    echo "cuda networks: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}
# scores MODULE FILE: what the module gives for the model's input.
scores() {
    "$TEC" run "$1" --input "input=$dir/resnet18/test_data_set_0/input_0.pb" --repeat 1 --out "$dir/results" --format pb >"$dir/out" 2>&1 || fail "running $1"
    mv "$dir/results/output.pb" "$2"
}

"$TEC_BUILD_DIR/bench/write_resnet18" "$dir"
model=$dir/resnet18/model.onnx
for arch in sm_80 sm_90a; do
    "$TEC" compile "$model" --target "cuda -arch=$arch" --place strict --quiet -o "$dir/net.tec" 2>"$dir/out" || fail "compiling for $arch (scripts/packages --install cuda)"
    /usr/bin/python3 tests/cuda/usage.py "$dir/net.tec" >"$dir/out"
    [ "$(grep -c '^tec_k' "$dir/out")" -ge 15 ] || fail "$arch: the cubins are not found"
    awk '$1 ~ /^tec_k/ && ($2 < 8 || $2 > 128 || $3 > 0) { bad = 1 } END { exit bad }' "$dir/out" || fail "$arch: a kernel spills, or takes many registers"
    awk -v arch=$arch '$1 ~ /^tec_k/ { n++; if ($2 > most) most = $2 } END { print "ResNet-18 for " arch ": " n " kernels, at most " most " registers, no stack" }' "$dir/out"
done
"$TEC" compile "$model" --quiet -o "$dir/host.tec" 2>"$dir/out" || fail "compiling for the CPU"
"$TEC" compile "$model" --target "opencl -device=pocl" --place strict --quiet -o "$dir/net.tec" 2>"$dir/out" || fail "compiling for PoCL"
scores "$dir/host.tec" "$dir/host.pb"
scores "$dir/net.tec" "$dir/device.pb"
"$TEC_BUILD_DIR/bench/compare_scores" "$dir/device.pb" "$dir/host.pb" >"$dir/out" 2>&1 || fail "PoCL gives other scores"
echo "cuda networks: ok"
