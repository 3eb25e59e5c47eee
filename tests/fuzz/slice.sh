# tests/fuzz/slice.sh -- a slice of the fuzzer: 100 cases, the same each time; none may be wrong, whatever the number of processes.
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$TEC" fuzz --cases 100 --seed 1 --jobs 2 >"$out/two" || { cat "$out/two"; exit 1; }
cat "$out/two"
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
