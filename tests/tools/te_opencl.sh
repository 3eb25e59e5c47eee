#!/bin/bash
# te_opencl -- kernels for OpenCL run on a device and give what plain loops on the CPU give; a module file of one loads and runs.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "te_opencl: $*" >&2
    exit 1
}

# same NAME OPTIONS...: the kernel of tests/tools/gpu/NAME.te gives the same results there.
same() {
    local name=$1
    shift
    "$TEC" te "tests/tools/gpu/$name.te" --target "${target-opencl}" --check "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "failed: $name $*"; }
    grep -q 'same results as' "$dir/out" || { cat "$dir/out"; fail "$name $*"; }
}

same map --dim n=1
same map --dim n=37
same map --dim n=5 --device opencl:0
same tiles --dim n=13
same product --dim n=37
same two --dim n=3
same plain
same zeros --dim n=41
same one_block
same one_block_warps
same warp_rows --dim n=5
same warp_rows --dim n=37
same warp_turn --dim n=3
same warp_spread --dim n=3
same scan --dim n=5
same edges --dim n=21
same meet --dim n=1
same meet --dim n=7
same meet_often
same meet_first
same scatter
same strided --dim m=10
same grids --dim n=5
same vectors --dim n=5
same depthwise_vectors --dim n=3
# GPUs compute indices in 32 bits, where these are enough.
for n in 5 1099511627776; do target="opencl -device=mali" same far --dim "n=$n" --dim m=9; done
"$TEC" te tests/tools/gpu/map.te --target opencl --emit opencl >"$dir/out"
grep -q '^__kernel __attribute__((reqd_work_group_size(32, 1, 1)))$' "$dir/out" || fail "no kernel"
"$TEC" te tests/tools/gpu/map.te --target opencl --dim n=4 --time >"$dir/out" || fail "cannot be timed"
"$TEC" te tests/tools/gpu/map.te --target opencl -o "$dir/map.tec"
"$TEC" inspect "$dir/map.tec" >"$dir/out"
grep -qF 'target opencl -device=generic' "$dir/out" || fail "the module does not say what it is for"
if "$TEC" te tests/tools/gpu/map.te --target opencl --dim n=4 --check --device opencl:7 >"$dir/out" 2>&1; then fail "a device that is not there"; fi
grep -q "there is no device 'opencl:7'" "$dir/out" || { cat "$dir/out"; fail "does not say that the device is not there"; }
# A module of the kernel alone runs too, with files, on the device that is asked for.
cat >"$dir/half.te" <<'TE'
def half(n, X: f32[n, 8], by: f32) {
  Y[i, j] = X[i, j] * by
  return Y
}
schedule half {
  bind(Y.i, blockIdx.x)
  bind(Y.j, threadIdx.x)
}
TE
/usr/bin/python3 -c "import numpy as np; np.save('$dir/x.npy', np.arange(24, dtype=np.float32).reshape(3, 8)); np.save('$dir/by.npy', np.float32(0.5))"
"$TEC" te "$dir/half.te" --target opencl -o "$dir/half.tec"
for more in "" "--device opencl:0"; do
    "$TEC" run "$dir/half.tec" --input "X=$dir/x.npy" --input "by=$dir/by.npy" --out "$dir/results" $more >"$dir/out" 2>&1 ||
        { cat "$dir/out"; fail "does not run: $more"; }
    /usr/bin/python3 -c "import numpy as np; assert (np.load('$dir/results/Y.npy') == np.arange(24).reshape(3, 8) / 2).all()" ||
        fail "wrong results: $more"
done
if "$TEC" run "$dir/half.tec" --device cpu >"$dir/out" 2>&1; then fail "ran on a device of another kind"; fi
grep -q "opencl" "$dir/out" || { cat "$dir/out"; fail "does not say which device the kernel is for"; }
sed '/^schedule/,$d' "$dir/half.te" >"$dir/host.te"
"$TEC" te "$dir/host.te" -o "$dir/host.tec" 2>"$dir/out" || { cat "$dir/out"; fail "no module for the CPU"; }
if "$TEC" run "$dir/host.tec" --device opencl:0 >"$dir/out" 2>&1; then fail "a function of the CPU ran on a device"; fi
grep -q "'half' was compiled for the CPU and cannot run on opencl:0" "$dir/out" || { cat "$dir/out"; fail "does not say that it is for the CPU"; }
# A model for a device does not run on the CPU, whether or not a driver is there.
"$TEC" compile tests/models/digits/model.onnx --target opencl --quiet -o "$dir/model.tec" 2>"$dir/out" || { cat "$dir/out"; fail "no model"; }
if "$TEC" run "$dir/model.tec" --device cpu >"$dir/out" 2>&1; then fail "a model for a device ran on the CPU"; fi
grep -q "was compiled for 'opencl -device=generic' and cannot run on cpu:0 alone" "$dir/out" || { cat "$dir/out"; fail "does not say what the model is for"; }
# Wrong at sizes that stay symbols: `te --dim` compiles for its size.
"$TEC" fuzz --worker --target opencl --file tests/tools/gpu/meet_last.te >"$dir/out"
[ "$(cut -f2 "$dir/out")" = 0 ] || { cat "$dir/out"; fail "meet_last"; }
# Arguments that begin between two vectors.
for front in '' 'Z: f32[4], '; do
    sed "s/def f(/&$front/" tests/tools/gpu/unaligned.te >"$dir/unaligned.te"
    for target in opencl 'opencl -device=pocl'; do
        "$TEC" fuzz --worker --target "$target" --file "$dir/unaligned.te" >"$dir/out"
        [ "$(cut -f2,4 "$dir/out")" = "0	0" ] || { cat "$dir/out"; fail "unaligned arguments for $target"; }
    done
done
# Random kernels under random schedules.
"$TEC" fuzz --target opencl --cases 12 --seed 3 --keep "$dir" >"$dir/out" || { cat "$dir/out"; fail "a random kernel is wrong"; }
if grep -q 'not called' "$dir/out"; then fail "random kernels are compiled only"; fi
echo "te_opencl: ok"
