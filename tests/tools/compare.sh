#!/bin/bash
# compare -- tec compare: a slower module is told from a faster one in both orders, a module does not win against itself, and what
# cannot be compared is refused.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -KILL $server 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    cat "$dir/out"
    echo "compare: $*" >&2
    exit 1
}

module() { # NAME STEPS-OF-THE-SUM: a function whose work grows with the steps
    printf 'def f(A: f32[64, %d]) {\n  B[i] = sum[k](A[i, k])\n  return B\n}\n' "$2" >"$dir/$1.te"
    "$TEC" te "$dir/$1.te" -o "$dir/$1.tec" >"$dir/out" 2>&1 || fail "tec te $1"
}

wins() { # FIRST SECOND OPTIONS...: true or false
    local first=$1 second=$2
    shift 2
    "$TEC" compare "$dir/$first.tec" "$dir/$second.tec" --json --duration 0.3 --threads 1 "$@" >"$dir/out" 2>"$dir/err" ||
        fail "tec compare $first $second $*: $(cat "$dir/err")"
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

# while somebody else holds the cores nothing is measured
exec 9</sys/devices/system/cpu/cpu$(($(nproc) - 1))
flock 9
! timeout 2 "$TEC" compare "$dir/large.tec" "$dir/small.tec" --duration 0.1 >"$dir/out" 2>&1 || fail "it measures on cores that are taken"
flock -u 9
exec 9<&-

# on a device far away
"$TEC" keys --key-file "$dir/keys" new >"$dir/out"
"$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$dir/keys" --folder "$dir" --quiet >"$dir/port" 2>"$dir/err" &
server=$!
for _ in $(seq 100); do
    [ ! -s "$dir/port" ] || break
    sleep 0.1
done
there=(--rpc "127.0.0.1:$(grep -oE '[0-9]+$' "$dir/port")" --key-file "$dir/keys")
[ "$(wins large small "${there[@]}")" = true ] || fail "far away the module with a thousandth of the work does not win"
[ "$(wins small large "${there[@]}")" = false ] || fail "far away the module with a thousand times the work wins"
"$TEC" compare "$dir/digits.tec" "$dir/digits.tec" --duration 0.1 "${there[@]}" >"$dir/out" 2>&1 || fail "models far away"
refused "No such file" "$dir/none.tec" "$dir/small.tec" "${there[@]}"
refused "cannot connect" "$dir/small.tec" "$dir/small.tec" --rpc 127.0.0.1:1 --key-file "$dir/keys"
echo "compare: ok"
