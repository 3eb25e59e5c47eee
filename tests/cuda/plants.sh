#!/bin/bash
# plants -- the fuzzer finds faults that are planted in the printers, in the lists of launches, in what warps exchange and in memory of several launches
# (base/plants.def), from a case on that shows it. All: tec fuzz --plant all --target "cuda -arch=sm_80" --cases 500.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_LIBRARY_PATH=$TEC_BUILD_DIR/tests/cuda TEC_CUDA=$TEC_BUILD_DIR/tests/cuda

if ! "$TEC" fuzz --plant list >"$out/list" 2>"$out/why"; then
    grep -q "faults are planted in debug builds only" "$out/why"
    echo "cuda plants: none in this build"
    exit 0
fi
# fault, the first case of seed 1 that is tried, cases
cat >"$out/from" <<'END'
source_guard 0 2
source_axis 0 2
source_end 13 2
source_parens 3 2
source_args 0 2
source_arms 1 2
source_else 15 2
source_floor 13 2
source_nan 0 2
source_less 0 2
cuda_barrier 0 2
warps_lane 12 3
outside_scope 356 2
split_workspace 3 2
split_sequence 3 2
split_loop 15 2
split_grid 0 2
END
while read -r fault first cases; do
    "$TEC" fuzz --plant "$fault" --target "cuda -arch=sm_80" --seed 1 --first "$first" --cases "$cases" --jobs 2 --keep "$out" >"$out/found" || {
        cat "$out/found"
        echo "cuda plants: $fault is not found"
        exit 1
    }
done <"$out/from"
echo "cuda plants: all $(wc -l <"$out/from") found"
