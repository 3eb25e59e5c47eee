#!/bin/bash
# armv7 -- a kernel for 32-bit Arm is an object that runs, on an emulated processor, with the helpers it asks for.
set -eu
for program in qemu-arm clang-19 ld.lld-19; do
    command -v $program >/dev/null || { echo "no $program: scripts/packages --install test"; exit 1; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
here=tests/targets/alone

clang-19 --target=armv7-linux-gnueabihf -mcpu=cortex-a9 -O1 -ffreestanding -fno-builtin -marm -Iinclude \
    -c $here/run.c -o "$dir/run.o"
for cpu in cortex-a9 cortex-a7 cortex-a15 cortex-a53; do
    target="llvm -mtriple=armv7-linux-gnueabihf -mcpu=$cpu"
    "$TEC" te $here/product.te --target "$target" --emit obj -o "$dir/product.o"
    ld.lld-19 -static -e begin "$dir/run.o" "$dir/product.o" -o "$dir/run"
    status=0
    qemu-arm -cpu max "$dir/run" || status=$?
    [ $status = 0 ] || { echo "$target: the kernel ends with $status (tests/targets/alone/run.c)"; exit 1; }
done

# Strict floating point keeps denormals, which NEON cannot.
said=$("$TEC" te $here/product.te --target "$target" --strict -o "$dir/product.tec" 2>&1) &&
    { echo "strict code for armv7 was made"; exit 1; }
grep -q "strict floating point needs denormals, but the vector units of '.*armv7.*' always treat denormals as 0" <<<"$said" ||
    { echo "not the message: $said"; exit 1; }
