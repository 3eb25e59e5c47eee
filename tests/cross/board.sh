# board.sh -- for the scripts beside it, which source it from the root of the project: a board's rpc_server under an emulator.
#
#     start_board aarch64          # or armhf; sets $board (its folder), $port and $keys
#     on_board check DIR...        # a command of tec, compiled for $target, run there
#     stop_board                   # also by the trap that it sets

fail() {
    echo "$0: $*"
    exit 1
}

build_board() {
    local made
    made=$(flock build/board.lock scripts/board "$1" 2>&1) || fail "scripts/board $1: $made"
    board=$(tail -1 <<<"$made")
}

# An emulated program cannot start itself, so a script starts the processes of its sessions.
start_board() {
    local emulator="qemu-aarch64 -cpu cortex-a53"
    build_board "$1"
    target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53"
    [ "$1" = aarch64 ] || { emulator="qemu-arm -cpu cortex-a7"; target="llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a7"; }
    room=$(mktemp -d)
    chmod 711 "$room"
    trap stop_board EXIT
    keys=$room/keys
    mkdir "$room/sessions"
    printf '#!/bin/sh\nexec %s -L %s %s "$@"\n' "$emulator" "$PWD/build/sysroot/$1" "$PWD/$board/rpc_server" >"$room/session"
    chmod 755 "$room/session"
    "$TEC" keys --key-file "$keys" new >"$room/id"
    : >"$room/said" # the loop below may read it before the server has started
    $emulator -L "build/sysroot/$1" "$board/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --json --weak-sandbox \
        --session-program "$room/session" --folder "$room/sessions" >"$room/said" 2>"$room/log" &
    server=$!
    for _ in $(seq 200); do
        port=$(sed -n 's/.*"port": \([0-9]*\).*/\1/p' "$room/said")
        [ -z "$port" ] || return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    fail "rpc_server for $1 did not start: $(cat "$room/log")"
}

stop_board() {
    [ -z "${server-}" ] || { kill $server; wait $server; server=; } 2>/dev/null || true
    rm -rf "$room"
}

on_board() {
    "$TEC" "$1" --target "$target" --rpc "127.0.0.1:$port" --key-file "$keys" "${@:2}"
}
