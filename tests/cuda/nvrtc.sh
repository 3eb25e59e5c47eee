#!/bin/bash
# nvrtc -- NVRTC takes the kernels for each architecture, and the machine code has the instructions that the text asks for.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda

fail() {
    echo "nvrtc: $*" >&2
    exit 1
}

for arch in sm_75 sm_80 sm_90 sm_90a; do
    for kernel in tests/tools/gpu/*.te; do
        "$TEC" te "$kernel" --target "cuda -arch=$arch" -o "$dir/k.tec" || fail "$kernel for $arch (scripts/packages --install cuda)"
        "$TEC" inspect "$dir/k.tec" >"$dir/out"
        grep -qF "target cuda -arch=$arch" "$dir/out" || fail "$kernel: no module for $arch"
    done
done
if "$TEC" te tests/tools/gpu/map.te --target 'cuda -arch=sm_1' -o "$dir/k.tec" 2>"$dir/out"; then fail "an architecture that is none"; fi
grep -q "sm_80" "$dir/out" || { cat "$dir/out"; fail "does not list the architectures"; }
echo "nvrtc: ok"
