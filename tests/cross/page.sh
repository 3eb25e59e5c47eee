#!/bin/bash
# page -- the commands of docs/raspberry-pi.md, in their order, with an emulated Raspberry Pi 4: only addresses, the number of
# trials, and what scp reaches differ, and the emulated server gets the options that emulation takes.
set -eu
. tests/cross/board.sh

build_board aarch64
room=$(mktemp -d)
chmod 711 "$room"
root=$PWD
server_pids=$room/pids
trap 'kill $(cat "$room"/pids "$room"/tracker.pid 2>/dev/null) 2>/dev/null || true; wait 2>/dev/null; rm -rf "$room"' EXIT
mkdir "$room/pi" "$room/pc"
ln -s "$root/build" "$root/scripts" "$room/pc/"
free=$(python3 -c 'import socket
open_ = [socket.socket() for _ in range(2)]
for s in open_: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in open_])')

# Blocks of the page that begin with this fence, without the fences.
blocks() {
    awk -v fence="$1" '/^```/ { open = !open; mine = open && $0 == fence; n += mine; next } mine { print n "\t" $0 }' \
        docs/raspberry-pi.md
}

# Block N behind a fence, with addresses of this machine.
block() {
    blocks "$1" | sed -n "s/^$2\t//p" |
        sed "s/0\.0\.0\.0:9190\|raspberrypi.local:9190/127.0.0.1:${free% *}/g; s/0\.0\.0\.0:9191\|pc.local:9191\|127\.0\.0\.1:9191/127.0.0.1:${free#* }/g; s/--trials 100/--trials 6 --tolerance 900/"
}

# A block as a person types it, on the PC or on the Pi.
on_pc() {
    echo "PC: $1"
    (cd "$room/pc" && PATH=$TEC_BUILD_DIR:$PATH && scp() { cp -r "${@:2:$#-2}" "$room/pi/"; } && eval "$1") >"$room/said" 2>&1 ||
        fail "$1: $(cat "$room/said" "$room"/pi/log "$room"/pc/log 2>/dev/null)"
}

on_pi() {
    echo "Pi: $1"
    (cd "$room/pi" && eval "$(sed "/^kill/d; s|&\$|2>>log >>out \& echo \$! >>'$server_pids'|" <<<"$1")") || fail "$1"
}

until_says() {
    for _ in $(seq 200); do
        ! grep -q "$1" "$2" 2>/dev/null || return 0
        sleep 0.1
    done
    fail "'$1' was not said: $(cat "$2")"
}

# Between scp and the server's start: the program runs by the emulator.
emulate() {
    local emulator="qemu-aarch64 -cpu cortex-a72 -L $root/build/sysroot/aarch64"
    mkdir "$room/pi/sessions"
    mv "$room/pi/aarch64/rpc_server" "$room/pi/aarch64/program"
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$emulator" "$room/pi/aarch64/program" >"$room/pi/session"
    printf '#!/bin/sh\nexec %s %s "$@" --weak-sandbox --session-program %s --folder %s\n' "$emulator" \
        "$room/pi/aarch64/program" "$room/pi/session" "$room/pi/sessions" >"$room/pi/aarch64/rpc_server"
    chmod 755 "$room/pi/session" "$room/pi/aarch64/rpc_server"
}

# Block 1 installs and builds, which was done above.
[ "$(block '```' 1)" = "scripts/packages --install build test cross
scripts/board aarch64" ] || fail "the first commands are others: $(block '```' 1)"
on_pc "$(block '```' 2)"
emulate
on_pi "$(block '```pi' 1)"
until_says "listening on" "$room/pi/out"
on_pc "$(block '```' 3)"
grep -q "10 same, 0 unsupported, 0 invalid, 0 wrong\|same, . unsupported, 0 invalid, 0 wrong" "$room/said" || fail "$(cat "$room/said")"
grep -q "passed, 0 failed, 0 unsupported" "$room/said" || fail "$(cat "$room/said")"
on_pc "$(block '```' 4 | sed "s|&\$|2>log >out \& echo \$! >'$room/tracker.pid'|")"
until_says "ready at port" "$room/pc/out"
kill "$(cat "$server_pids")"
while kill -0 "$(cat "$server_pids")" 2>/dev/null; do sleep 0.1; done
: >"$server_pids"
on_pi "$(block '```pi' 2)"
until_says "can lease its devices" "$room/pi/log"
on_pc "$(block '```' 5)"
grep -q "pi4 .*free" "$room/said" || fail "no free device: $(cat "$room/said")"
on_pc "$(block '```' 6)"
grep -q "2 passed, 0 failed, 0 unsupported" "$room/said" || fail "$(cat "$room/said")"
block '```te' 1 >"$room/pc/mm.te"
on_pc "$(block '```' 7)"
on_pc "$(block '```' 8 | head -1)"
target=$(grep -o "llvm [^']*-model=pi4-[0-9a-f]*" "$room/said" | head -1)
[ -n "$target" ] || fail "no target of the records is named: $(cat "$room/said")"
on_pc "$(block '```' 8 | sed "1d; s/TARGET/$target/")"
grep -q "'mm' has the schedule of its record" "$room/said" || fail "$(cat "$room/said")"
on_pc "cd '$root' && $(block '```' 9)"
grep -q "usage: rpc_server" "$room/said" || fail "$(cat "$room/said")"
[ -z "$(block '```' 10)" ] || fail "the page has more commands than this test runs"
