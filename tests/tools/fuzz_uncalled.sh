#!/bin/bash
# fuzz_uncalled -- `tec fuzz` for a target that this machine cannot call says why once and compiles only; with a driver it calls the code.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$TEC_BUILD_DIR/tests/cuda

fail() {
    echo "fuzz_uncalled: $*" >&2
    cat "$dir/out" "$dir/err" >&2
    exit 1
}

# uncalled WHY OPTIONS...: nothing is wrong, and WHY is said once before the cases and once at their end.
uncalled() {
    local why=$1
    shift
    "$TEC" fuzz --cases 3 --seed 3 --jobs 2 --keep "$dir" "$@" >"$dir/out" 2>"$dir/err" || fail "failed: $*"
    grep -q '^3 same, 0 unsupported, 0 invalid, 0 wrong' "$dir/out" || fail "cases are not the same: $*"
    grep 'code was compiled, but not called: ' "$dir/out" | grep -qF -e "$why" || fail "the end does not say '$why'"
    [ "$(grep 'is compiled, but not called: ' "$dir/err" | grep -cF -e "$why")" = "${expected-1}" ] || fail "not said once: $why"
    [ "$(wc -l <"$dir/err")" = "${expected-1}" ] || fail "says more"
}

# no_programs WHY OPTIONS...: programs run on the target, so there they are refused at the beginning.
no_programs() {
    local why=$1
    shift
    if "$TEC" fuzz --programs --cases 1 "$@" >"$dir/out" 2>"$dir/err"; then fail "was accepted: --programs $*"; fi
    grep -qF -e "$why" "$dir/err" || fail "does not say '$why'"
    [ "$(wc -l <"$dir/err")" = 1 ] && [ ! -s "$dir/out" ] || fail "says more than one line: --programs $*"
}

mkdir "$dir/vendors" "$dir/nothing"
other=aarch64-unknown-linux-gnu
[ "$(uname -m)" != aarch64 ] || other=x86_64-unknown-linux-gnu

export OCL_ICD_VENDORS=$dir/vendors
uncalled "opencl: the OpenCL loader is installed, but has no driver" --target opencl
no_programs "code for 'opencl' cannot be called: opencl: the OpenCL loader is installed, but has no driver" --target opencl
unset OCL_ICD_VENDORS
uncalled "code for 'llvm -mtriple=$other" --target "llvm -mtriple=$other"
no_programs "needs an" --target "llvm -mtriple=$other"

export TEC_CUDA=$emulator
echo none >"$dir/nothing/libcuda.so.1"
LD_LIBRARY_PATH=$dir/nothing uncalled "cuda: no driver: looked for 'libcuda.so.1'" --target "cuda -arch=sm_80"
LD_LIBRARY_PATH=$dir/nothing no_programs "cuda: no driver: looked for 'libcuda.so.1'" --target "cuda -arch=sm_80"
# A driver whose device the code does not fit.
LD_LIBRARY_PATH=$emulator uncalled "was made for 'cuda -arch=sm_90'" --target "cuda -arch=sm_90"
# Asked for.
expected=0 LD_LIBRARY_PATH=$emulator uncalled "--compile-only is given" --target "cuda -arch=sm_80" --compile-only
LD_LIBRARY_PATH=$emulator "$TEC" fuzz --cases 2 --target "cuda -arch=sm_80" --json --keep "$dir" >"$dir/out" 2>"$dir/err" || fail "with a driver"
grep -q '"called":	true' "$dir/out" || fail "the code is not called"
LD_LIBRARY_PATH=$emulator TEC_CUDA=$dir/nothing "$TEC" fuzz --cases 2 --target "cuda -arch=sm_80" --json --keep "$dir" >"$dir/out" 2>"$dir/err" ||
    fail "without NVRTC"
grep -q '"called":	false' "$dir/out" && grep -q 'library NVRTC.* was not found' "$dir/err" || fail "does not say that there is no NVRTC"
for option in "--programs" "--rpc localhost:1"; do
    if "$TEC" fuzz --compile-only $option >"$dir/out" 2>"$dir/err"; then fail "was accepted: --compile-only $option"; fi
    grep -qF -- "--compile-only does not go with ${option%% *}" "$dir/err" || fail "$option"
done
echo "fuzz_uncalled: ok"
