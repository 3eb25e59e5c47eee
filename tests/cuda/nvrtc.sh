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
# Architectures that releases before 12.8 lack.
for arch in sm_100 sm_120; do
    for kernel in tests/tools/gpu/*.te; do
        "$TEC" te "$kernel" --target "cuda -arch=$arch" -o "$dir/k.tec" 2>"$dir/out" && continue
        grep -q "NVRTC .* does not compile for '$arch'" "$dir/out" || { cat "$dir/out"; fail "$kernel for $arch"; }
        echo "nvrtc: left out: $(cat "$dir/out")"
    done
done
# Text for later devices lies beside the machine code, but where the instructions are of one architecture alone.
for arch in sm_75 sm_80 sm_90 sm_90a sm_80,sm_90a; do
    "$TEC" te tests/tools/gpu/map.te --target "cuda -arch=$arch" -o "$dir/k.tec"
    grep -ao '^\.target sm_[0-9a-z]*' "$dir/k.tec" >"$dir/out" || true
    case $arch in
    sm_90a) expected= ;;
    *) expected=".target ${arch%,*}" ;;
    esac
    [ "$(cat "$dir/out")" = "$expected" ] || { cat "$dir/out"; fail "PTX of a module for $arch"; }
done
if "$TEC" te tests/tools/gpu/map.te --target 'cuda -arch=sm_1' -o "$dir/k.tec" 2>"$dir/out"; then fail "an architecture that is none"; fi
grep -q "sm_80" "$dir/out" || { cat "$dir/out"; fail "does not list the architectures"; }
echo "nvrtc: ok"
