#!/bin/bash
# kept_records -- records that an earlier version wrote (tests/tools/kept/make) stay good: each replays on its definition, and each kernel that they
# were made for finds its own by its keys.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
kept=tests/tools/kept
target='llvm -mcpu=x86-64-v3 -num-cores=2'

fail() {
    echo "kept_records: $*" >&2
    exit 1
}

"$TEC" records import --strict "$dir/a.db" $kept/records.jsonl >"$dir/out" || fail "$(cat "$dir/out")"
grep -qF "$(wc -l <$kept/records.jsonl) records added" "$dir/out" || fail "$(cat "$dir/out")"
"$TEC" records check "$dir/a.db" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
grep -qF ": 0 problems" "$dir/out" || fail "$(cat "$dir/out")"

# Every kernel of the network has the schedule of a record.
"$TEC" compile tests/models/digits/model.onnx --dim batch=4 --target "$target" --records "$dir/a.db" -o "$dir/digits.tec" --json >"$dir/out" 2>"$dir/err" ||
    fail "$(cat "$dir/err")"
grep -qF ": 0 of 9 kernels have no record" "$dir/err" || fail "$(cat "$dir/err")"
for name in product softmax transpose vector; do
    dims=()
    [ $name != vector ] || dims=(--dim n=40)
    "$TEC" te $kept/kernels.te --name $name "${dims[@]}" --target "$target" --records "$dir/a.db" --emit trace >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/err")"
    grep -qF "'$name' has the schedule of its record" "$dir/err" || fail "$name: $(cat "$dir/err")"
done
