#!/bin/bash
# compare -- tec compare: a slower module is told from a faster one in both orders, a module does not win against itself, and what
# cannot be compared is refused.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    cat "$dir/out"
    echo "compare: $*" >&2
    exit 1
}

module() { # NAME STEPS-OF-THE-SUM: a function whose work grows with the steps
    printf 'def f(A: f32[64, %d]) {\n  B[i] = sum[k](A[i, k])\n  return B\n}\n' "$2" >"$dir/$1.te"
    "$TEC" te "$dir/$1.te" -o "$dir/$1.tec" >"$dir/out" 2>&1 || fail "tec te $1"
}

wins() { # FIRST SECOND: true or false
    "$TEC" compare "$dir/$1.tec" "$dir/$2.tec" --json --duration 0.3 --threads 1 >"$dir/out" 2>&1 || fail "tec compare $1 $2"
    python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
assert o["pairs"] >= 5 and o["first_ms"] > 0 and o["second_ms"] > 0, o
print(str(o["wins"]).lower())' "$dir/out"
}

module large 65536
module small 64
[ "$(wins large small)" = true ] || fail "the module with a thousandth of the work does not win"
[ "$(wins small large)" = false ] || fail "the module with a thousand times the work wins"
"$TEC" compare "$dir/large.tec" "$dir/small.tec" --duration 0.1 >"$dir/out" 2>&1 || fail "tec compare"
grep -q "faster beyond the noise" "$dir/out" || fail "no sentence"

refused() { # WORDS OPERANDS...
    local words=$1
    shift
    ! "$TEC" compare "$@" >"$dir/out" 2>&1 || fail "compare $* is not refused"
    grep -qF "$words" "$dir/out" || fail "compare $*: no line with '$words'"
}

"$TEC" compile tests/models/digits/model.onnx --dim batch=1 -o "$dir/digits.tec" >"$dir/out" 2>&1
refused "No such file" "$dir/none.tec" "$dir/small.tec"
refused "FIRST SECOND" "$dir/small.tec"
"$TEC" compare "$dir/digits.tec" "$dir/digits.tec" --duration 0.1 >"$dir/out" 2>&1 || fail "models"
echo "compare: ok"
