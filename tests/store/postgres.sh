#!/bin/bash
# postgres -- a store on a server of PostgreSQL: the tests of the store once more with all their stores there; what
# is refused; records that move between a file and the server; writers that outlive restarts and the death of the
# server.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
. tests/postgres.inc
dir=$(mktemp -d)
trap 'stop_postgres || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "postgres: $*" >&2
    exit 1
}

# expect STATUS WORDS OPERANDS...: tec records ends with the status, and a line of its output has WORDS.
expect() {
    local want=$1 words=$2 got=0
    shift 2
    "$TEC" records "$@" >"$dir/out" 2>&1 || got=$?
    [ $got = "$want" ] || fail "records $*: status $got, expected $want"
    grep -qF -- "$words" "$dir/out" || fail "records $*: no line with '$words'"
}

schema() { # NAME: makes it, and prints the address of a store in it
    pg_sql "CREATE SCHEMA $1" >"$dir/out"
    echo "$pg_url&options=-csearch_path%3D$1"
}

start_postgres "$dir/pg"

# ---- the same suites ----

for suite in add query check exchange state queue queue_tasks; do
    TEC_TEST_STORE=$pg_url "$TEC_BUILD_DIR/tests/test_store_$suite" -j2 --timeout 300 >"$dir/out" 2>&1 || fail "suite $suite"
    grep -q 'Tested: [1-9]' "$dir/out" || fail "suite $suite tested nothing"
done

# ---- what is refused ----

store=$(schema store)
expect 1 "the record store does not exist" list "$store"
other=$(schema other)
pg_sql "CREATE TABLE other.x (y INTEGER)"
expect 1 "holds 1 tables of another program" import "$other" /dev/null
pg_sql "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
expect 1 "needs a database in UTF8; this one is in LATIN1" import "${pg_url/@\/postgres/@/latin}" /dev/null
expect 1 'database "nowhere" does not exist' import "${pg_url/@\/postgres/@/nowhere}" /dev/null
expect 1 "postgresql://nobody@" import "${pg_url/tec@/nobody:secret@}" /dev/null
! grep -q secret "$dir/out" || fail "a password is shown"
expect 0 "0 records added" import "$store" /dev/null
pg_sql "UPDATE store.tec_schema SET version = 99"
expect 1 "has version 99 of the schema" list "$store"
pg_sql "DELETE FROM store.tec_schema"
expect 1 "the record store does not exist" list "$store"
pg_sql "DROP SCHEMA store CASCADE" 2>"$dir/err"
store=$(schema store)

# ---- records move ----

lines() { # FIRST LAST: records as lines of JSON
    python3 - "$1" "$2" <<'END'
import json, sys
for i in range(int(sys.argv[1]), int(sys.argv[2])):
    print(json.dumps({"tec_record": 1, "workload": {"anchor_key": "add", "exact_key": "add %d" % (i % 7), "flops": 64,
        "definition": "def add(A: f32[64], B: f32[64]) {\n  C[x] = A[x] + B[x]\n  return C\n}\n"},
        "target": {"fingerprint": "llvm", "text": "llvm -mcpu=x86-64-v3"}, "device": {"name": "h", "text": "c"}, "trace": "",
        "costs": [1e-6 * (1 + i)], "status": "ok", "tuner": "t", "seed": str(i), "batch": 0, "trial": i, "codegen": "1", "tec": "0.1.0",
        "time": 1700000000}))
END
}
lines 0 1500 >"$dir/in.jsonl"
expect 0 "1500 records added" import "$dir/a.db" "$dir/in.jsonl"
expect 0 "1500 records added" merge "$store" "$dir/a.db"
expect 0 "0 records added, 1500 were there already" merge "$store" "$dir/a.db"
expect 0 "0 problems" check --no-traces "$store"
"$TEC" records export "$dir/a.db" >"$dir/a.jsonl" 2>"$dir/err"
"$TEC" records export "$store" 2>"$dir/err" | cmp - "$dir/a.jsonl" || fail "the server gives other records than the file"
expect 0 "1500 records added" import "$dir/b.db" - < <("$TEC" records export "$store" 2>"$dir/err")
expect 1 "cannot merge a record store into itself" merge "$store" "$store&application_name=other"
expect 0 "7 records kept, 1493 dropped" compact "$store" --keep 1

# ---- the server ends while records are written ----

lines 2000 32000 >"$dir/many.jsonl"
"$TEC" records import "$store" "$dir/many.jsonl" >"$dir/import" 2>&1 &
import=$!
for mode in fast immediate; do
    sleep 0.7
    [ $mode != fast ] || kill -0 $import || { cat "$dir/import"; fail "the import was over before the server was restarted"; }
    restart_postgres $mode
done
wait $import || { cat "$dir/import"; fail "an import does not outlive its server"; }
[ "$(pg_sql "SELECT COUNT(*), COUNT(DISTINCT hash) FROM store.records")" = "30007 30007" ] ||
    fail "records are lost or doubled: $(pg_sql "SELECT COUNT(*) FROM store.records")"
stop_postgres
expect 1 "the server of the record store cannot be reached" list "$store"
echo "postgres: ok"
