#!/bin/bash
# hostile -- files that are made to break the importer, submitted as jobs: random models with damaged bytes (those of
# tests/graph/onnx/mutate.c), and files of definitions that ask for more than there is. Each such job ends failed with its cause, or
# done where the file was a model after all; the daemon goes on, and jobs of honest files between them are done.
#
#   TEC=... TEC_BUILD_DIR=... [HOSTILE=2000] tests/tvmtune/hostile.sh
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
models=${HOSTILE:-24}
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT
limits=(--memory 2048)
[ -z "${TEC_SANITIZE:-}" ] || limits=(--memory 0)

fail() {
    [ ! -e "$dir/log" ] || tail -n 20 "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "hostile: $*" >&2
    exit 1
}

mkdir "$dir/models"
TEC_MUTATIONS=$models TEC_MUTATION_SEED=${HOSTILE_SEED:-7} TEC_MUTATIONS_TO=$dir/models \
    "$TEC_BUILD_DIR/tests/test_graph_onnx_mutate" --jobs 1 >"$dir/out" 2>&1 || fail "no models were made"
rm "$dir/out"
head -c 3000 tests/models/digits/model.onnx >"$dir/models/cut.onnx"
head -c 100000 /dev/zero | tr '\0' '\22' >"$dir/models/nested.onnx"
: >"$dir/models/names.te"
echo 'def f(A: f32[4]) {' >"$dir/models/open.te"
printf 'def f(A: f32[4]) {\n  B[i] = %s1%s\n  return B\n}\n' "$(printf '(%.0s' $(seq 100000))" "$(printf ')%.0s' $(seq 100000))" >"$dir/models/deep.te"
printf 'def f(A: f32[4611686018427387904, 4611686018427387904]) {\n  B[i, j] = A[i, j]\n  return B\n}\n' >"$dir/models/huge.te"
head -c 65536 /dev/urandom >"$dir/models/noise.te"
rm "$dir/models/names.te" # an empty file is refused at the door
honest='def honest(A: f32[64]) {\n  B[i] = A[i] * %d.0\n  return B\n}\n'

"$tvmtune" serve --state "$state" --jobs 2 --patience 60 "${limits[@]}" 2>"$dir/log" &
daemon=$!
for _ in $(seq 200); do
    [ ! -s "$state/port" ] || break
    sleep 0.1
done

submit() {
    "$tvmtune" submit --state "$state" "$1" --trials 2 --threads 1 >"$dir/out" 2>&1 || fail "$1 is refused"
}
n=0
for file in "$dir"/models/*; do
    submit "$file"
    n=$((n + 1))
    [ $((n % 10)) = 5 ] || continue
    printf "$honest" $n >"$dir/honest$n.te"
    submit "$dir/honest$n.te"
done

states() {
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1], timeout=60).execute(sys.argv[2]): print(*row)' "$state/tune.db" "$1"
}
for _ in $(seq $((60 * (n + 10)))); do
    [ "$(states "SELECT COUNT(*) FROM queue WHERE state NOT IN ('done', 'failed')")" != 0 ] || break
    sleep 0.2
done
kill -0 $daemon || fail "the daemon ended"
[ "$(states "SELECT COUNT(*) FROM queue WHERE state NOT IN ('done', 'failed')")" = 0 ] || fail "jobs do not end"
[ "$(states "SELECT COUNT(*) FROM queue WHERE name LIKE 'honest%' AND state <> 'done'")" = 0 ] || fail "an honest job is not done"
[ "$(states "SELECT COUNT(*) FROM queue WHERE state = 'failed' AND cause = ''")" = 0 ] || fail "a job failed without a cause"
for name in cut.onnx nested.onnx open.te deep.te huge.te noise.te; do
    [ "$(states "SELECT state FROM queue WHERE name = '$name'")" = failed ] || fail "$name did not fail"
done
crashes=$(states "SELECT COUNT(*) FROM queue WHERE cause LIKE '%signal%'")
[ "$crashes" = 0 ] || { states "SELECT id, name, cause FROM queue WHERE cause LIKE '%signal%'"; fail "$crashes processes crashed"; }
[ -z "$(ls "$state/work")" ] || fail "files of jobs stay behind"
echo "hostile: $n files: $(states "SELECT COUNT(*) FROM queue WHERE state = 'failed'") failed with their cause," \
    "$(states "SELECT COUNT(*) FROM queue WHERE state = 'done' AND name NOT LIKE 'honest%'") were models after all;" \
    "$(states "SELECT COUNT(*) FROM queue WHERE name LIKE 'honest%'") honest jobs done"
