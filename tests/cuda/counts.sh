#!/bin/bash
# counts -- what the emulation counts of memory: the canonical product asks for each byte of global memory in as few
# transactions as its bytes need and meets no conflict of banks; without shared memory it takes more than six times as many
# (figure 7 of the TVM paper). A tile read across its rows has conflicts. NVRTC spills none of the canonical product.
set -eu
. tests/cuda/emulation.inc

fail() {
    echo "counts: $*" >&2
    exit 1
}

# count FILE [OPTIONS]: requests, transactions, fewest, conflicts of its first launch.
count() {
    rm -f "$dir/counts"
    TEC_EMULATED_COUNTS=$dir/counts LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator \
        "$TEC" te "$1" --target "cuda -arch=sm_80" --check "${@:2}" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "$1"; }
    read -r _ _ requests transactions fewest _ _ conflicts <"$dir/counts"
    echo "$(basename "$1" .te): $transactions transactions, $fewest needed, $conflicts conflicts"
}

count $kernels/canonical.te
[ "$transactions" = "$fewest" ] || fail "the canonical product is not coalesced"
[ "$conflicts" = 0 ] || fail "the canonical product has conflicts of banks"
shared=$transactions
sed '/cache_read/d; /cache.shared/d; /fuse\|^  a0\|^  b0\|bind(a\|bind(b/d' $kernels/canonical.te >"$dir/direct.te"
count "$dir/direct.te"
[ "$transactions" -gt $((6 * shared)) ] || fail "shared memory saves too little"
# A thread's row in place of its column: 16 threads read 16 rows of the tile, a multiple of 32 words apart.
sed 's/A\[r, 16383 - i\] + 1.0/A[r, i % 512 * 32 + i \/ 512]/; s/i: 16384/i: 16384/' $kernels/large_shared.te | sed 's/i \/ 512/floordiv(i, 512)/' >"$dir/across.te"
count "$dir/across.te" --dim n=1
[ "$conflicts" -gt 1000 ] || fail "32 words of one bank are no conflict"
[ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda
for arch in sm_75 sm_80 sm_90; do
    "$TEC" te $kernels/canonical.te --target "cuda -arch=$arch" --emit registers >"$dir/out"
    grep -q '^tec_k0_canonical_0: [0-9]* registers, 0 bytes spilled, 8192 bytes of shared memory$' "$dir/out" || { cat "$dir/out"; fail "$arch"; }
done
# Default schedules: at most 9/4 of the fewest transactions (rows with a border begin between two of them), no conflicts and no
# spills. Of the pointwise one only the copy has conflicts, where a warp goes from one row of 55 to the next. Pools
# without a border have none; those with one have some, perhaps since windows leave out the taps beyond the border, so that
# the k-th taps of two threads, which are counted together, are not the same.
for name in product transposed transposed_both gemv conv depthwise strided strided_depthwise strided_pointwise \
    strided_border max_pool average_pool softmax transpose columns total elementwise; do
    count $kernels/default/$name.te
    [ "$transactions" -le $((9 * fewest / 4)) ] || fail "the default $name is not coalesced"
    case $name in
    strided_pointwise) most=500 ;;
    *_pool) most=1760 ;;
    *) most=0 ;;
    esac
    [ "$conflicts" -le $most ] || fail "the default $name has conflicts of banks"
    launches=$([ $name = total ] && echo 2 || echo 1)
    [ "$(wc -l <"$dir/counts")" = "$launches" ] || fail "the default $name makes other launches than $launches"
    case $name in
    transpose | columns) [ "$transactions" = "$fewest" ] || fail "the default $name is not coalesced" ;;
    elementwise) # each warp asks once for 128 elements of A, b, B and C
        [ "$requests" = 8192 ] && [ "$transactions" = "$fewest" ] || fail "$name asks $requests times" ;;
    *_pool) [ "$transactions" -le 25616 ] || fail "threads of the default $name fetch their windows alone" ;;
    strided_depthwise) [ "$transactions" -le 28576 ] || fail "blocks of the reduction copy rows again" ;;
    total) [ "$transactions" -le 125300 ] || fail "the parts of the sum do not begin where transactions do" ;;
    esac
    for arch in sm_75 sm_80 sm_90; do
        "$TEC" te $kernels/default/$name.te --target "cuda -arch=$arch" --emit registers >"$dir/out"
        [ "$(grep -c "^tec_k0_${name}_[01]: [0-9]* registers, 0 bytes spilled, " "$dir/out")" = "$launches" ] || { cat "$dir/out"; fail "$name on $arch"; }
        [ "$(wc -l <"$dir/out")" = "$launches" ] || { cat "$dir/out"; fail "$name on $arch"; }
    done
done
echo "counts: ok"
