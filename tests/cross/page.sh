#!/bin/bash
# page -- the commands of docs/raspberry-pi.md as they stand there, in their order, with an emulated Raspberry Pi 4: only the
# number of trials and the target of scp differ, and the emulated server gets the options that emulation takes.
set -eu
. tests/cross/board.sh
. tests/cross/page.inc

page=docs/raspberry-pi.md
# Block 1 installs and builds, outside of the network of the test's own.
[ -n "${TEC_PAGE_INSIDE:-}" ] || made=$(flock build/board.lock bash -e <<<"$(block '```' 1)" 2>&1) || fail "$made"
own_network raspberrypi.local pc.local
trap 'rm -rf "$room"' EXIT
pc=$room/pc pi=$room/pi
mkdir "$pi" "$pc"
ln -s "$PWD/build" "$PWD/scripts" "$pc/"
PATH=$TEC_BUILD_DIR:$PATH

scp() { # -r WHAT... WHERE
    cp -r "${@:2:$#-2}" "$pi/"
}
kill() { # a person types the next command when the job has ended
    command kill "$@"
    wait "$@" || true
}

typed "$pc" "$(block '```' 2)"
mv "$pi/aarch64/rpc_server" "$pi/aarch64/program"
make_emulated "$pi/aarch64/program" "$pi/aarch64/rpc_server"
typed "$pi" "$(block '```pi' 1)"
until_says "listening on" "$pi/out"
typed "$pc" "$(block '```' 3)"
says "10 same, 0 unsupported, 0 invalid, 0 wrong\|same, . unsupported, 0 invalid, 0 wrong" "$pc"
says "passed, 0 failed, 0 unsupported" "$pc"
typed "$pc" "$(block '```' 4)"
until_says "ready at port" "$pc/out"
typed "$pi" "$(block '```pi' 2)"
until_says "can lease its devices" "$pi/log"
typed "$pc" "$(block '```' 5)"
says "pi4 .*free" "$pc"
typed "$pc" "$(block '```' 6)"
says "2 passed, 0 failed, 0 unsupported" "$pc"
block '```te' 1 >"$pc/mm.te"
typed "$pc" "$(block '```' 7)"
typed "$pc" "$(block '```' 8 | head -1)"
target=$(cat "$pc/out" "$pc/log" | grep -o "llvm [^']*-model=pi4-[0-9a-f]*" | head -1)
[ -n "$target" ] || fail "no target of the records is named: $(cat "$pc/out" "$pc/log")"
typed "$pc" "$(block '```' 8 | sed "1d; s/TARGET/$target/")"
grep -q "'mm' has the schedule of its record" "$pc/out" "$pc/log" || fail "$(cat "$pc/out" "$pc/log")"
typed "$pc" "$(block '```' 9)"
says "usage: rpc_server" "$pc"
[ -z "$(block '```' 10)$(block '```pi' 3)" ] || fail "the page has more commands than this test runs"
