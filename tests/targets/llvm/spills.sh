#!/bin/bash
# spills -- the hot loop of a convolution keeps its pointers in registers: LLVM's strength reduction, if it saw that they
# advance by a constant, would make hundreds of them, which lie on the stack (742 references to it in place of 34).
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/conv.te" <<'TE'
def conv(A: f32[1, 4, 58, 58, 16], W: f32[4, 4, 3, 3, 16, 16]) {
  C[n, o, y: 56, x: 56, c] = sum[i, r, s, b](A[n, i, y + r, x + s, b] * W[o, i, r, s, b, c])
  return C
}
TE
for cpu in skylake-avx512 znver4; do
    "$TEC" te "$dir/conv.te" --target "llvm -mcpu=$cpu" --emit asm >"$dir/conv.s"
    sums=$(grep -c 'vfmadd.*zmm' "$dir/conv.s") || { echo "spills: $cpu: no vectors are multiplied"; exit 1; }
    stack=$(grep -c 'rsp' "$dir/conv.s")
    [ "$stack" -lt "$sums" ] || { echo "spills: $cpu: $stack references to the stack beside $sums multiply-adds"; exit 1; }
done
echo "spills: ok"
