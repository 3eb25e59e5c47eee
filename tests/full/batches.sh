#!/bin/bash
# batches -- every network of bench/models/make_models.py with a symbolic batch gives PyTorch's outputs on an OpenCL device at 1, 8 and 33, and
# all operators run there; NVRTC compiles it for each architecture.
#
# Needs PyTorch (scripts/packages --install bench). TEC_NETWORKS="NAME ...": these alone.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda

fail() {
    echo "batches: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}

/usr/bin/python3 -c 'import torch, onnx' 2>"$dir/out" || fail "PyTorch is not installed (scripts/packages --install bench)"
for name in ${TEC_NETWORKS:-dqn dcgan lstm16 bert_small bert_small_dynamic mobilenet_v1 resnet18 resnet50 bert_base bert_base_dynamic}; do
    /usr/bin/python3 bench/models/make_models.py "$dir/m" "$name" --batch >"$dir/out" 2>&1 || fail "making $name"
    [ -e "$dir/m/$name/test_data_set_2/output_0.pb" ] || fail "$name has no three batches"
    "$TEC" check --jobs 1 --timeout 1800 --target "opencl -device=pocl" "$dir/m/$name" >"$dir/out" 2>&1 || fail "$name"
    grep -q '^1 passed, 0 failed, 0 unsupported' "$dir/out" && grep -q 'ran on the device (100.0 %)' "$dir/out" || fail "$name"
    for arch in sm_75 sm_80 sm_90a; do
        "$TEC" check --jobs 1 --timeout 1800 --compile-only --target "cuda -arch=$arch" "$dir/m/$name" >"$dir/out" 2>&1 || fail "$name for $arch"
        grep -q '^1 passed, 0 failed, 0 unsupported' "$dir/out" || fail "$name for $arch"
    done
    echo "$name: batches of 1, 8 and 33"
    rm -rf "${dir:?}/m"
done
echo "batches: ok"
