#!/bin/bash
# onnx_opencl.sh -- a slice of the ONNX backend tests on an OpenCL device: none may fail, and all operators run there.
# With TEC_TEST_FULL the four suites: at least 98 of 100 operators outside of shape arithmetic run on the device.
set -eu
: "${TEC:?}"
data=/usr/share/libonnx-testdata/data
out=${TMPDIR:-/tmp}/onnx-opencl.$$
trap 'rm -f "$out"' EXIT

[ -d "$data/node" ] || { echo "libonnx-testdata is not installed: $data is missing"; exit 1; }
if [ -n "${TEC_TEST_FULL-}" ]; then
    least=98
    cases=("$data"/{node,simple,pytorch-converted,pytorch-operator}/*)
else
    least=100
    cases=("$data"/node/test_{relu,gemm_all_attributes,softmax_axis_1,conv_with_strides_padding,averagepool_2d_pads,maxpool_2d_strides,layer_normalization_2d_axis0,gather_1,reduce_sum_keepdims_example,lstm_defaults,transpose_all_permutations_3,where_example})
fi
status=0
"$TEC" check --target "opencl -device=pocl" "${cases[@]}" >"$out" || status=$?
grep '^fail' "$out" || true
tail -n 2 "$out"
[ "$status" = 0 ] || exit 1
percent=$(sed -n 's/.* operators ran on the device (\([0-9]*\)\..*/\1/p' "$out")
[ "$percent" -ge "$least" ] || { echo "only $percent % of the operators ran on the device"; exit 1; }
