#!/bin/bash
# nat -- machines that cannot reach each other: a client, a tracker and a board in network namespaces of their own. The
# board has no address that the client could dial, and listens nowhere; its devices are leased and used all the same.
# Beyond loopback every door demands a key that is named.
#
#     client 10.77.2.2 ---- 10.77.2.1 tracker 10.77.1.1 ---- 10.77.1.2 board          (the tracker forwards no packets)
#
# The namespaces are this script's own and go with it. Where they cannot be made, the test fails.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"

if [ -z "${TEC_NAT_INSIDE:-}" ]; then
    user=()
    [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
    TEC_NAT_INSIDE=1 exec unshare "${user[@]}" --mount --net --pid --fork --kill-child bash "$0"
fi

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
mount -t tmpfs none /run
mkdir -p /run/netns

fail() {
    echo "nat: $*" >&2
    tail -n 20 "$dir/out" "$dir"/*.log >&2 || true
    exit 1
}

for name in hub board client; do
    ip netns add $name
    ip -n $name link set lo up
done
# join NAME THIRD: a cable between the hub and NAME
join() {
    ip link add to-"$1" netns hub type veth peer name wire netns "$1"
    ip -n hub addr add 10.77."$2".1/24 dev to-"$1"
    ip -n "$1" addr add 10.77."$2".2/24 dev wire
    ip -n hub link set to-"$1" up
    ip -n "$1" link set wire up
}
join board 1
join client 2
at() { ip netns exec "$@"; }

# expect STATUS WORDS COMMAND...
expect() {
    local wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>&1 || status=$?
    [ $status = "$wanted" ] || fail "'$*' ends with $status, not $wanted"
    grep -qE -- "$words" "$dir/out" || fail "'$*' does not say '$words'"
}
# await FILE WORDS
await() {
    for _ in $(seq 200); do
        ! grep -qE -- "$2" "$dir/$1" 2>/dev/null || return 0
        sleep 0.05
    done
    fail "$1 does not say '$2'"
}

bin=$(realpath "$TEC_BUILD_DIR")
tec=$(realpath "$TEC")
keys=$dir/pool.keys
"$tec" keys --key-file "$keys" --roles serve --classes board new >"$dir/serve"
"$tec" keys --key-file "$keys" --roles submit --classes board --users ann new >"$dir/submit"
# keys_of NAME: a file with that key alone, as a machine of its own would have
keys_of() {
    grep "^$(cat "$dir/$1")" "$keys" >"$dir/$1.keys"
    chmod 600 "$dir/$1.keys"
    echo "$dir/$1.keys"
}
tracker=10.77.2.1:9190
echo 'def add(A: f32[64], B: f32[64]) { C[i] = A[i] + B[i] return C }' >"$dir/add.te"
"$tec" te "$dir/add.te" -o "$dir/add.so"
"$tec" run "$dir/add.so" --out "$dir/here" --repeat 1 >"$dir/out"

# Beyond loopback the keys are named, or nothing starts.
export XDG_STATE_HOME=$dir/state
expect 1 'can be reached from other machines: name the keys' at hub "$bin/rpc_tracker" --listen 0.0.0.0:9190
expect 1 'can be reached from other machines: name the keys' at hub "$bin/rpc_server" --listen 0.0.0.0:9191
expect 1 'can be reached from other machines: name the keys' \
    at board "$bin/rpc_server" --tracker 10.77.1.1:9190 --device-class board --dial-out
expect 1 '10.77.1.1:9190 can be reached from other machines: name the keys' \
    at board timeout 20 "$bin/rpc_server" --tracker 10.77.1.1:9190 --device-class board
rm -rf "$dir/state"

# The file of loopback keys opens the doors of loopback; named beyond it, it opens none.
loopback=$dir/state/tec/loopback.keys
for listen in 127.0.0.1:9189 "0.0.0.0:9188 --key-file $loopback"; do
    rm -f "$dir/loopback"
    # shellcheck disable=SC2086
    ip netns exec hub "$bin/rpc_tracker" --listen $listen --state "$dir/loopback.db" >"$dir/loopback" 2>"$dir/loopback.log" &
    await loopback 'ready at port'
    if [ "$listen" = 127.0.0.1:9189 ]; then
        expect 0 '0 servers' at hub "$tec" devices --tracker 127.0.0.1:9189 --key-file "$loopback"
    else
        expect 1 'the server refuses the key' at client "$tec" devices --tracker 10.77.2.1:9188 --key-file "$loopback"
        await loopback.log 'it is for loopback, and this tracker listens beyond'
        expect 1 'the server refuses the key' at hub "$tec" devices --tracker 127.0.0.1:9188 --key-file "$loopback"
    fi
    kill $!
    wait $! || fail "the tracker with the keys of loopback ended with $?"
done
ip netns exec hub "$bin/rpc_server" --listen 0.0.0.0:9187 --key-file "$loopback" >"$dir/loopback" 2>"$dir/loopback.log" &
await loopback 'listening on'
expect 1 'the server refuses the key' at client "$tec" run --rpc 10.77.2.1:9187 --key-file "$loopback" "$dir/add.so"
await loopback.log 'it is for loopback alone'
kill $!
wait $! || fail "the server with the keys of loopback ended with $?"

ip netns exec hub "$bin/rpc_tracker" --listen 0.0.0.0:9190 --key-file "$keys" --state "$dir/tracker.db" --heartbeat 0.5 \
    >"$dir/tracker" 2>"$dir/tracker.log" &
tracker_pid=$!
await tracker 'ready at port 9190'

# A server that listens where nobody comes through is registered, and the cause is told on both sides. Its key file
# has those of its clients as well: it lets them in by itself.
ip netns exec board "$bin/rpc_server" --tracker 10.77.1.1:9190 --device-class board --name wrong --listen 127.0.0.1:0 \
    --announce 10.77.1.2:9 --key-file "$keys" >"$dir/wrong" 2>"$dir/wrong.log" &
wrong=$!
await wrong.log 'registered but unreachable: .*cannot connect to 10.77.1.2:9: connection refused'
expect 0 'wrong/cpu:0 +board +unreachable +registered but unreachable: cannot connect to 10.77.1.2:9: connection refused' \
    at client "$tec" devices --tracker $tracker --key-file "$(keys_of submit)"
kill $wrong
wait $wrong || fail "the server that is not reached ended with $?"

# The board: it listens nowhere, and nobody can connect to it.
ip netns exec board "$bin/rpc_server" --tracker 10.77.1.1:9190 --device-class board --name board --dial-out --key-file "$keys" \
    >"$dir/board" 2>"$dir/board.log" &
await board 'serving through the tracker'
await board.log 'the tracker reaches this server'
[ -z "$(at board ss -Hltn)" ] || fail "the board listens: $(at board ss -Hltn)"
! at client bash -c 'exec 3<>/dev/tcp/10.77.1.2/22' 2>"$dir/out" || fail "the client reaches the board"
expect 0 'board/cpu:0 +board +free' at client "$tec" devices --tracker $tracker --key-file "$(keys_of submit)"

run=(at client "$tec" run --tracker $tracker --device-class board --repeat 3)
expect 0 median "${run[@]}" --key-file "$(keys_of submit)" --out "$dir/there" "$dir/add.so"
cmp "$dir/here/C.npy" "$dir/there/C.npy" || fail "the results of the board differ"
grep -q 'relay: lease 1, 10.77.2.2:[0-9]* to server' "$dir/tracker.log" || fail "the tracker relayed nothing"
grep -q "client 1: 10.77.1.1:9190 with key $(cat "$dir/submit") (submit), run" "$dir/board.log" ||
    fail "the board did not shake hands with the client itself"

# The same request without a key, with a key that nobody knows, of another role, of another user, and revoked.
expect 1 'no-such.keys: cannot open' "${run[@]}" --key-file "$dir/no-such.keys" "$dir/add.so"
"$tec" keys --key-file "$dir/other.keys" --roles submit new >"$dir/out"
expect 1 'the server refuses the key' "${run[@]}" --key-file "$dir/other.keys" "$dir/add.so"
expect 1 "may not send 'request': it lacks the role" "${run[@]}" --key-file "$(keys_of serve)" "$dir/add.so"
expect 1 "is not for user 'bob'" "${run[@]}" --key-file "$(keys_of submit)" --user bob "$dir/add.so"
expect 1 'is not for devices of class .phone.' at client "$tec" run --tracker $tracker --device-class phone \
    --key-file "$(keys_of submit)" "$dir/add.so"
expect 0 median "${run[@]}" --key-file "$(keys_of submit)" --user ann "$dir/add.so"
"$tec" keys --key-file "$keys" revoke "$(cat "$dir/submit")"
kill -HUP $tracker_pid
await tracker.log 'read keys and weights again'
expect 1 'the server refuses the key' "${run[@]}" --key-file "$dir/submit.keys" "$dir/add.so"
echo "nat: ok"
