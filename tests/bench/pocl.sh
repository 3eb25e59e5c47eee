#!/bin/bash
# pocl -- bench/pocl adds up the steps of two modules of one model, and its table is whole.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$TEC" devices | grep -q '^opencl:0' || { echo "no OpenCL device"; exit 77; }

bench/pocl --build "$TEC_BUILD_DIR" --rounds 2 --repeat 2 --threads 1 tests/models/digits/model.onnx >"$out" 2>/dev/null
fail() {
    echo "bench pocl: $*" >&2
    cat "$out" >&2
    exit 1
}
[ "$(head -n 1 "$out")" = "| step | native, ms | PoCL, ms | PoCL / native | of PoCL's time |" ] || fail "no head"
for row in "copy | 0.000" "conv_packed, " "matmul | " "no step: " "a whole run | " "most memory of the process, MiB | "; do
    grep -qF "| $row" "$out" || fail "no row '$row'"
done
# The rows of PoCL's times add up to the whole run.
awk -F'|' 'NR > 2 && $2 !~ /whole|memory/ { sum += $4 } $2 ~ /whole/ { whole = $4 }
    END { exit !(whole > 0 && sum > whole - 0.01 && sum < whole + 0.01) }' "$out" || fail "the rows do not add up"
if bench/pocl --build "$TEC_BUILD_DIR" none.onnx >"$out" 2>&1; then fail "a model that is not there"; fi
echo "bench pocl: ok"
