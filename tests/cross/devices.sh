#!/bin/bash
# devices -- the commands of docs/devices.md as they stand there, in their order, with an emulated board for the device, once of
# aarch64 and once of armhf: only the number of trials differs, and the emulated server gets the options that emulation takes.
set -eu
. tests/cross/board.sh
. tests/cross/page.inc

if [ -z "${TEC_BOARD:-}" ]; then
    for arch in aarch64 armhf; do
        build_board $arch
        TEC_BOARD=$arch bash "$0" || fail "with a board of $arch"
    done
    exit
fi
target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
[ $TEC_BOARD = aarch64 ] || target="llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a7"
own_network tracker
trap 'rm -rf "$room"' EXIT
page=docs/devices.md
desk=$room/desk board_room=$room/board
mkdir "$desk" "$board_room" "$room/bin" "$room/home"
cp "build/board/$TEC_BOARD/rpc_server" "$room/program"
make_emulated "$room/program" "$room/bin/rpc_server" $TEC_BOARD
PATH=$room/bin:$TEC_BUILD_DIR:$PATH
export HOME=$room/home
unset XDG_STATE_HOME

# What the page takes as given: a model, and a module of it for the device.
cp /usr/share/libonnx-testdata/data/node/test_conv_with_strides_padding/model.onnx "$desk/net.onnx"
"$TEC" compile "$desk/net.onnx" --target "$target" -o "$desk/model.so" >"$room/said" 2>&1 ||
    fail "$(cat "$room/said")"

typed "$desk" "$(block '```' 1)"
tracker=$!
until_says "ready at port 9190" "$desk/out"
typed "$desk" "$(block '```' 2)"
says '"classes":' "$desk"
typed "$desk" "$(block '```' 3)"
server=$!
until_says "can lease its devices" "$desk/log"
typed "$desk" "$(block '```' 4)"
[ "$(grep -c "median" "$desk/out")" = 3 ] || fail "not two latencies and a table: $(cat "$desk/out")"
says "GFLOP/s .*step" "$desk"
says "1 passed, 0 failed, 0 unsupported" "$desk"
typed "$desk" "$(block '```' 7)"
says "desk-1/cpu:0 is set aside" "$desk"
says "desk-1 is draining; leases that go on: 0" "$desk"
[ "$(grep -c "is in service again" "$desk/out")" = 2 ] || fail "not both are in service again: $(cat "$desk/out")"
kill $server $tracker
wait $server $tracker || true

typed "$desk" "$(block '```' 5)"
cp "$desk/pool.keys" "$board_room/"
typed "$desk" "$(block '```' 6)"
until_says "ready at port 9190" "$desk/out"
typed "$board_room" "$(block '```board' 1)"
until_says "can lease its devices" "$board_room/log"
typed "$desk" "$(block '```' 8)"
"$TEC" records list "$desk/tune.db" >"$room/said" 2>&1
grep -q -- "-pi4-" "$room/said" || fail "no records of the class: $(cat "$room/said")"
[ -z "$(block '```' 9)$(block '```board' 2)" ] || fail "the page has more commands than this test runs"
