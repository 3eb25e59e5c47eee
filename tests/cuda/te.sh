#!/bin/bash
# te -- kernels in CUDA C give what plain loops on the CPU give, on the emulated device; errors that a user of CUDA meets.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$TEC_BUILD_DIR/tests/cuda TEC_CUDA=$TEC_BUILD_DIR/tests/cuda
target='cuda -arch=sm_80'

fail() {
    echo "cuda te: $*" >&2
    exit 1
}

# same NAME OPTIONS...: the kernel of tests/tools/gpu/NAME.te gives the same results there.
same() {
    local name=$1
    shift
    "$TEC" te "tests/tools/gpu/$name.te" --target "$target" --check "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "failed: $name $*"; }
    grep -q 'same results as' "$dir/out" || { cat "$dir/out"; fail "$name $*"; }
}

# refused TEXT OPTIONS...: `tec te map.te` with these options ends with an error that says so.
refused() {
    local text=$1
    shift
    if "$TEC" te tests/tools/gpu/map.te "$@" >"$dir/out" 2>&1; then fail "was accepted: $*"; fi
    grep -qF "$text" "$dir/out" || { cat "$dir/out"; fail "does not say '$text'"; }
}

"$TEC" devices >"$dir/out"
grep -q '^cuda:0 *emulated on the CPU$' "$dir/out" || { cat "$dir/out"; fail "the device is not listed"; }
same map --dim n=1
same map --dim n=37
same map --dim n=5 --device cuda:0
same tiles --dim n=13
same product --dim n=37
same two --dim n=3
same plain
same zeros --dim n=41
same one_block
same one_block_warps
"$TEC" te tests/tools/gpu/one_block_warps.te --target "$target" --emit cuda >"$dir/out"
[ "$(sed '1,/__global__/d' "$dir/out" | grep -c 'tec_shuffle_xor')" -ge 5 ] || fail "partial results are not combined in registers"
# Memory of a warp is registers: no shared memory, and shuffles from any thread.
same warp_rows --dim n=5
same warp_rows --dim n=37
same warp_turn --dim n=3
same warp_spread --dim n=3
for kernel in warp_rows warp_turn; do
    "$TEC" te "tests/tools/gpu/$kernel.te" --target "$target" --emit cuda | sed '1,/__global__/d' >"$dir/out"
    grep -q 'tec_shuffle(' "$dir/out" || fail "$kernel exchanges nothing between threads"
    if grep -q '__shared__' "$dir/out"; then fail "$kernel has memory of a warp in shared memory"; fi
done
same scan --dim n=5
same edges --dim n=21
same depthwise_vectors --dim n=3
# Below 2^15 rows and columns indices have 32 bits, beyond that 64.
same far --dim n=5 --dim m=9
same far --dim n=1099511627776 --dim m=9
"$TEC" te tests/tools/gpu/map.te --target "$target" --emit cuda >"$dir/out"
grep -q '^extern "C" __global__ __launch_bounds__(32)$' "$dir/out" || fail "no kernel"
"$TEC" te tests/tools/gpu/map.te --target "$target" --dim n=4 --time >"$dir/out" || fail "cannot be timed"
"$TEC" te tests/tools/gpu/map.te --target "$target" -o "$dir/map.tec"
"$TEC" inspect "$dir/map.tec" >"$dir/out"
grep -qF 'target cuda -arch=sm_80' "$dir/out" || fail "the module does not say what it is for"
refused "there is no device 'cuda:7'" --target "$target" --dim n=4 --check --device cuda:7
refused "was made for 'cuda -arch=sm_90' and 'cuda -arch=compute_90', which this device is not" --target 'cuda -arch=sm_90' --dim n=4 --check
TEC_CUDA=$dir refused "looked for 'libnvrtc.so.12' in $dir" --target "$target" -o "$dir/none.tec"
LD_LIBRARY_PATH='' refused "no driver: looked for 'libcuda.so.1'" --target "$target" --dim n=4 --check
# Random kernels under random schedules.
"$TEC" fuzz --target "$target" --cases 6 --seed 3 --jobs 2 --keep "$dir" >"$dir/out" || { cat "$dir/out"; fail "a random kernel is wrong"; }
if grep -q 'not called' "$dir/out"; then fail "random kernels are compiled only"; fi
echo "cuda te: ok"
