#!/bin/bash
# opencl_batch -- a network of a symbolic batch that was compiled once for an OpenCL device and once for this CPU gives the
# same scores at batches of 1, 8 and 33. Each run takes the shapes of its input alone.
#
# Needs TEC, the program. With TEC_TEST_NETWORKS=DIR: every DIR/NAME/model.onnx that has a symbolic dimension `batch`.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "opencl_batch: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}

# same FILE FILE: whether two folders of .npy hold equal shapes and nearly equal numbers.
same() {
    /usr/bin/python3 - "$1" "$2" <<'PY'
import os, sys
import numpy as np
a, b = sys.argv[1:]
names = sorted(os.listdir(a))
assert names and names == sorted(os.listdir(b)), names
for name in names:
    x, y = np.load(os.path.join(a, name)), np.load(os.path.join(b, name))
    assert x.shape == y.shape and x.size, (name, x.shape, y.shape)
    assert np.isfinite(x).all() and np.ptp(x) > 0, name
    np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4 * np.abs(y).max())
PY
}

models=(tests/models/digits/model.onnx)
[ -z "${TEC_TEST_NETWORKS-}" ] || models=("$TEC_TEST_NETWORKS"/*/model.onnx)
n=0
for model in "${models[@]}"; do
    "$TEC" compile "$model" --quiet -o "$dir/host.tec" 2>"$dir/out" || fail "compiling $model"
    "$TEC" inspect "$dir/host.tec" >"$dir/out"
    grep -q '\[batch[],]' "$dir/out" || continue
    "$TEC" compile "$model" --target "opencl -device=pocl" --quiet -o "$dir/device.tec" 2>"$dir/out" || fail "compiling $model for opencl"
    "$TEC" inspect "$dir/device.tec" >"$dir/out"
    grep -qE '^ *step [0-9]+: .* on opencl$' "$dir/out" || fail "$model: nothing runs on the device"
    for batch in 1 8 33; do
        for kind in host device; do
            rm -rf "${dir:?}/$kind"
            "$TEC" run "$dir/$kind.tec" --dim "batch=$batch" --seed "$batch" --repeat 2 --out "$dir/$kind" >"$dir/out" 2>&1 || fail "$model on the $kind at $batch"
        done
        same "$dir/host" "$dir/device" >"$dir/out" 2>&1 || fail "$model gives other scores at $batch"
    done
    n=$((n + 1))
    echo "$model: batches of 1, 8 and 33"
done
[ "$n" -gt 0 ] || fail "no network has a symbolic batch"
echo "opencl_batch: ok"
