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

# Three shapes by a seed, which is printed where one fails.
shape=
seed=${TEC_SEED:-$(date +%s)}
random_shapes() {
    python3 -c "
import random
r = random.Random($seed)
for _ in range(3):
    print('%dx%d' % (r.randrange(200), r.randrange(200)))"
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
def shifted(n, A: f32[n]) where n >= 5 {
  S[] = sum[i: n - 5](A[i + 5])
  return S
}
def shifted_columns(n, m, A: f32[n, m]) where m >= 5 {
  S[] = sum[i, j: m - 5](A[i, j + 5])
  return S
}
def across(n, m, A: f32[n, m]) {
  S[] = sum[j, i](A[i, j])
  return S
}
def across_most(n, m, A: i32[n, m]) {
  S[] = max[j, i](A[i, j])
  return S
}
def weighted(n, m, A: f32[n, m], B: f32[m]) {
  S[] = sum[i, j](A[i, j] * B[j])
  return S
}
def weighted_across(n, m, A: f32[n, m], B: f32[n]) {
  S[] = sum[j, i](A[i, j] * B[i])
  return S
}
def few(m, A: f32[10, m], B: f32[m]) {
  S[] = sum[i, j](A[i, j] * B[j])
  return S
}
def three(n, m, k, A: f32[n, m, k], B: f32[m], C: f32[k]) {
  S[] = sum[a, b, c](A[a, b, c] * B[b] * C[c])
  return S
}
def plane(n, m, k, A: f32[n, m, k]) {
  S[y] = sum[j, i](A[y, i, j])
  return S
}
END

# in_parts NAME: the default schedule of the definition has vectors, and parallel partial results; on CPUs with vectors of 8 and of 16
# elements, for which rows of 48 are of different lengths.
in_parts() {
    for cpu in x86-64-v3 x86-64-v4; do
        "$TEC" te f.te --name "$1" --emit trace --target "llvm -mcpu=$cpu" >trace
        grep -q '= rfactor(' trace && grep -q '^vectorize(' trace && grep -q '^parallel(' trace && continue
        echo "te_long_sums: '$1' starts without vectors or without parallel partial results on $cpu:"
        cat trace
        exit 1
    done
}
for name in sums most product all rows offset shifted shifted_columns across across_most weighted weighted_across few three; do
    in_parts $name
done
"$TEC" te f.te --name plane --emit trace --target "llvm -mcpu=x86-64-v3" >trace
if ! grep -q '^vectorize(' trace; then
    echo "te_long_sums: 'plane' starts without vectors:"
    cat trace
    exit 1
fi

# same NAME OPERANDS...
same() {
    local name=$1
    shift
    "$TEC" te f.te --name "$name" --check "$@" >out 2>&1 && grep -q '^[a-z_]*: same results' out && return
    echo "te_long_sums: '$name' $* ($shape, TEC_SEED=$seed):"
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
    [ $n -lt 5 ] || same shifted --input A=a.npy
done
# Among them shapes with several pieces of a row and with several pieces of rows; the next one has both.
for shape in "0 5" "5 0" "1 1" "7 3" "3 5" "9 1000" "1000 41" "1 9001" "9001 1" $(random_shapes); do
    set -- ${shape/x/ }
    array a.npy f4 "$@"
    array i.npy i4 "$@"
    array row.npy f4 $2
    array column.npy f4 $1
    same all --input A=a.npy
    same across --input A=a.npy
    same across_most --input A=i.npy
    same weighted --input A=a.npy --input B=row.npy
    same weighted_across --input A=a.npy --input B=column.npy
    [ $2 -lt 5 ] || same shifted_columns --input A=a.npy
done
shape="130 4099"
array a.npy f4 $shape
same weighted --input A=a.npy
shape=
for n in 0 1 7 1000; do
    array a.npy f4 $n 48
    same rows --input A=a.npy
done
for m in 0 1 7 4099; do
    array a.npy f4 10 $m
    same few --input A=a.npy
done
for name in sums most product all rows offset shifted shifted_columns across across_most weighted weighted_across few three plane; do
    same $name
done
echo "te_long_sums: ok"
