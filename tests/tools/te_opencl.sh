#!/bin/bash
# te_opencl -- kernels for OpenCL run on a device and give what plain loops on the CPU give; a module file of one loads and runs.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "te_opencl: $*" >&2
    exit 1
}

# same NAME OPTIONS...: the kernel of $dir/NAME.te gives the same results there.
same() {
    local name=$1
    shift
    "$TEC" te "$dir/$name.te" --target opencl --check "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "failed: $name $*"; }
    grep -q 'same results as plain loops' "$dir/out" || { cat "$dir/out"; fail "$name $*"; }
}

cat >"$dir/map.te" <<'TE'
def map(n, A: f32[n, 70], B: f32[70]) where n >= 1 {
  C[y, x] = max(A[y, x] + B[x], 0.0) * exp(A[y, x])
  return C
}

schedule map {
  x0, x1 = split(C.x, _, 32)
  bind(C.y, blockIdx.y)
  bind(x0, blockIdx.x)
  bind(x1, threadIdx.x)
}
TE
cat >"$dir/tiles.te" <<'TE'
def tiles(n, A: f32[n, 64], B: f32[64, 48]) where n >= 1 {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}

schedule tiles {
  S = cache_read(B, shared)
  y0, y1 = split(C.y, _, 4)
  x0, x1 = split(C.x, _, 16)
  k0, k1 = split(C.k, _, 8)
  reorder(y0, x0, k0, y1, x1, k1)
  bind(y0, blockIdx.y)
  bind(x0, blockIdx.x)
  compute_at(S, k0)
  bind(y1, threadIdx.y)
  bind(x1, threadIdx.x)
}
TE
# Sums in registers over all of k, tiles of both operands fetched by all threads.
cat >"$dir/product.te" <<'TE'
def product(n, A: f32[n, 70], B: f32[70, 50]) where n >= 1 {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}

schedule product {
  cache_write(C, local)
  y0, yt, yi = split(C.cache.local.y, _, 4, 4)
  x0, xt, xi = split(C.cache.local.x, _, 4, 4)
  reorder(y0, x0, yt, xt, yi, xi)
  compute_at(C, xt)
  k0, k1 = split(C.k, _, 8)
  reorder(k0, k1, C.y, C.x)
  bind(y0, blockIdx.y)
  bind(x0, blockIdx.x)
  bind(yt, threadIdx.y)
  bind(xt, threadIdx.x)
  cache_read(A, shared)
  cache_read(B, shared)
  compute_at(A.cache.shared, k0)
  compute_at(B.cache.shared, k0)
  fa = fuse(A.cache.shared.ax0, A.cache.shared.ax1)
  a0, a1, a2 = split(fa, _, 4, 4)
  bind(a1, threadIdx.y)
  bind(a2, threadIdx.x)
  fb = fuse(B.cache.shared.ax0, B.cache.shared.ax1)
  b0, b1, b2 = split(fb, _, 4, 4)
  bind(b1, threadIdx.y)
  bind(b2, threadIdx.x)
}
TE
cat >"$dir/two.te" <<'TE'
def two(n, A: f16[n, 33]) where n >= 1 {
  S[y] = sum[k](f32(A[y, k]))
  C[y, x] = f16(f32(A[y, x]) - S[y] * 0.03125)
  return C
}

schedule two {
  bind(S.y, blockIdx.x)
  bind(C.y, blockIdx.x)
  bind(C.x, threadIdx.x)
}
TE
cat >"$dir/plain.te" <<'TE'
def plain(A: i32[5, 7]) {
  S[y] = max[k](A[y, k])
  C[y, x] = floordiv(A[y, x] * 1000, S[y] + 1) + A[y, x] % 3
  return C
}

schedule plain {
}
TE

same map --dim n=1
same map --dim n=37
same map --dim n=5 --device opencl:0
same tiles --dim n=13
same product --dim n=37
same two --dim n=3
same plain
"$TEC" te "$dir/map.te" --target opencl --emit opencl >"$dir/out"
grep -q '^__kernel __attribute__((reqd_work_group_size(32, 1, 1)))$' "$dir/out" || fail "no kernel"
"$TEC" te "$dir/map.te" --target opencl --dim n=4 --time >"$dir/out" || fail "cannot be timed"
"$TEC" te "$dir/map.te" --target opencl -o "$dir/map.tec"
"$TEC" inspect "$dir/map.tec" >"$dir/out"
grep -qF 'target opencl -device=generic' "$dir/out" || fail "the module does not say what it is for"
if "$TEC" te "$dir/map.te" --target opencl --dim n=4 --check --device opencl:7 >"$dir/out" 2>&1; then fail "a device that is not there"; fi
grep -q "there is no device 'opencl:7'" "$dir/out" || { cat "$dir/out"; fail "does not say that the device is not there"; }
# Random kernels under random schedules.
"$TEC" fuzz --target opencl --cases 12 --seed 3 --keep "$dir" >"$dir/out" || { cat "$dir/out"; fail "a random kernel is wrong"; }
echo "te_opencl: ok"
