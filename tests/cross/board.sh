# board.sh -- for the scripts beside it, which source it from the root of the project: a board's rpc_server under an emulator.
#
#     start_board aarch64          # or armhf; sets $board (its folder), $port and $keys
#     on_board check DIR...        # a command of tec, compiled for $target, run there
#     stop_board                   # also by the trap that it sets
#
#     open_room submit,serve       # several servers: $room, and $keys with a key of these roles
#     serve_board armhf --tracker "127.0.0.1:$tracker" --device-class a32      # what it says is in $room/armhf.log

fail() {
    echo "$0: $*"
    exit 1
}

build_board() {
    local made
    made=$(flock build/board.lock scripts/board "$1" 2>&1) || fail "scripts/board $1: $made"
    board=$(tail -1 <<<"$made")
}

open_room() {
    room=$(mktemp -d)
    chmod 711 "$room"
    programs=()
    trap stop_board EXIT
    keys=$room/keys
    "$TEC" keys --key-file "$keys" --roles "$1" new >"$room/id"
}

# start NAME PROGRAM...: a program that says its port, which is in $port then
start() {
    local name=$1
    shift
    : >"$room/$name.said" # the loop below may read it before the program has started
    "$@" >"$room/$name.said" 2>"$room/$name.log" &
    programs+=($!)
    for _ in $(seq 200); do
        port=$(sed -n 's/.*port[": ]*\([0-9]\+\).*/\1/p' "$room/$name.said")
        [ -z "$port" ] || return 0
        kill -0 ${programs[-1]} 2>/dev/null || break
        sleep 0.1
    done
    fail "$name did not start: $(cat "$room/$name.log")"
}

# serve_board ARCH OPTION...: an emulated program cannot start itself, so a script starts the processes of its sessions.
serve_board() {
    local emulator="qemu-aarch64 -cpu cortex-a53" arch=$1
    shift
    build_board $arch
    target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53"
    [ $arch = aarch64 ] || { emulator="qemu-arm -cpu cortex-a7"; target="llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a7"; }
    mkdir "$room/$arch.sessions"
    printf '#!/bin/sh\nexec %s -L %s %s "$@"\n' "$emulator" "$PWD/build/sysroot/$arch" "$PWD/$board/rpc_server" \
        >"$room/$arch.session"
    chmod 755 "$room/$arch.session"
    start $arch $emulator -L "build/sysroot/$arch" "$board/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --json \
        --weak-sandbox --session-program "$room/$arch.session" --folder "$room/$arch.sessions" "$@"
}

start_board() {
    open_room submit
    serve_board "$1"
}

stop_board() {
    local program
    for program in "${programs[@]}"; do
        kill $program 2>/dev/null || true
        wait $program 2>/dev/null || true
    done
    programs=()
    rm -rf "$room"
}

on_board() {
    "$TEC" "$1" --target "$target" --rpc "127.0.0.1:$port" --key-file "$keys" "${@:2}"
}
