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
# An entry whose sums are right, but whose code the driver does not take, is compiled again too.
python3 - "$dir/te.cache" <<'END'
import os, struct, sys
for name in os.listdir(sys.argv[1]):
    path = os.path.join(sys.argv[1], name)
    magic, version, one, two = struct.unpack("<8s3Q", open(path, "rb").read(32))
    code, checksum = b"the code of another driver", version
    for byte in code:
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    with open(path, "wb") as entry:
        entry.write(struct.pack("<8s5Q", magic, version, one, two, len(code), checksum) + code)
END
second 1 te "$dir/scale.te" --target opencl --check
# `tec tune` keeps nothing unless a folder is named; then its runners, and those of a second session, share the code.
tune() {
    local name=$1
    shift
    env -u XDG_CACHE_HOME HOME="$dir/home" "$TEC" tune "$dir/scale.te" --target "opencl -device=pocl" --trials 3 --records "$dir/$name.db" "$@" \
        >"$dir/text" 2>&1 || { cat "$dir/text"; echo "tec tune $*"; exit 1; }
}
entries() {
    find "$dir/tuned" -type f -printf "$1\n" | sort
}
mkdir "$dir/home"
tune none
[ ! -e "$dir/home/.cache/tec" ] || { echo "tec tune kept code that nobody asked it to keep"; exit 1; }
tune first --device-cache "$dir/tuned"
entries "%f %i" >"$dir/before"
[ -s "$dir/before" ] || { echo "tec tune --device-cache kept nothing"; exit 1; }
touch -d 2020-01-01 "$dir"/tuned/*
tune second --device-cache "$dir/tuned"
entries "%f %i" | cmp - "$dir/before" || { echo "a second session compiled again"; exit 1; }
[ -z "$(find "$dir/tuned" -type f ! -newermt 2021-01-01)" ] || { echo "a second session did not use the code"; exit 1; }
for entry in "$dir"/tuned/*; do
    printf x | dd of="$entry" bs=1 seek=100 conv=notrunc status=none
done
tune third --device-cache "$dir/tuned"
[ "$(entries %f)" = "$(cut -d' ' -f1 "$dir/before")" ] || { echo "damaged code was kept under other names"; exit 1; }
entries "%f %i" | join - "$dir/before" | awk '$2 == $3 {exit 1}' || { echo "damaged code was not compiled again"; exit 1; }
if "$TEC" tune "$dir/scale.te" --tracker localhost:1 --device-class c --records "$dir/p.db" --device-cache "$dir/tuned" \
    >"$dir/text" 2>&1; then echo "a cache of this machine for a pool"; exit 1; fi
grep -q -- "--device-cache is for runs on this machine" "$dir/text" || { cat "$dir/text"; exit 1; }
echo "cached code is used, and damaged code is compiled again"
