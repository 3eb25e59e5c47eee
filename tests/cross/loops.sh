#!/bin/bash
# loops -- the innermost loops of ResNet-18 and of matrix products for the CPUs of boards are vector multiply-adds: no scalar
# ones beside them, and nothing on the stack.
set -eu
. tests/cross/board.sh

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"$TEC_BUILD_DIR/bench/write_resnet18" "$room"
for n in 128 1000; do
    printf 'def product(A: f32[%d, %d], B: f32[%d, %d]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n' \
        $n $n $n $n >"$room/product$n.te"
done
for target in aarch64-linux-gnu:cortex-a53 aarch64-linux-gnu:cortex-a72 armv7-linux-gnueabihf:cortex-a7; do
    words="llvm -mtriple=${target%:*} -mcpu=${target#*:}"
    "$TEC" compile "$room/resnet18/model.onnx" --quiet --target "$words" -o "$room/resnet18.tec"
    for n in 128 1000; do
        "$TEC" te "$room/product$n.te" --target "$words" -o "$room/product$n.tec" >/dev/null
    done
    said=$(scripts/inner-loops "$room"/*.tec) || fail "$target: $said"
    [ "$(grep -c '_conv_' <<<"$said")" -ge 15 ] || fail "the convolutions have no such loops: $said"
    [ "$(grep -c '_product' <<<"$said")" -ge 2 ] || fail "the products have no such loops: $said"
    echo "$target: $(tail -1 <<<"$said")"
done
