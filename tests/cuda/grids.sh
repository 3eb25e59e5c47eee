#!/bin/bash
# grids -- more blocks along y or z than CUDA takes give what plain loops give, on the emulated device, which refuses such
# launches. What no grid can hold is refused by name when it is compiled.
set -eu
. tests/cuda/emulation.inc

fail() {
    echo "grids: $*" >&2
    cat "$dir/out" >&2
    exit 1
}
run() { # FILE [OPTIONS]
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator "$TEC" te "$1" --target "cuda -arch=sm_80" --check "${@:2}" >"$dir/out" 2>&1
}

for size in "5 7" "65535 1" "65536 1" "1 65536" "0 70000"; do
    read -r n m <<<"$size"
    run $kernels/grid.te --dim "n=$n" --dim "m=$m" || fail "n=$n, m=$m"
done
sed 's/add(n, m, A: f32\[n, m, 10\])/add(A: f32[70000, 2, 10])/' $kernels/grid.te >"$dir/constant.te"
run "$dir/constant.te" || fail "constant sizes"
sed 's/add(n, m, A: f32\[n, m, 10\])/add(A: f32[70000, 70000, 10])/' $kernels/grid.te >"$dir/large.te"
if LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator "$TEC" te "$dir/large.te" --target "cuda -arch=sm_80" -o "$dir/k.tec" >"$dir/out" 2>&1; then
    fail "a grid that is too large was compiled"
fi
grep -qE "the loops over blocks from 'B.i' inwards have 14700000000 iterations: expected at most 2147483647" "$dir/out" || fail "says something else"
echo "grids: ok"
