#!/bin/bash
# limits -- --limit NAME=N of each command that has it: a small limit refuses what the usual one takes, and the refusal names the limit;
# `tec help limits` and docs/limits.md list all limits of base/limits.def.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

fail() {
    echo "limits: $*"
    bad=1
}

# exits STATUS WORDS COMMAND...: ends with the status, and says the words.
exits() {
    local wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>&1 </dev/null || status=$?
    [ $status = "$wanted" ] && grep -qF -- "$words" "$dir/out" ||
        { fail "expected exit status $wanted and '$words', found $status from: $*"; head -3 "$dir/out"; }
}

"$TEC" help limits >"$dir/help"
names=$(sed -nE 's/^BASE_LIMIT\([a-z_]+, "([a-z-]+)".*/\1/p' base/limits.def)
[ "$(wc -w <<<"$names")" -ge 13 ] || fail "base/limits.def has only these limits: $names"
for name in $names; do
    grep -qE "^  $name +[0-9]+  [a-z]" "$dir/help" || fail "'tec help limits' does not list '$name'"
    value=$(sed -nE "s/^  $name +([0-9]+)  .*/\1/p" "$dir/help")
    grep -qE "^\| \`$name\` \| $value \|" docs/limits.md || fail "docs/limits.md does not list '$name' with $value"
done

# One grammar in all commands.
digits=tests/models/digits
cat >"$dir/f.te" <<'TE'
def f(A: f32[64]) {
  C[i] = A[i] * 2.0
  return C
}

schedule f {
  unroll(C.i)
}
TE
"$TEC" te "$dir/f.te" --emit tree >"$dir/f.tir"
printf 'def g(A: f32[8, 8]) {\n  C[i, j] = A[i, j]\n  return C\n}\n' >"$dir/g.te"
for line in "compile -o $dir/x.tec $digits/model.onnx" "check $digits" "te $dir/f.te" "tune --records $dir/r.db $dir/f.te" \
    "inspect $digits/model.onnx" "opt $dir/f.tir"; do
    exits 2 "expected NAME=VALUE, found 'nodes'" "$TEC" $line --limit nodes
    exits 2 "--limit nodes: expected a whole number, found 'x'" "$TEC" $line --limit nodes=x
    exits 2 "limit 'nodes': expected a number from 1 to 2147483647, found 0" "$TEC" $line --limit nodes=0
    exits 2 "--limit nodes is given twice" "$TEC" $line --limit nodes=5 --limit nodes=6
    exits 2 "there is no limit 'node'; did you mean 'nodes'?" "$TEC" $line --limit node=5
done

# Each command keeps to it.
nodes=$("$TEC" inspect "$digits/model.onnx" | awk '$1 ~ /^[0-9]+$/ { n += $1 } END { print n }')
refusal="nodes or more; the limit 'nodes' is $((nodes - 1)) (--limit nodes=N, tec_context_set_limit)"
exits 1 "$refusal" "$TEC" compile "$digits/model.onnx" -o "$dir/x.tec" --quiet --limit nodes=$((nodes - 1))
exits 1 "$refusal" "$TEC" inspect "$digits/model.onnx" --graph read --limit nodes=$((nodes - 1))
exits 1 "$refusal" "$TEC" tune "$digits/model.onnx" --kernels --records "$dir/r.db" --limit nodes=$((nodes - 1))
exits 0 "the limit 'nodes' is $((nodes - 1))" "$TEC" check "$digits" --limit nodes=$((nodes - 1))
exits 0 "1 passed, 0 failed" "$TEC" check "$digits" --limit nodes="$nodes" --limit dim-terms=50
exits 1 "'C.i' has 64 iterations; the limit 'unrolled-copies' is 63" "$TEC" te "$dir/f.te" --limit unrolled-copies=63
exits 0 "'f' and its schedule" "$TEC" te "$dir/f.te" --limit unrolled-copies=64
exits 1 "the limit 'unrolled-nodes' is 100" "$TEC" te "$dir/f.te" --emit asm --limit unrolled-nodes=100
exits 1 "the list is too long; the limit 'list' is 1" "$TEC" te "$dir/g.te" --limit list=1

# More than usual: the processes that build for the tuner know of it.
sed 's/64/5000/' "$dir/f.te" >"$dir/large.te"
exits 1 "'C.i' has 5000 iterations; the limit 'unrolled-copies' is 4096" "$TEC" te "$dir/large.te"
exits 0 "'f' and its schedule" "$TEC" te "$dir/large.te" --limit unrolled-copies=5000
"$TEC" te "$dir/large.te" --emit trace --limit unrolled-copies=5000 >"$dir/trace"
"$TEC" tune "$dir/large.te" --schedule "$dir/trace" --records "$dir/large.db" --trials 2 --limit unrolled-copies=5000 --json >"$dir/tuned" 2>&1 ||
    { fail "tune with a schedule that needs a higher limit"; tail -3 "$dir/tuned"; }
"$TEC" records export "$dir/large.db" >"$dir/records" 2>&1 || true
grep -q 'unroll(C.i)' "$dir/records" || { fail "the tuner has no record of the schedule"; head -5 "$dir/records" "$dir/tuned"; }
[ $bad = 0 ] && echo "limits: ok"
exit $bad
