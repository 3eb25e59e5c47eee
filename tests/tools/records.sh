#!/bin/bash
# records -- tec records: import, list, best, export, merge, compact and check of a store, and their exit statuses.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
db=$dir/a.db

fail() {
    echo "records: $*" >&2
    exit 1
}

# expect STATUS WORDS OPERANDS...: tec records ends with the status, and a line of its output has WORDS.
expect() {
    local status=$1 words=$2 got=0
    shift 2
    "$TEC" records "$@" >"$dir/out" 2>&1 || got=$?
    [ $got = "$status" ] || { cat "$dir/out"; fail "'$*' ended with $got instead of $status"; }
    grep -qF -- "$words" "$dir/out" || { cat "$dir/out"; fail "'$*' does not say '$words'"; }
}

# record TRIAL COST TRACE: a line of JSON
record() {
    printf '{"tec_record":1,"workload":{"anchor_key":"add","exact_key":"add 64","definition":"%s","flops":64,"summary":"f32[64]"},' \
        'def add(A: f32[64], B: f32[64]) {\n  C[x] = A[x] + B[x]\n  return C\n}\n'
    printf '"target":{"fingerprint":"v3","text":"llvm -mcpu=x86-64-v3"},"costs":[%s],"trace":"%s","status":"ok","trial":%s,"time":5}\n' \
        "$2" "$3" "$1"
}

{
    record 1 0.002 'vectorize(C.x)\n'
    record 2 0.001 'parallel(C.x)\n'
    echo '{"tec_record":1,"workload":{"anchor_key":"add","exact_key":"add 64"},"target":{"fingerprint":"v3"},"status":"timeout","time":5}'
} >"$dir/in.jsonl"

expect 1 "the record store does not exist" list "$db"
expect 0 "3 records added, 0 were there already" import "$db" "$dir/in.jsonl"
expect 0 "0 records added, 3 were there already" import "$db" - <"$dir/in.jsonl"
expect 0 "f32[64]" list "$db"
hash=$(sed -n 2p "$dir/out" | cut -d' ' -f1)
expect 0 '"ok":2,"failed":1' list "$db" --json
expect 0 "parallel(C.x)" best "$db"
expect 0 "vectorize(C.x)" best "$db" --workload "$hash" --limit 2
expect 1 "there is no workload 'none'" best "$db" --workload none
expect 0 ": 0 problems" check "$db"

expect 0 "3 records" export "$db" -o "$dir/all.jsonl"
expect 0 "3 records added" import "$dir/b.db" "$dir/all.jsonl"
"$TEC" records export "$dir/b.db" 2>"$dir/err" | cmp - "$dir/all.jsonl" || fail "an export of an import differs"
[ "$(ls "$dir" | grep -c 'jsonl[.]')" = 0 ] || fail "a partial file was left"

{ record 3 0.003 'unroll(C.nothing)\n'; echo nonsense; } >"$dir/bad.jsonl"
expect 1 "bad.jsonl:2: error: not JSON, at byte 1; nothing was imported" import "$db" --strict "$dir/bad.jsonl"
expect 0 ":2: not JSON" import "$db" "$dir/bad.jsonl"
expect 1 "its trace cannot be applied: error: trace:1:1: unroll(C.nothing)" check "$db"
expect 0 ": 0 problems" check "$db" --no-traces
expect 0 "1 records added, 3 were there already" merge "$dir/b.db" "$db"
expect 1 "cannot merge a record store into itself" merge "$db" "$db"
expect 2 "which version the file gets is missing: --to N" downgrade "$db"
expect 1 "cannot downgrade the schema to version 2; expected 4 to" downgrade "$db" --to 2
expect 0 ": version 4 of the schema" downgrade "$db" --to 4
expect 0 "f32[64]" list "$dir/b.db"
expect 1 "has version 4 of the schema and must be opened for writing once" list "$db"
expect 0 "1 records kept, 3 dropped" compact "$db" --keep 1
expect 0 "timeout" list "$db"

head -c 5000 "$db" >"$dir/cut.db"
expect 1 "damaged" check "$dir/cut.db"
expect 1 "not a record store" list "$dir/in.jsonl"
expect 2 "there is no action 'sing'" sing "$db"
expect 2 "one operand too many: 'more'" list "$db" more
expect 2 "expected files behind the store for 'merge'" merge "$db"
expect 2 "this action takes no option 'keep'" list "$db" --keep 3
expect 2 "--keep: expected a number from 1 to" compact "$db" --keep 0
expect 2 "an operand is missing" list
echo "records: ok"
