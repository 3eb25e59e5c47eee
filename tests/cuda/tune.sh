#!/bin/bash
# tune -- tec tune measures candidates on a device, emulated and OpenCL's; a kernel that faults costs its trial alone, since
# the next one has a new process with a context of its own; and what was found is compiled in.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$PWD/$TEC_BUILD_DIR/tests/cuda
[ "${TEC_BUILD_DIR#/}" = "$TEC_BUILD_DIR" ] || emulator=$TEC_BUILD_DIR/tests/cuda

fail() {
    echo "cuda tune: $*" >&2
    cat "$dir/out" >&2
    exit 1
}

cat >"$dir/mm.te" <<'END'
def mm(A: f32[32, 24], B: f32[24, 32]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
END
emulated() {
    LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator "$TEC" "$@"
}

emulated tune "$dir/mm.te" --target "cuda -arch=sm_80" --trials 6 --records "$dir/a.db" >"$dir/out" 2>&1 || fail "on the emulated device"
grep -qE '^([0-9]+) of \1 measurements valid' "$dir/out" || fail "a trial is not valid"
emulated tune "$dir/mm.te" --target "opencl -device=pocl" --trials 3 --records "$dir/o.db" >"$dir/out" 2>&1 || fail "on OpenCL"
grep -qE '^([0-9]+) of \1 measurements valid' "$dir/out" || fail "a trial on OpenCL is not valid"

# The thirtieth launch of each process accesses an illegal address.
export TEC_EMULATED_FAULT=30
emulated tune "$dir/mm.te" --target "cuda -arch=sm_80" --trials 8 --records "$dir/f.db" >"$dir/out" 2>&1 || fail "ended by a fault"
unset TEC_EMULATED_FAULT
"$TEC" records export "$dir/f.db" 2>/dev/null >"$dir/rows"
grep -q '"error_kind":"device"' "$dir/rows" || { head -c 2000 "$dir/rows"; fail "no trial has the fault"; }
grep -q 'CUDA_ERROR_ILLEGAL_ADDRESS' "$dir/rows" || fail "the fault is not named"
grep -qE 'replaced: 0 builders, [1-9][0-9]* runners' "$dir/out" || fail "no runner was replaced"

# Where there is no device, it says so at once.
if "$TEC" tune "$dir/mm.te" --target cuda --trials 1 --records "$dir/n.db" >"$dir/out" 2>&1; then fail "tuned without a device"; fi
grep -qE "looked for 'libcuda.so.1'|there is no device of kind 'cuda'" "$dir/out" || fail "does not say what is missing"
echo "cuda tune: ok"
