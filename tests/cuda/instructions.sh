#!/bin/bash
# instructions -- each instruction of the table for CUDA: 200 random cases of it in the emulation, each a block of one launch,
# give what plain loops give; and NVRTC's machine code has the instruction, disassembled.
set -eu
. tests/cuda/emulation.inc
. tests/cuda/disassembly.inc

fail() {
    echo "instructions: $*" >&2
    [ ! -f "$dir/out" ] || cat "$dir/out" >&2
    exit 1
}

# emulated NAME ARCH [FROM TO]: of kernels/NAME.te, with the type FROM replaced by TO.
emulated() {
    sed "s/${3-@}/${4-@}/g" "$kernels/$1.te" >"$dir/k.te"
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator TEC_EMULATED_CAPABILITY=${2//[^0-9]/} \
        "$TEC" te "$dir/k.te" --target "cuda -arch=$2" --dim n=200 --check >"$dir/out" 2>&1 || fail "$* failed"
    grep -q 'same results as' "$dir/out" || fail "$*"
}

# contains NAME ARCH INSTRUCTION...: the machine code that NVRTC makes of the same kernel.
contains() {
    local name=$1 arch=$2
    shift 2
    disassemble "${name:-$dir/k.te}" "cuda -arch=$arch"
    for instruction in "$@"; do
        grep -qF " $instruction" "$dir/out" || fail "no $instruction in $(head -n 1 "$dir/k.te")"
    done
}

emulated mma_f16 sm_80
contains "" sm_80 HMMA.16816.F32 LDSM.16.M88.4 LDSM.16.MT88.2
emulated mma_f16 sm_80 f16 bf16
contains "" sm_80 HMMA.16816.F32.BF16
emulated mma_tf32 sm_80
contains "" sm_80 HMMA.1688.F32.TF32 LDSM.16.M88.2
emulated mma_s8 sm_80
contains "" sm_80 IMMA.16832.S8.S8
emulated copies sm_80
contains "" sm_80 LDGSTS.E.128 LDS.128 STG.E.128
emulated bulk sm_90
contains "" sm_90 UBLKCP
emulated wgmma_f16 sm_90a
contains "" sm_90a HGMMA.64x64x16.F32
emulated wgmma_f16 sm_90a f16 bf16
contains "" sm_90a HGMMA.64x64x16.F32.BF16
# The other element types of the copies.
for to in f16:8 bf16:8 i8:16; do
    sed "s/512/$((512 * ${to#*:} / 4))/g; s/_, 4)/_, ${to#*:})/; s/_, 4)/_, ${to#*:})/; s/f32/${to%:*}/g" $kernels/copies.te >"$dir/c.te"
    cp "$dir/c.te" "$dir/copies.te"
    kernels=$dir emulated copies sm_80
    contains "" sm_80 LDGSTS.E.128
    sed "s/256/$((64 * ${to#*:}))/g; s/_, 64)/_, $((16 * ${to#*:})))/; s/f32/${to%:*}/g; s/ + 1.0//" tests/cuda/kernels/bulk.te >"$dir/bulk.te"
    kernels=$dir emulated bulk sm_90
    contains "" sm_90 UBLKCP
done
echo "instructions: ok"
