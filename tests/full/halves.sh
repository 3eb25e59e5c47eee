#!/bin/bash
# halves -- every network of bench/models/make_models.py that is not large passes `tec check` in float16 and in bfloat16, on this machine's
# CPU and on CPUs with fewer instructions for 16 bits: AVX2 with F16C, and SSE2, which converts neither.
#
# Needs PyTorch and build/engines (scripts/packages --install bench). TEC_NETWORKS="NAME ...": these alone.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "halves: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}

/usr/bin/python3 -c 'import torch, onnx' 2>"$dir/out" || fail "PyTorch is not installed (scripts/packages --install bench)"
[ -x build/engines/bin/python ] || fail "build/engines is not there (scripts/packages --install bench)"
targets=(native)
for cpu in haswell x86-64; do
    [ "$(uname -m)" != x86_64 ] || targets+=("llvm -mcpu=$cpu")
done
for name in ${TEC_NETWORKS:-digits dqn dcgan lstm16 bert_small bert_small_dynamic mobilenet_v1 resnet18 resnet50}; do
    /usr/bin/python3 bench/models/make_models.py "$dir/f32" "$name" >"$dir/out" 2>&1 || fail "making $name"
    for type in f16 bf16; do
        build/engines/bin/python bench/models/halve.py $type "$dir/f32/$name" "$dir/$type" >"$dir/out" 2>&1 || fail "halving $name"
        "$TEC" inspect --graph read "$dir/$type/model.onnx" >"$dir/out" 2>&1 || fail "$name in $type"
        grep -q "$type\\[" "$dir/out" || fail "$name has no tensor of $type"
        for target in "${targets[@]}"; do
            "$TEC" check --jobs 1 --timeout 1800 --target "$target" "$dir/$type" >"$dir/out" 2>&1 || fail "$name in $type for $target"
            grep -q '^1 passed, 0 failed, 0 unsupported' "$dir/out" || fail "$name in $type for $target"
        done
        rm -rf "${dir:?}/$type"
    done
    echo "$name: float16 and bfloat16"
    rm -rf "${dir:?}/f32"
done
echo "halves: ok"
