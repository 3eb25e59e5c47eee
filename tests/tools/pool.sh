#!/bin/bash
# pool -- the commands on devices far away: a tracker and servers as their manual pages say, tec run on a server and on
# a leased device, what it prints while it waits, and tec devices meanwhile.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
export XDG_STATE_HOME=$dir/state
programs=()
trap 'kill "${programs[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

fail() {
    echo "pool: $*" >&2
    cat "$dir/out" "$dir"/*.log >&2 || true
    exit 1
}

# start NAME PROGRAM...: its port is in $port
start() {
    local name=$1
    shift
    "$@" >"$dir/$name" 2>"$dir/$name.log" &
    programs+=($!)
    for _ in $(seq 200); do
        port=$(grep -oE '[0-9]+$' "$dir/$name" || true)
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    fail "$name does not listen"
}

# await WORDS COMMAND...: until the command says the words
await() {
    local words=$1
    shift
    for _ in $(seq 100); do
        "$@" >"$dir/out" 2>&1 || true
        ! grep -qE -- "$words" "$dir/out" || return 0
        sleep 0.1
    done
    fail "'$*' does not say '$words'"
}

# expect STATUS WORDS COMMAND...
expect() {
    local wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>&1 || status=$?
    [ $status = "$wanted" ] || fail "'$*' ends with $status, not $wanted"
    grep -qE -- "$words" "$dir/out" || fail "'$*' does not say '$words'"
}

echo 'def add(A: f32[64], B: f32[64]) { C[i] = A[i] + B[i] return C }' >"$dir/add.te"
"$TEC" te "$dir/add.te" -o "$dir/add.so"
"$TEC" run "$dir/add.so" --out "$dir/here" --repeat 1 >"$dir/out"

start tracker "$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --heartbeat 0.5
tracker=127.0.0.1:$port
start server "$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0
server=$port
expect 0 'median' "$TEC" run --rpc "127.0.0.1:$port" --out "$dir/there" --repeat 3 "$dir/add.so"
cmp "$dir/here/C.npy" "$dir/there/C.npy" || fail "the results of the server differ"

# A kernel that the driver of the session's device compiles, in the session's sandbox.
"$TEC" te "$dir/add.te" --target opencl -o "$dir/add_opencl.so"
expect 0 'median' "$TEC" run --rpc "127.0.0.1:$port" --device opencl:0 --out "$dir/opencl" --repeat 3 "$dir/add_opencl.so"
cmp "$dir/here/C.npy" "$dir/opencl/C.npy" || fail "the results of OpenCL on the server differ"

# A file of options is checked: lines that make no sense are named.
printf 'tracker = %s\ndevice-class = desk\nname = shelf-1\n' "$tracker" >"$dir/server.conf"
start shelf "$TEC_BUILD_DIR/rpc_server" --config "$dir/server.conf"
shelf=${programs[-1]}
await 'shelf-1/cpu:0 +desk +free' "$TEC" devices --tracker "$tracker"
printf 'tracker = %s\nspeed = 5\n' "$tracker" >"$dir/bad.conf"
expect 2 "bad.conf:2: there is no option 'speed'" "$TEC_BUILD_DIR/rpc_server" --config "$dir/bad.conf"
expect 2 "name the class of the devices with --device-class" "$TEC_BUILD_DIR/rpc_server" --tracker "$tracker"
expect 1 "'a/b' does not name the classes of devices" "$TEC_BUILD_DIR/rpc_server" --tracker "$tracker" --device-class a/b

run=("$TEC" run --tracker "$tracker" --device-class desk)
expect 0 'median' "${run[@]}" --repeat 3 --out "$dir/leased" "$dir/add.so"
cmp "$dir/here/C.npy" "$dir/leased/C.npy" || fail "the results of the leased device differ"
expect 0 '"median_ms"' "${run[@]}" --json "$dir/add.so"
expect 1 "no device class 'phone'; there are: desk" "$TEC" run --tracker "$tracker" --device-class phone "$dir/add.so"
expect 2 'tracker needs --device-class' "$TEC" run --tracker "$tracker" "$dir/add.so"
expect 2 'are for --tracker' "$TEC" run --device-class desk "$dir/add.so"

# A program takes and gives trees there as it does here, with the same limits and the same messages.
cat >"$dir/sum.tecp" <<'TECP'
type Tree = Leaf(f32[2]) | Node(Tree, Tree)

def main(t: Tree, more: bool) -> (f32[2], Tree) {
  match t {
    Leaf(x) => (if more { x * 2 } else { x }, t)
    Node(l, r) => {
      let (a, m) = main(l, more)
      let (b, n) = main(r, more)
      (a + b, Node(n, m))
    }
  }
}
TECP
"$TEC" compile "$dir/sum.tecp" -o "$dir/sum.tec" --quiet
echo '{"Node": [{"Leaf": [[1, 2]]}, {"Node": [{"Leaf": [[3, 4]]}, {"Leaf": [[5, -6]]}]}]}' >"$dir/t.json"
echo true >"$dir/more.json"
echo '{"Branch": []}' >"$dir/branch.json"
program=("$dir/sum.tec" --input "t=$dir/t.json" --input "more=$dir/more.json")
"$TEC" run "${program[@]}" --out "$dir/program" --repeat 1 >"$dir/out"
for where in "--rpc 127.0.0.1:$server" "--tracker $tracker --device-class desk"; do
    # shellcheck disable=SC2086
    there=("$TEC" run $where)
    expect 0 '^\[\[18, 0\], .*\{"Leaf": \[\[1, 2\]\]\}' "${there[@]}" "${program[@]}"
    grep -q median "$dir/out" || fail "a program there has no latency"
    expect 0 'median' "${there[@]}" "${program[@]}" --out "$dir/program_there" --repeat 3
    cmp "$dir/program/result.json" "$dir/program_there/result.json" || fail "the results of the program differ"
    expect 0 '"median_ms"' "${there[@]}" "${program[@]}" --json
done
there=("$TEC" run --rpc "127.0.0.1:$server")
expect 1 "sum.tecp:7: in 'main': calls nest deeper than the limit of 1" "${there[@]}" "${program[@]}" --max-depth 1
expect 1 'the limit of 20 steps is reached' "${there[@]}" "${program[@]}" --max-steps 20
expect 1 "input 'more' \(bool\) has no value: give it with --input more=FILE \(.json, .npy or .pb\)" "${there[@]}" "$dir/sum.tec" \
    --input "t=$dir/t.json"
expect 1 "the program has no input 'x'" "${there[@]}" "${program[@]}" --input "x=$dir/t.json"
expect 1 'expected .*CONSTRUCTOR.* of .Tree., found .*Branch' "${there[@]}" "${program[@]}" --input "t=$dir/branch.json"

# A profile has the rows there that it has here, more of them than one message holds; times are the device's.
{
    echo 'def main(x: f32[4, 4]) -> f32[4, 4] {'
    echo '  let a0 = x'
    for i in $(seq 40); do echo "  let a$i = matmul(a$((i - 1)), x)"; done
    echo '  a40'
    echo '}'
} >"$dir/chain.tecp"
"$TEC" compile "$dir/chain.tecp" -o "$dir/chain.tec" --quiet
# rows FILE: what does not vary of a profile's JSON (quick calls are measured several at a time); the shares are 1 together
rows() {
    python3 - "$1" <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
rows = profile["rows"] if isinstance(profile, dict) else profile
assert abs(sum(r["share"] for r in rows) - 1) < 1e-6 and all(r["calls"] > 0 for r in rows), rows
for r in rows:
    print(r["name"], r.get("nodes"), r.get("group"), r["origin"])
PY
}
for module in chain sum; do
    what=("$dir/chain.tec")
    [ $module = chain ] || what=("${program[@]}" --out "$dir/program_there")
    expect 0 'name' "$TEC" run "${what[@]}" --repeat 3 --profile --json
    rows "$dir/out" >"$dir/rows_here" || fail "rows of $module"
    expect 0 'name' "${there[@]}" "${what[@]}" --repeat 3 --profile --json
    rows "$dir/out" >"$dir/rows_there" || fail "rows of $module there"
    cmp "$dir/rows_here" "$dir/rows_there" || fail "the rows of $module differ: $(diff "$dir/rows_here" "$dir/rows_there")"
done
expect 0 'origin +step' "${run[@]}" "$dir/chain.tec" --repeat 3 --profile
[ "$(grep -c ' matmul \[4, 4, 4, 4\] (' "$dir/out")" = 40 ] || fail "not a row for each step"
expect 0 '^kernel [0-9.]+ %, shape kernel 0.0 %' "${there[@]}" "${program[@]}" --out "$dir/program_there" --profile
expect 2 "'.*add.so' is run as a function" "$TEC" run "$dir/add.so" --profile
expect 1 "'.*add.so' is run as a function" "${there[@]}" "$dir/add.so" --profile

# One run has the device for some seconds; others wait: one says so, and one gives up.
"${run[@]}" --user ann --job long --duration 5 "$dir/add.so" >"$dir/long.log" 2>&1 &
long=$!
await 'shelf-1/cpu:0 +desk +leased +ann, job long' "$TEC" devices --tracker "$tracker"
"${run[@]}" "$dir/add.so" >"$dir/waits.log" 2>&1 &
waits=$!
await 'waiting: 0 ahead of you; 1 of 1 devices of class .desk. are leased' cat "$dir/waits.log"
expect 1 "no device of class 'desk' became free within 0.3 s" "${run[@]}" --wait 0.3 "$dir/add.so"
wait $long || fail "the run that had the device failed"
wait $waits || fail "the run that waited failed"
grep -q median "$dir/waits.log" || fail "the run that waited measured nothing"

# The caches of a core are those of this machine.
if [ -d /sys/devices/system/cpu/cpu0/cache/index0 ]; then
    expect 0 '^ +caches of a core: l1_data [0-9]+ KiB' "$TEC" devices
    caches=$(grep -o 'caches of a core: .*' "$dir/out" | head -1)
    expect 0 "^ +$caches\$" "$TEC" devices --tracker "$tracker"
    "$TEC" devices --json >"$dir/here.json"
    "$TEC" devices --tracker "$tracker" --json >"$dir/there.json"
    python3 - "$dir/here.json" "$dir/there.json" <<'PY' || fail "the pool's list has other caches"
import json, sys

here, there = ([d["caches"] for d in json.load(open(file))["devices"] if d["name"].endswith("cpu:0")] for file in sys.argv[1:])
assert here == there and here[0], (here, there)
PY
fi

# An administrator takes a device and a server out of service, and back; what is leased goes on.
devices=("$TEC" devices --tracker "$tracker")
expect 0 '^shelf-1/cpu:0 is set aside$' "${devices[@]}" --set-aside shelf-1/cpu:0 --why 'the fan is broken'
expect 0 'shelf-1/cpu:0 +desk +set aside +the fan is broken' "${devices[@]}"
expect 1 "no device of class 'desk' became free within 0.3 s" "${run[@]}" --wait 0.3 "$dir/add.so"
expect 0 '^shelf-1/cpu:0 is in service again$' "${devices[@]}" --restore shelf-1/cpu:0
expect 0 'median' "${run[@]}" --repeat 3 "$dir/add.so"
"${run[@]}" --duration 3 "$dir/add.so" >"$dir/long.log" 2>&1 &
long=$!
await 'shelf-1/cpu:0 +desk +leased' "${devices[@]}"
expect 0 '^shelf-1/cpu:0 is set aside; the lease on it goes on$' "${devices[@]}" --set-aside shelf-1/cpu:0 --why hot
expect 0 '^shelf-1/cpu:0 is in service again$' "${devices[@]}" --restore shelf-1/cpu:0
expect 0 '^shelf-1 is draining; leases that go on: 1$' "${devices[@]}" --drain shelf-1
wait $long || fail "the run on a server that is drained failed"
await 'shelf-1/cpu:0 +desk +draining' "${devices[@]}"
expect 1 "no device of class 'desk' became free within 0.3 s" "${run[@]}" --wait 0.3 "$dir/add.so"
expect 0 '^shelf-1 is in service again$' "${devices[@]}" --restore shelf-1
expect 0 'median' "${run[@]}" --repeat 3 "$dir/add.so"
expect 1 "there is no device 'shelf-1/cpu:7'" "${devices[@]}" --restore shelf-1/cpu:7
expect 1 "there is no server 'shelf-2'" "${devices[@]}" --drain shelf-2
expect 2 'set-aside needs --why' "${devices[@]}" --set-aside shelf-1/cpu:0
expect 2 'why is for --set-aside' "${devices[@]}" --drain shelf-1 --why hot
expect 2 'give one of' "${devices[@]}" --drain shelf-1 --restore shelf-1
expect 2 'json is for the list' "${devices[@]}" --drain shelf-1 --json
expect 2 'are for --tracker' "$TEC" devices --drain shelf-1

# The tracker refuses the same words of a key without the role; of several keys the first with the role is used.
admins=$dir/admin.keys
"$TEC" keys --key-file "$admins" --roles submit new >"$dir/submit"
start closed "$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --heartbeat 0.5 --key-file "$admins" --state "$dir/closed.db"
closed=("$TEC" devices --tracker "127.0.0.1:$port" --key-file "$admins")
lacks="key $(cat "$dir/submit") may not send 'drain_server': it lacks the role 'administer'"
expect 1 "$lacks" "${closed[@]}" --drain a
expect 1 "$lacks" "${closed[@]}" --restore a
"$TEC" keys --key-file "$admins" --roles administer new >"$dir/administer"
kill -HUP "${programs[-1]}"
await 'read keys and weights again' cat "$dir/closed.log"
expect 1 "there is no server 'a'" "${closed[@]}" --drain a

# A server that ends in order is not listed any more; one that is gone is, with the cause.
kill -TERM "$shelf"
wait "$shelf" || fail "the server ended with $?"
await '^127.0.0.1:[0-9]+: 0 servers' "$TEC" devices --tracker "$tracker"
! grep -q shelf-1 "$dir/out" || fail "a server that signed off is listed"
echo "pool: ok"
