#!/bin/bash
# vectors -- a vectorised loop of a CUDA kernel asks memory for 4 to 16 bytes at once, in the emulation and in the machine code,
# with the results of single elements. Lanes that are no neighbours, or whose vectors do not begin at multiples, stay apart.
set -eu
. tests/cuda/emulation.inc
. tests/cuda/disassembly.inc

fail() {
    echo "vectors: $*" >&2
    [ ! -f "$dir/out" ] || cat "$dir/out" >&2
    exit 1
}

# checked WHAT REQUESTS SED: of the kernel so edited, with n = 3 rows; how often warps ask for global memory.
checked() {
    sed "$3" "${kernel:-$kernels/vectors.te}" >"$dir/k.te"
    rm -f "$dir/counts"
    TEC_EMULATED_COUNTS=$dir/counts LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator \
        "$TEC" te "$dir/k.te" --target "cuda -arch=sm_80" --dim n=3 --check >"$dir/out" 2>&1 || fail "$1"
    read -r _ _ requests _ <"$dir/counts"
    echo "$1: $requests requests"
    [ "$requests" = "$2" ] || fail "$1 makes $requests requests, not $2"
}

# machine WHAT INSTRUCTION...: the machine code of the kernel that was checked last has these.
machine() {
    local name=$1
    shift
    [ ! -e build/cuda/libnvrtc.so.12 ] || export TEC_CUDA=$PWD/build/cuda
    for arch in sm_75 sm_80 sm_90; do
        "$TEC" te "$dir/k.te" --target "cuda -arch=$arch" --emit registers >"$dir/out" || fail "$name for $arch"
        if grep -v ' 0 bytes spilled' "$dir/out"; then fail "$name for $arch spills"; fi
        disassemble "$dir/k.te" "cuda -arch=$arch"
        for instruction in "$@"; do
            grep -qE " $instruction" "$dir/out" || fail "no $instruction in $name for $arch"
        done
    done
}

# Of 3 rows of 1,024 elements, two operands and a result: 3 * 3 * 1024 / 32 / lanes.
checked "single elements" 288 's/vectorize(x2)/unroll(x2)/; s/32, 4/32, 1/'
checked "f32 x 4" 72 ''
machine "f32 x 4" 'LDG\.E\.128' 'STG\.E\.128'
checked "f32 x 2" 144 's/32, 4/32, 2/'
machine "f32 x 2" 'LDG\.E\.64' 'STG\.E\.64'
checked "f32 x 8" 72 's/32, 4/32, 8/' # two pieces of 16 bytes
checked "f64 x 2" 144 's/\([0-9]\.[0-9]\)/f64(\1)/g; s/: f32/: f64/g; s/32, 4/32, 2/'
machine "f64 x 2" 'LDG\.E\.128' 'STG\.E\.128'
checked "i32 x 4" 72 's/f32/i32/g; s/0\.5/7/; s/2\.0/1234567890/; s/exp(C\[y, x\])/-C[y, x]/; s/ \/ 3\.0/ * 1000003/'
for type in i8 u8; do
    for lanes in 4 8 16; do
        checked "$type x $lanes" $((288 / lanes)) "s/f32/$type/g; s/0\\.5/$type(7)/; s/2\\.0/$type(99)/; s/exp(C\\[y, x\\])/C[y, x] * B[y, x]/
            s/ \\/ 3\\.0//; s/32, 4/32, $lanes/"
    done
done
machine "u8 x 16" 'LDG\.E\.128' 'STG\.E\.128'
for type in i16 u16; do
    for lanes in 2 4 8 16; do # 16: two pieces of 16 bytes
        checked "$type x $lanes" $((288 / (lanes < 8 ? lanes : 8))) "s/f32/$type/g; s/0\\.5/$type(7)/; s/2\\.0/$type(99)/
            s/exp(C\\[y, x\\])/C[y, x] * B[y, x]/; s/ \\/ 3\\.0//; s/32, 4/32, $lanes/"
    done
done
machine "u16 x 16" 'LDG\.E\.128' 'STG\.E\.128'
# Floats of 16 bits are computed with as f32, one by one.
for type in f16 bf16; do checked "$type x 4" 288 "s/\\([0-9]\\.[0-9]\\)/$type(\\1)/g; s/: f32/: $type/g"; done
checked "i64 x 2" 144 's/f32/i64/g; s/0\.5/i64(7)/; s/2\.0/i64(1234567890123)/; s/exp(C\[y, x\])/-C[y, x]/; s/ \/ 3\.0//; s/32, 4/32, 2/'
# A row of 1,022: every second one begins between two vectors, and each element is asked for by itself; the last of a
# row are guarded, one by one.
checked "rows that are no vectors" 288 's/1024/1022/g'
# Channels of a depthwise convolution, four by four: for each of 3 * 4 places 9 of X and of W, and a result; 16 threads or 64.
cp tests/tools/gpu/depthwise_vectors.te "$dir/depthwise.te"
kernel=$dir/depthwise.te checked "depthwise x 4" 228 ''
kernel=$dir/depthwise.te checked "depthwise" 456 's/vectorize(c2)/unroll(c2)/; s/_, 4)/_, 1)/; s/vectorize(Y.c)/unroll(Y.c)/'
# Casts: the vectors of both types.
checked "from ints to floats" 72 's/A: f32/A: i8/; s/A\[y, x\]/f32(A[y, x])/g'
# Arguments that begin between two vectors: two of the four are not asked for as vectors, which would make 96
# requests, and the results are the same.
for front in '' 'Z: f32[4], '; do
    sed "s/def f(/&$front/" tests/tools/gpu/unaligned.te >"$dir/k.te"
    rm -f "$dir/counts"
    TEC_EMULATED_COUNTS=$dir/counts LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator \
        "$TEC" fuzz --worker --target "cuda -arch=sm_80" --file "$dir/k.te" >"$dir/out" || fail "unaligned"
    [ "$(cut -f2,4 "$dir/out")" = "0	0" ] || fail "unaligned arguments give wrong results"
    read -r _ _ requests _ <"$dir/counts"
    echo "unaligned: $requests requests"
    [ "$requests" -gt 96 ] || fail "unaligned arguments are asked for as vectors"
done
echo "vectors: ok"
