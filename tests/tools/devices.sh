#!/bin/bash
# devices -- tec devices lists what there is, and says of a kind without a driver which library was looked for.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "devices: $*" >&2
    cat "$dir/out" >&2
    exit 1
}

says() {
    grep -qE -- "$1" "$dir/out" || fail "does not say '$1'"
}

"$TEC" devices >"$dir/out"
says '^cpu:0 +[a-z0-9_]+$'
says '^opencl:0 '
says 'driver Portable Computing Language'
says 'blocks of up to [0-9]+ threads with [0-9]+ KiB of shared memory, f64, no f16$'
says '^           compile for it: --target "llvm"$'
says '^           compile for it: --target "opencl -device=pocl"$'

"$TEC" devices --json >"$dir/out"
says '"name":	"opencl:0"'
says '"target":	"opencl -device=pocl"'
! grep -q '"kind":	"opencl"' "$dir/out" || fail "a device is there, and its driver is missing"

# The caches of a core, as the system has them.
python3 - "$dir/out" <<'PY' || fail "other caches than the system's"
import glob, json, sys

caches = next(d for d in json.load(open(sys.argv[1]))["devices"] if d["name"] == "cpu:0")["caches"]
names = {("1", "Data"): "l1_data", ("1", "Instruction"): "l1_code", ("2", "Unified"): "l2", ("3", "Unified"): "l3"}
for index in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*"):
    level, kind, size = (open(f"{index}/{file}").read().strip() for file in ("level", "type", "size"))
    if (level, kind) in names:
        found = caches.get(names[level, kind])
        assert found == int(size.rstrip("K")) * 1024, (level, kind, size, caches)
PY
if [ -d /sys/devices/system/cpu/cpu0/cache/index0 ]; then
    "$TEC" devices >"$dir/out"
    says '^           caches of a core: l1_data [0-9]+ KiB'
fi

# A driver of CUDA that stands in for NVIDIA's, and none.
LD_LIBRARY_PATH=$TEC_BUILD_DIR/tests/cuda "$TEC" devices --json >"$dir/out"
says '"name":	"cuda:0"'
says '"target":	"cuda -arch=sm_80"'
says '"missing":	\[\]'
mkdir "$dir/none"
echo none >"$dir/none/libcuda.so.1"
LD_LIBRARY_PATH=$dir/none "$TEC" devices >"$dir/out"
says "^cuda       -- cuda: no driver: looked for 'libcuda.so.1': "

# The loader of OpenCL cannot be loaded: a file that is none stands before it.
mkdir "$dir/lib"
echo none >"$dir/lib/libOpenCL.so.1"
echo none >"$dir/lib/libOpenCL.so"
LD_LIBRARY_PATH=$dir/lib "$TEC" devices >"$dir/out"
says "^opencl     -- opencl: no driver: looked for 'libOpenCL.so.1', 'libOpenCL.so': "
says '^cpu:0 '
LD_LIBRARY_PATH=$dir/lib "$TEC" devices --json >"$dir/out"
says '"kind":	"opencl"'
says "\"reason\":	\"opencl: no driver: looked for 'libOpenCL.so.1'"

# A loader without drivers.
mkdir "$dir/vendors"
OCL_ICD_VENDORS=$dir/vendors "$TEC" devices >"$dir/out"
says '^opencl     -- opencl: the OpenCL loader is installed, but has no driver'
echo "devices: ok"
