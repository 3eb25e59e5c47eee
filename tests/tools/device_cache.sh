#!/bin/bash
# device_cache.sh -- the second run of a module takes the code that the OpenCL driver compiled from the cache.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$TEC" devices | grep -q '^opencl:0' || { echo "no OpenCL device"; exit 77; }

"$TEC" compile --quiet tests/models/digits/model.onnx --target opencl -o "$dir/m.tec"
expect() {
    local want=$1
    shift
    "$TEC" run "$dir/m.tec" --repeat 1 --profile --out "$dir/out" "$@" >"$dir/text"
    grep -qx "device code: $want" "$dir/text" || { cat "$dir/text"; echo "expected: $want"; exit 1; }
}
expect "0 from the cache, 1 compiled" --device-cache "$dir/cache"
mv "$dir/out" "$dir/first"
expect "1 from the cache, 0 compiled" --device-cache "$dir/cache"
diff -r "$dir/first" "$dir/out"
expect "0 from the cache, 1 compiled" --device-cache off
XDG_CACHE_HOME=$dir/xdg expect "0 from the cache, 1 compiled"
XDG_CACHE_HOME=$dir/xdg expect "1 from the cache, 0 compiled"
for entry in "$dir"/cache/*; do
    printf x | dd of="$entry" bs=1 seek=100 conv=notrunc status=none
done
expect "0 from the cache, 1 compiled" --device-cache "$dir/cache"
expect "1 from the cache, 0 compiled" --device-cache "$dir/cache"
diff -r "$dir/first" "$dir/out"
# `tec te` and `tec check`, the latter over all of its processes: the second call compiles nothing.
cat >"$dir/scale.te" <<'END'
def scale(A: f32[64]) {
  B[i: 64] = A[i] * 2.0
  return B
}
END
second() {
    local text=$1
    shift
    "$TEC" "$@" --device-cache "$dir/$1.cache" >"$dir/text"
    grep -q "^device code: 0 from the cache, [1-9]" "$dir/text" || { cat "$dir/text"; echo "tec $1"; exit 1; }
    "$TEC" "$@" --device-cache "$dir/$1.cache" >"$dir/text"
    grep -qx "device code: $text from the cache, 0 compiled" "$dir/text" ||
        { cat "$dir/text"; echo "the second tec $1 compiled"; exit 1; }
    "$TEC" "$@" --device-cache off >"$dir/text"
    grep -q "^device code: 0 from the cache, [1-9]" "$dir/text" || { cat "$dir/text"; echo "off: $1"; exit 1; }
}
second 1 te "$dir/scale.te" --target opencl --check
second 1 check tests/models/digits --target opencl
echo "cached code is used, and damaged code is compiled again"
