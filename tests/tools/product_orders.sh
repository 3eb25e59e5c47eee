#!/bin/bash
# product_orders -- the canonical product of GPUs is the same lowered program in each order of its steps that is allowed.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "product orders: $*" >&2
    exit 1
}

definition=$(sed '/^schedule/,$d' tests/tools/gpu/product.te)
sums='cache_write(C, local)
y0, yt, yi = split(C.cache.local.y, _, 4, 4)
x0, xt, xi = split(C.cache.local.x, _, 4, 4)
reorder(y0, x0, yt, xt, yi, xi)
compute_at(C, xt)
k0, k1 = split(C.k, _, 8)
reorder(k0, k1, C.y, C.x)'
tiles='cache_read(A, shared)
cache_read(B, shared)
compute_at(A.cache.shared, k0)
compute_at(B.cache.shared, k0)'
shape='fa = fuse(A.cache.shared.ax0, A.cache.shared.ax1)
a0, a1, a2 = split(fa, _, 4, 4)
fb = fuse(B.cache.shared.ax0, B.cache.shared.ax1)
b0, b1, b2 = split(fb, _, 4, 4)'
fetch='bind(a1, threadIdx.y)
bind(a2, threadIdx.x)
bind(b1, threadIdx.y)
bind(b2, threadIdx.x)'
threads='bind(y0, blockIdx.y)
bind(x0, blockIdx.x)
bind(yt, threadIdx.y)
bind(xt, threadIdx.x)'

# lowered NAME STEPS...: the program that these steps give.
lowered() {
    local name=$1
    shift
    { echo "$definition"; echo 'schedule product {'; printf '%s\n' "$@"; echo '}'; } >"$dir/$name.te"
    "$TEC" te "$dir/$name.te" --target cuda --emit lowered >"$dir/$name" || fail "the order '$name' is refused"
}

lowered under "$sums" "$threads" "$tiles" "$shape" "$fetch"
lowered before "$sums" "$tiles" "$threads" "$shape" "$fetch"
lowered shaped "$sums" "$tiles" "$shape" "$threads" "$fetch"
grep -q 'tec.barrier("shared")' "$dir/under" || fail "no tile in shared memory"
for order in before shaped; do
    cmp -s "$dir/under" "$dir/$order" || fail "the order '$order' gives another program"
done
# The trace that is printed makes the same program.
{ echo "$definition"; echo 'schedule product {'; "$TEC" te "$dir/shaped.te" --target cuda --emit trace; echo '}'; } >"$dir/again.te"
"$TEC" te "$dir/again.te" --target cuda --emit lowered | cmp -s - "$dir/under" || fail "the trace makes another program"
# Factors that do not divide the tile of all threads: the bind is refused, and nothing else.
for name in under shaped; do sed 's/split(fa, _, 4, 4)/split(fa, 2, 4, 4)/' "$dir/$name.te" >"$dir/fixed.$name.te"; done
if "$TEC" te "$dir/fixed.shaped.te" --target cuda --emit lowered >"$dir/out" 2>&1; then fail "a tile of one thread is taken for that of all"; fi
echo "product orders: ok"
