#!/bin/bash
# versions -- real sessions through a tracker where one of the three programs, the server, the tracker or the client, is one version
# of the protocol before or after the others: a case is compiled, uploaded, run and compared. Where a program no longer speaks the
# version of the others, it says who must be upgraded.
set -eu

fail() {
    echo "versions: $*"
    exit 1
}

# program NAME VERSION: its path; the version `same` is what is built for users
program() {
    [ "$2" = same ] && echo "$TEC_BUILD_DIR/$1" || echo "$TEC_BUILD_DIR/tests/$1_$2"
}

room=$(mktemp -d)
chmod 711 "$room"
running=()
stop_all() {
    for pid in "${running[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    running=()
}
trap 'stop_all; rm -rf "$room"' EXIT
"$TEC" keys --key-file "$room/keys" --roles submit,serve,administer new >/dev/null

# start NAME PROGRAM OPTION...: sets $port
start() {
    local name=$1
    shift
    : >"$room/$name.said"
    "$@" --listen 127.0.0.1:0 --key-file "$room/keys" >"$room/$name.said" 2>"$room/$name.log" &
    running+=($!)
    for _ in $(seq 200); do
        port=$(sed -n 's/.*\(port \|127.0.0.1:\)\([0-9]\+\).*/\2/p' "$room/$name.said")
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    fail "$name did not start: $(cat "$room/$name.log")"
}

# open_pool TRACKER SERVER: their versions; sets $tracker and $server
open_pool() {
    stop_all
    rm -f "$room"/tracker.db*
    start tracker "$(program rpc_tracker "$1")" --state "$room/tracker.db"
    tracker=127.0.0.1:$port
    start server "$(program rpc_server "$2")" --tracker "$tracker" --device-class board --name board
    server=127.0.0.1:$port
}

# of_pool VERSION COMMAND...: by a client
of_pool() {
    local client
    client=$(program tec "$1")
    "$client" "$2" --tracker "$tracker" --key-file "$room/keys" "${@:3}" 2>&1
}

suite=$(dirname "$(dpkg -L libonnx-testdata | grep -m1 'node/test_relu$')")
for versions in "same same same" "older same same" "newer same same" "same older same" "same newer same" "same same older" \
    "same same newer"; do
    set -- $versions
    what="a tracker '$1', a server '$2', a client '$3'"
    open_pool "$1" "$2"
    said=$(of_pool "$3" check --device-class board --wait 20 "$suite/test_relu") || fail "$what: $said $(cat "$room"/*.log)"
    grep -q "^1 passed, 0 failed" <<<"$said" || fail "$what: $said"
    said=$(of_pool "$3" devices) || fail "$what: $said"
    grep -q "board/cpu:0 .* free" <<<"$said" || fail "$what: $said"
    echo "$what: a session, and the list of devices"
done

# The server registers by itself, some time after its start.
wait_for_refusal() {
    for _ in $(seq 100); do
        grep -q "upgrade the" "$room/server.log" && return
        sleep 0.05
    done
}

# Who must be upgraded.
module=$room/relu.so
"$TEC" compile "$suite/test_relu/model.onnx" -o "$module" >"$room/said" 2>&1 || fail "$(cat "$room/said")"
open_pool later same
wait_for_refusal
grep -q "the server speaks versions .* upgrade the client" "$room/server.log" || fail "a later tracker: $(cat "$room/server.log")"
grep -q "the client speaks versions .* upgrade the client" "$room/tracker.log" || fail "a later tracker: $(cat "$room/tracker.log")"
said=$(of_pool same devices) && fail "a client spoke to a later tracker"
grep -q "upgrade the client" <<<"$said" || fail "a client of a later tracker: $said"
open_pool same same
for what in "devices --tracker $tracker" "run --rpc $server $module"; do
    said=$("$(program tec later)" $what --key-file "$room/keys" 2>&1) && fail "a later client: '$what' worked"
    grep -q "upgrade the server" <<<"$said" || fail "a later client: '$what': $said"
done
open_pool same later
wait_for_refusal
grep -q "upgrade the server" "$room/server.log" || fail "a later server: $(cat "$room/server.log")"
grep -q "upgrade the server" "$room/tracker.log" || fail "a later server: $(cat "$room/tracker.log")"
said=$("$TEC" run --rpc "$server" --key-file "$room/keys" "$module" 2>&1) && fail "a client spoke to a later server"
grep -q "upgrade the client" <<<"$said" || fail "a client of a later server: $said"
echo "versions: ok"
