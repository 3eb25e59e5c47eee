#!/bin/bash
# faults -- the emulation finds what would be wrong on a GPU: each fault is an edit of the kernel's text.
set -eu
. tests/cuda/emulation.inc

fail() {
    echo "faults: $*" >&2
    cat "$dir/out" >&2
    exit 1
}
run() { # FILE N: in the emulation, with the edit in TEC_EMULATED_EDIT
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator TEC_EMULATED_CAPABILITY=${3-80} \
        "$TEC" te "$1" --target "cuda -arch=sm_${3-80}${4-}" --dim "n=$2" --check >"$dir/out" 2>&1
}
# found WHAT EDIT FILE N [CAPABILITY [a]]: right as it is, wrong with the edit.
found() {
    [ "$last" = "$3 $4" ] || run "$3" "$4" "${@:5}" || fail "$3 is wrong without a fault"
    last="$3 $4"
    TEC_EMULATED_EDIT=$2 run "$3" "$4" "${@:5}" && fail "not found: $1"
    grep -qE 'differs|expected|not the same|different|wait for them|redefinition|launch' "$dir/out" || fail "$1: found for another reason"
    echo "found: $1"
}
last=

cat >"$dir/sum.te" <<'END'
def sum(n, A: f32[n, 64]) {
  S[r] = sum[k](A[r, k])
  return S
}
schedule sum {
  bind(S.r, blockIdx.x)
  k0, k1 = split(S.k, _, 32)
  bind(k1, threadIdx.x)
}
END
found "a missing barrier" 's/tec_barrier\(\)//' $kernels/mma_f16.te 3
found "a fragment read from its neighbour" 's/tec_load_b_rows\(&B_cache_shared\[8\]/tec_load_b_rows(\&B_cache_shared[0]/' $kernels/mma_f16.te 3
found "swapped operands of mma" 's/tec_mma_f16\(([^,]*), ([^,]*),/tec_mma_f16(\2, \1,/' $kernels/mma_f16.te 3
found "a wrong second tile of sums" 's/C_cache_local\[4\]\);/C_cache_local[0]);/' $kernels/mma_f16.te 3
found "swapped operands of mma on bytes" 's/tec_mma_s8\(([^,]*), ([^,]*),/tec_mma_s8(\2, \1,/' $kernels/mma_s8.te 3
found "swapped operands of wgmma" 's/tec_wgmma_f16\(([^,]*), 128, 64, ([^,]*),/tec_wgmma_f16(\2, 128, 64, \1,/' $kernels/wgmma_f16.te 2 90 a
found "wrong distances of core matrices" 's/, 128, 64, &/, 64, 128, \&/' $kernels/wgmma_f16.te 2 90 a
found "a missing barrier behind the copy engine" 's/tec_barrier\(\)//' $kernels/bulk.te 3 90
found "a wrong shuffle width" 's/tec_shuffle_xor\((.*), \(int\)\(([0-9]+)\)/tec_shuffle_xor(\1, \2 \/ 2/' "$dir/sum.te" 3
sed 's/64/50/' "$dir/sum.te" >"$dir/guarded.te"
found "a dropped guard" 's/^( *)if \(.*\{/\1{/; s/[a-z0-9_ ()+*-]+ < 50 \?/true ?/' "$dir/guarded.te" 3
found "a missing barrier between tiles" 's/tec_barrier\(\)//' tests/tools/gpu/product.te 37
found "a store of four elements at a wrong place" 's/tec_copy_16\((.*), &B\[/tec_copy_16(\1, \&B[4 ^ /' $kernels/copies.te 3
echo "faults: ok"
