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
echo "cached code is used, and damaged code is compiled again"
