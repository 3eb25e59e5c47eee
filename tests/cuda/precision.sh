#!/bin/bash
# precision -- --precision: products of f32 by tensor cores and fast math only where they are asked for; what changes nothing is
# refused or said.
set -eu
. tests/cuda/emulation.inc
export LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator
target='cuda -arch=sm_80'

fail() {
    echo "cuda precision: $*" >&2
    exit 1
}

# says TEXT COMMAND...: its output has the text.
says() {
    local text=$1
    shift
    "$@" >"$dir/out" 2>&1 || true
    grep -qF -- "$text" "$dir/out" || { cat "$dir/out"; fail "does not say '$text': $*"; }
}

# The product of plain f32, with the schedule of the one that rounds by itself.
{
    echo 'def mma_tf32(n, A: f32[n, 32, 32], B: f32[n, 16, 32]) {'
    echo '  C[b, y, x] = sum[k](A[b, y, k] * B[b, x, k])'
    echo '  return C'
    echo '}'
    sed -n '/^schedule/,$p' $kernels/mma_tf32.te
} >"$dir/plain.te"
says '--precision tf32 allows this' "$TEC" te "$dir/plain.te" --target "$target" --emit cuda
for precision in tf32 fast; do
    "$TEC" te "$dir/plain.te" --target "$target" --precision $precision --emit cuda >"$dir/text" || fail "$precision is refused"
    grep -q 'tec_mma_tf32(&' "$dir/text" || fail "$precision: no tensor core"
    says 'same results as' "$TEC" te "$dir/plain.te" --target "$target" --precision $precision --dim n=3 --check
    "$TEC" te "$dir/plain.te" --target "$target -precision=$precision" -o "$dir/k.tec"
    says "target cuda -arch=sm_80 -precision=$precision" "$TEC" inspect "$dir/k.tec"
done
# A product of its own roundings needs no precision.
"$TEC" te $kernels/mma_tf32.te --target "$target" --emit cuda >"$dir/text" || fail "a definition that rounds is refused"

map=tests/tools/gpu/map.te
says 'precision tf32 changes nothing' "$TEC" te $map --target "$target" --precision tf32 -o "$dir/k.tec"
says "has no precision 'tf32': only tensor cores of sm_80" "$TEC" te $map --target 'cuda -arch=sm_75' --precision tf32 --emit tree
says "has no precision 'tf32'" "$TEC" te $map --target opencl --precision tf32 --emit tree
for command in "te $map" 'compile x.onnx' 'check x' ; do
    says "has no precision 'fast': only GPUs have it" "$TEC" $command --target native --precision fast
    says "expected exact|tf32|fast, found 'f16'" "$TEC" $command --target "$target" --precision f16
done
# Models: `check` compares as it always does, `compile` says what tf32 changes, and records of each precision are kept apart.
model=tests/models/digits/model.onnx
says 'precision tf32 changes nothing' "$TEC" compile $model --target "$target" --precision tf32 -o "$dir/k.tec"
says "target $target -precision=tf32" "$TEC" inspect "$dir/k.tec"
says '1 passed, 0 failed, 0 unsupported' "$TEC" check tests/models/digits --target "$target" --precision fast
small=/usr/share/libonnx-testdata/data/node/test_gemm_all_attributes/model.onnx
"$TEC" tune $small --target "$target" --precision fast --trials 1 --records "$dir/records" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "tune"; }
says 'precision tf32 changes nothing: no schedule has a product by tensor cores' \
    "$TEC" tune $small --target "$target" --precision tf32 --trials 1 --records "$dir/rounded"
says "it has records of 1 kernel for '$target -precision=fast'; those for this target, '$target', are of: nothing" \
    "$TEC" compile $small --target "$target" --records "$dir/records" -o "$dir/k.tec"
says ' 0 of 1 kernels have no record' "$TEC" compile $small --target "$target" --precision fast --records "$dir/records" -o "$dir/k.tec"
"$TEC" te $map --precision exact --emit tree >"$dir/out" || fail "exact is refused for a CPU"
echo "cuda precision: ok"
