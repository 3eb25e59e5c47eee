# tests/fuzz/slice.sh -- a slice of the fuzzer: the same cases each time; none may be wrong, whatever the number of processes.
#
# A case may take three minutes: LLVM needs more than one for the largest unrolled kernels.
#
#   TEC_FUZZ_CASES=2000      so many cases: about two minutes on two cores
#   TEC_FUZZ_SEED=today      as many again of a seed that changes from day to day, or of the seed that is given; not where a failure must not be chance
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

slice() {
    echo "seed $1, $2 cases"
    "$TEC" fuzz --cases "$2" --seed "$1" --jobs 2 --shrink 1 --timeout 180 --keep "$out" >"$out/slice" && cat "$out/slice" && return
    cat "$out/slice"
    echo "again: tec fuzz --seed $1 --cases $2, or with --first K --cases 1 for case K alone"
    exit 1
}

slice 2 "${TEC_FUZZ_CASES:-100}"
case "${TEC_FUZZ_SEED:-}" in
"") ;;
today) slice "$(date -u +%Y%m%d)" "${TEC_FUZZ_CASES:-100}" ;;
*) slice "$TEC_FUZZ_SEED" "${TEC_FUZZ_CASES:-100}" ;;
esac

"$TEC" fuzz --cases 24 --seed 3 --jobs 1 --resume "$out/state" >/dev/null
"$TEC" fuzz --cases 24 --seed 3 --jobs 2 --resume "$out/state" --json >"$out/resumed"
"$TEC" fuzz --cases 48 --seed 3 --jobs 2 --json >"$out/whole"
if ! diff <(grep -v seconds "$out/resumed") <(grep -v seconds "$out/whole"); then
    echo "a run that was resumed tells another story than one in one go"
    exit 1
fi
if "$TEC" fuzz --cases 8 --seed 4 --resume "$out/state" 2>"$out/refused"; then
    echo "the state of another seed was taken"
    exit 1
fi
grep -q "another seed" "$out/refused"
