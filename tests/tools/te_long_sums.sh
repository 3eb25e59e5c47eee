#!/bin/bash
# te_long_sums -- a reduction of unknown length to one result runs in vectors and in parallel parts by its default schedule, and gives
# what the interpreter gives: with no term, with fewer than a vector has, and with several parts.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# Small integers, so that no order of a sum rounds: NAME DTYPE EXTENT...
array() {
    python3 - "$@" <<'END'
import struct, sys
name, kind, *extents = sys.argv[1:]
count = 1
for extent in extents:
    count *= int(extent)
head = ("{'descr': '<%s', 'fortran_order': False, 'shape': (%s,)}" % (kind, ", ".join(extents))).encode()
head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
values = [(i * 7919) % 37 - 20 for i in range(count)]
open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head +
                       struct.pack("<%d%s" % (count, {"f4": "f", "i4": "i"}[kind]), *values))
END
}

cat >f.te <<'END'
def sums(n, A: f32[n]) {
  S[] = sum[i](A[i])
  return S
}
def most(n, A: i32[n]) {
  S[] = max[i](A[i])
  return S
}
def product(n, A: f32[n], B: f32[n]) {
  S[] = sum[i](A[i] * B[i])
  R[] = abs(S[])
  return R
}
def all(n, m, A: f32[n, m]) {
  S[y: 1, x: 1] = sum[i, j](A[i, j])
  return S
}
def rows(n, A: f32[n, 48], W: f32[48]) {
  S[] = sum[i, j](A[i, j] * W[j])
  return S
}
def offset(n, m, A: f32[n, m]) {
  S[] = sum[i: n - 5, j: m - 3](A[i, j])
  return S
}
END

# in_parts NAME: the default schedule of the definition has vectors, and parallel partial results.
in_parts() {
    "$TEC" te f.te --name "$1" --emit trace --target "llvm -mcpu=x86-64-v3" >trace
    grep -q '= rfactor(' trace && grep -q '^vectorize(' trace && grep -q '^parallel(' trace && return
    echo "te_long_sums: '$1' starts without vectors or without parallel partial results:"
    cat trace
    exit 1
}
for name in sums most product all rows; do
    in_parts $name
done

# same NAME OPERANDS...
same() {
    local name=$1
    shift
    "$TEC" te f.te --name "$name" --check "$@" >out 2>&1 && grep -q '^[a-z]*: same results' out && return
    echo "te_long_sums: '$name' $*:"
    cat out
    exit 1
}
for n in 0 1 7 1000 32768 100000; do
    array a.npy f4 $n
    array i.npy i4 $n
    array b.npy f4 $n
    same sums --input A=a.npy
    same most --input A=i.npy
    same product --input A=a.npy --input B=b.npy
done
for shape in "0 5" "5 0" "1 1" "7 3" "9 1000" "1000 41"; do
    array a.npy f4 $shape
    same all --input A=a.npy
done
for n in 0 1 7 1000; do
    array a.npy f4 $n 48
    same rows --input A=a.npy
done
for name in sums most product all rows offset; do
    same $name
done
echo "te_long_sums: ok"
