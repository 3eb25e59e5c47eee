#!/bin/bash
# onnx.sh -- the ONNX backend tests (Debian's libonnx-testdata): none may fail, and as many as today must pass.
# With TEC_TEST_FULL for the smaller CPUs too.
set -eu
data=/usr/share/libonnx-testdata/data
least=938
targets=(native)
[ -z "${TEC_TEST_FULL-}" ] || targets+=("llvm -mcpu=x86-64-v3" "llvm -mcpu=x86-64")

[ -d "$data/node" ] || { echo "libonnx-testdata is not installed: $data is missing"; exit 1; }
for target in "${targets[@]}"; do
    status=0
    "$TEC" check --target "$target" "$data"/{node,simple,pytorch-converted,pytorch-operator}/* >"${TMPDIR:-/tmp}/onnx-suite.$$" || status=$?
    last=$(tail -n 1 "${TMPDIR:-/tmp}/onnx-suite.$$")
    grep '^fail' "${TMPDIR:-/tmp}/onnx-suite.$$" || true
    rm -f "${TMPDIR:-/tmp}/onnx-suite.$$"
    echo "$target: $last"
    [ "$status" = 0 ] || exit 1
    [ "${last%% *}" -ge "$least" ] || { echo "only ${last%% *} pass, $least did"; exit 1; }
done
