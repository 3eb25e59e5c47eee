#!/bin/bash
# portable -- a folder of scripts/portable measures with an empty environment: on OpenCL, and on an emulated device of CUDA. Without a
# driver of CUDA it says so; a wrong result is told by the name of its kernel.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$TEC_BUILD_DIR/tests/cuda
folder=$dir/portable

fail() {
    echo "portable: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 30 "$dir/out" >&2
    exit 1
}
says() {
    grep -qE -- "$1" "$dir/out" || fail "does not say '$1'"
}
# bare STATUS [NAME=VALUE...] -- [OPTIONS]: `run` with nothing but these variables ends with this status.
bare() {
    local want=$1 status=0 set=()
    shift
    while [ "$1" != -- ]; do
        set+=("$1")
        shift
    done
    shift
    env -i "${set[@]}" "$folder/run" "$@" >"$dir/out" 2>&1 || status=$?
    [ $status = "$want" ] || fail "run $* ends with $status, expected $want"
}

# The emulation stands in for NVRTC, so that the folder's code for CUDA runs here.
LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator scripts/portable --small --arch sm_80 --only "sgemm-64 hgemm-128 D9-b1 softmax-256" \
    "$folder" >"$dir/out" 2>&1 || fail "making the folder"
says '^.*: 5 kernels and models, [0-9]+ KiB$'
[ "$(du -s --apparent-size -B 1 "$folder" | cut -f 1)" -lt $((60 << 20)) ] || fail "more than 60 MiB"
(cd "$folder" && sed -n '/  \.\//p' MANIFEST | sha256sum --quiet -c) >"$dir/out" 2>&1 || fail "MANIFEST has other checksums"
cp "$folder/MANIFEST" "$dir/out"
says '^needs    x86-64-v3, glibc 2\.[0-9]+ or later, and the driver'
says '^code     cuda: cuda -arch=sm_80$'

bare 0 -- --device opencl
says '^device  opencl:0: '
says '^driver  Portable Computing Language'
says '^clock   at most [0-9]+ MHz$'
says '^numbers f32 products without TF32'
says '^copy +[0-9.]+ ms +[0-9.]+ GB/s$'
for name in sgemm-64 D9-b1; do
    says "^$name +[0-9.]+ ms +[0-9.]+ GFLOP/s +[0-9.]+ GB/s  ok, [0-9.e+-]+ apart$"
done
says '^hgemm-128 has no code for pocl$'
says '^5 rows, 0 failed$'

# No driver of CUDA: the library that was looked for, nothing measured.
mkdir "$dir/none"
echo none >"$dir/none/libcuda.so.1"
bare 3 "LD_LIBRARY_PATH=$dir/none" --
says "no driver: looked for 'libcuda.so.1'"
says "^run: there is no device 'cuda' here, so nothing was measured$"
bare 3 "LD_LIBRARY_PATH=$emulator" -- --device cuda:7
says "there is no device 'cuda:7'"
bare 2 -- --device vulkan
says "^run: no kind of device 'vulkan'; there are cuda and opencl$"

# The emulated device: tensor cores too.
bare 0 "LD_LIBRARY_PATH=$emulator" -- --only e
says '^driver  CUDA .*compute capability 8.0$'
says '^clocks (before|before unknown: nvidia-smi is not there)$'
says '^sgemm-64 .* ok, '
says '^hgemm-128 .* ok, '
says '^2 rows, 0 failed$'

# A wrong result, by a reference of another function with the same tensors, and by a file of other numbers.
sed 's/\* B/+ B/' >"$dir/wrong.te" <<'TE'
def wrong(A: f32[64, 64], B: f32[64, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
TE
"$TEC" te "$dir/wrong.te" --target "llvm -mcpu=x86-64-v3" -o "$folder/reference/sgemm-64.tec"
bare 1 -- --device opencl --only sgemm
says "^bench_device: sgemm-64: result 'C' differs from the reference by [0-9.]+ of its greatest value$"
says '^sgemm-64 FAILED$'
says '^1 rows, 1 failed$'
cp "$folder/reference/digits/"{input,output}.npy "$dir"
/usr/bin/python3 -c 'import sys, numpy; p = sys.argv[1]; a = numpy.load(p); a[5] = a[5, ::-1]; numpy.save(p, a)' "$folder/reference/digits/output.npy"
bare 1 -- --device opencl --only digits
says "^bench_device: digits: result 'output' differs from the reference by "
echo "portable: ok"
