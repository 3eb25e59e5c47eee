#!/bin/bash
# product_orders -- the canonical product of GPUs is the same lowered program in each order of its steps: the tiles placed
# under the threads; the threads bound before or after the tiles are shaped; the threads bound last, when the loops of the
# tiles are bound already; each stage bound by itself, and the threads then entered once by env_threads.
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

# The last order names its loops differently: every name that the program itself gives becomes a number, in the order of
# the text.
numbered() {
    awk '{ text = text $0 "\n" }
    END {
        word = "[A-Za-z_][A-Za-z0-9_.~]*"
        while (match(text, word)) {
            name = substr(text, RSTART, RLENGTH)
            if (given && !(name in number)) number[name] = ++n
            given = name == "for" || name == "let" || name == "allocate"
            printf "%s%s", substr(text, 1, RSTART - 1), (name in number) ? "v" number[name] : name
            text = substr(text, RSTART + RLENGTH)
        }
        printf "%s", text
    }' "$1"
}

lowered under "$sums" "$threads" "$tiles" "$shape" "$fetch"
lowered before "$sums" "$tiles" "$threads" "$shape" "$fetch"
lowered shaped "$sums" "$tiles" "$shape" "$threads" "$fetch"
grep -q 'tec.barrier("shared")' "$dir/under" || fail "no tile in shared memory"
lowered last "$sums" "$tiles" "$shape" "$fetch" "$threads"
for order in before shaped last; do
    cmp -s "$dir/under" "$dir/$order" || fail "the order '$order' gives another program"
done
# Each stage has its own loops over threads, and hands the sums over in shared memory. env_threads makes one loop of each
# axis of them around k, but for the loops of the tiles, which all threads fill together. Then a thread hands its sums to
# itself, and they may be local memory.
lowered env 'cache_write(C, local)
y0, yi = split(C.cache.local.y, _, 16)
x0, one, xi = split(C.cache.local.x, _, 1, 16)
reorder(y0, x0, one, yi, xi)
compute_at(C, one)
k0, k1 = split(C.k, _, 8)
yt, y = split(C.y, _, 4)
xt, x = split(C.x, _, 4)
reorder(k0, yt, xt, k1, y, x)' "$tiles" "$shape" "$fetch" 'set_scope(C.cache.local, shared)
wy, wyi = split(yi, _, 4)
wx, wxi = split(xi, _, 4)
reorder(wy, wx, wyi, wxi)
bind(y0, blockIdx.y)
bind(x0, blockIdx.x)
bind(yt, threadIdx.y)
bind(xt, threadIdx.x)
bind(wy, threadIdx.y)
bind(wx, threadIdx.x)
env_threads(one, threadIdx.y, threadIdx.x)
set_scope(C.cache.local, local)'
numbered "$dir/under" >"$dir/under.numbered"
numbered "$dir/env" >"$dir/env.numbered"
grep -q 'barrier' "$dir/env.numbered" && cmp "$dir/under.numbered" "$dir/env.numbered" || fail "the order 'env' gives another program"
# The trace that is printed makes the same program.
for order in shaped last env; do
    { echo "$definition"; echo 'schedule product {'; "$TEC" te "$dir/$order.te" --target cuda --emit trace; echo '}'; } >"$dir/again.te"
    "$TEC" te "$dir/again.te" --target cuda --emit lowered | cmp -s - "$dir/$order" || fail "the trace of '$order' makes another program"
done
# Factors that do not divide the tile of all threads: the bind is refused, and nothing else.
for name in under shaped; do sed 's/split(fa, _, 4, 4)/split(fa, 2, 4, 4)/' "$dir/$name.te" >"$dir/fixed.$name.te"; done
if "$TEC" te "$dir/fixed.shaped.te" --target cuda --emit lowered >"$dir/out" 2>&1; then fail "a tile of one thread is taken for that of all"; fi
echo "product orders: ok"
