#!/bin/bash
# opencl_graph -- a model compiled for OpenCL runs on the device and gives what the CPU gives; its copies are shown.
set -eu
: "${TEC:?}"
data=/usr/share/libonnx-testdata/data/node
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "opencl_graph: $*" >&2
    [ ! -f "$dir/out" ] || cat "$dir/out" >&2
    exit 1
}

says() {
    grep -qE -- "$1" "$dir/out" || fail "does not say '$1'"
}

[ -d "$data" ] || fail "libonnx-testdata is not installed: $data is missing"
model=$data/test_relu/model.onnx

# The same bytes from both.
"$TEC" compile "$model" --target "opencl -device=pocl" -o "$dir/device.tec" 2>"$dir/out"
says 'for opencl -device=pocl'
"$TEC" compile "$model" --quiet -o "$dir/host.tec"
"$TEC" run "$dir/device.tec" --out "$dir/a" --repeat 2 --profile >"$dir/out"
says 'copy \(x\)'
says 'relu \[3, 4, 5\] \(y\)'
"$TEC" run "$dir/device.tec" --device opencl:0 --out "$dir/a" --repeat 1 >/dev/null
"$TEC" run "$dir/host.tec" --out "$dir/b" --repeat 1 >/dev/null
cmp "$dir/a/y.npy" "$dir/b/y.npy" || fail "the device gives other results"

# Copies and devices are shown.
"$TEC" inspect "$dir/device.tec" >"$dir/out"
says 'on opencl: [0-9]+ bytes for intermediate values'
says 'step 0: copy \(x\) by copy from the host to opencl'
says 'step 1: relu \[3, 4, 5\] \(y\) by relu on opencl'
says 'step 2: copy \(y\) by copy from opencl to the host'

# A device that the module has nothing for.
if "$TEC" run "$dir/host.tec" --device opencl:0 >"$dir/out" 2>&1; then fail "ran on a device it has no code for"; fi
says "was compiled for 'llvm .*' and has nothing to run on opencl:0"
if "$TEC" run "$dir/device.tec" --device opencl:99 >"$dir/out" 2>&1; then fail "ran on a device that is not there"; fi
says "there is no device 'opencl:99'"

# --place strict names the operator that the device cannot do; otherwise it runs on the host.
model=$data/test_cast_FLOAT_to_DOUBLE/model.onnx
if "$TEC" compile "$model" --target "opencl -device=mali" --place strict -o "$dir/m.tec" >"$dir/out" 2>&1; then fail "placed f64"; fi
says "'output' cannot run on target 'opencl -device=mali', and --place strict forbids to run it on the host: buffer .* has elements of type f64"
"$TEC" compile "$model" --target "opencl -device=mali -host=x86-64-v3" -o "$dir/m.tec" 2>"$dir/out"
says "'output' runs on the host: buffer .* has elements of type f64"
"$TEC" inspect "$dir/m.tec" >"$dir/out"
says 'target opencl -device=mali -host=x86-64-v3'
says 'step 0: cast \[3, 4\] \(output\) by cast$'

# A model with a loop: its operators run on the device, the loop on the host; the same results as on the CPU.
loop=$data/test_scan9_sum/model.onnx
"$TEC" compile "$loop" --place device --target "opencl -device=pocl" --dump-graph "$dir/graph" -o "$dir/loop.tec" 2>"$dir/out"
grep -qh 'invoke .*@device("opencl")' "$dir"/graph/*-plan.graph || fail "the plan names no device for a kernel"
"$TEC" check --target "opencl -device=pocl" "$data/test_scan9_sum" "$data/test_loop11" "$data/test_if" >"$dir/out" ||
    fail "control flow"
says '^([1-9][0-9]*) of \1 operators ran on the device \(100.0 %\)$'
says '^3 passed, 0 failed, 0 unsupported$'

# tec check counts, and fails a case that leaves everything to the host.
"$TEC" check --target opencl "$data/test_relu" >"$dir/out" || fail "relu"
says '^1 of 1 operators ran on the device \(100.0 %\)$'
says '^1 passed, 0 failed, 0 unsupported$'
"$TEC" check --target opencl --json "$data/test_relu" >"$dir/out"
says '"on_device":	1'
if "$TEC" check --target "opencl -device=mali" "$data/test_cast_FLOAT_to_DOUBLE" >"$dir/out"; then fail "nothing ran there"; fi
says 'none of its operators ran on the device: buffer .* has elements of type f64'

# Operators whose names are functions of OpenCL C, which their buffers are called by.
"$TEC" check --target opencl "$data"/test_{acos,acosh_example,pow_example} >"$dir/out" || fail "names of functions"
