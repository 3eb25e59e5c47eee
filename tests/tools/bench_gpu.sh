#!/bin/bash
# bench_gpu -- bench/run gpu: without a driver of CUDA it names the library and does nothing; on OpenCL and on an emulated device of CUDA it
# checks and times kernels and a network, and writes the CSV of the suites.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
emulator=$TEC_BUILD_DIR/tests/cuda
header=suite,workload,threads,ours_ms,ours_gflops,pct_of_peak,peer,peer_ms,ratio,device,gbytes,copy_share,least,sm_mhz,tf32,engines

fail() {
    echo "bench_gpu: $*" >&2
    [ ! -f "$dir/out" ] || tail -n 20 "$dir/out" >&2
    exit 1
}
says() {
    grep -qE -- "$1" "$dir/out" || fail "does not say '$1'"
}
# gpu STATUS [OPTIONS]
gpu() {
    local want=$1 status=0
    shift
    /usr/bin/python3 bench/run gpu --rounds 1 --seconds 0.05 --threads 1 --csv "$dir/csv" "$@" >"$dir/out" 2>&1 || status=$?
    [ $status = "$want" ] || fail "gpu $* ends with $status, expected $want"
}

mkdir "$dir/none"
echo none >"$dir/none/libcuda.so.1"
LD_LIBRARY_PATH=$dir/none gpu 3
says "^bench: gpu: no cuda device: no driver: looked for 'libcuda.so.1': "
[ "$(wc -l <"$dir/out")" = 1 ] && [ ! -e "$dir/csv" ] || fail "does more than to say so"
gpu 1 --device opencl:99
says "^bench: gpu: there is no device 'opencl:99': "

gpu 0 --device opencl --only softmax
says '^bench: gpu: opencl:0: .*, driver Portable Computing Language'
says '^bench: gpu: TF32 is off in both; sums of f16 products are f32$'
cp "$dir/csv" "$dir/out"
[ "$(head -n 1 "$dir/csv")" = "$header" ] || fail "another header"
says '^gpu,softmax-256,1,[0-9.]+,[0-9.]+,,,,,opencl:0,[0-9.]+,,0.85,,off,$'
[ "$(wc -l <"$dir/csv")" = 2 ] || fail "more rows than were asked for"
gpu 0 --device opencl --only digits
says '^gpu +digits '

LD_LIBRARY_PATH=$emulator TEC_CUDA=$emulator gpu 0 --only hgemm
says '^bench: gpu: cuda:0: emulated on the CPU, driver CUDA .*, at most [0-9]+ MHz$'
says '^gpu +hgemm-128 .* cuda:0 '
echo "bench_gpu: ok"
