#!/bin/bash
# nodes -- cases of ONNX's node suite on emulated boards: compiled here for their CPUs, run there by rpc_server; and what a board
# refuses.
set -eu
. tests/cross/board.sh

suite=$(dirname "$(dpkg -L libonnx-testdata | grep -m1 'node/test_relu$')")
cases=$(sed '/^#/d; s/^/test_/' tests/cross/nodes.list)
for case in $cases; do
    [ -d "$suite/$case" ] || fail "the suite has no case '$case'"
done
here=$(cd "$suite" && "$TEC" check $cases | tail -1)
for arch in aarch64 armhf; do
    start_board $arch
    there=$(cd "$suite" && on_board check $cases) || fail "on $arch: $(grep -v ^pass <<<"$there")"
    [ "$(tail -1 <<<"$there")" = "$here" ] || fail "here: $here; on $arch: $(grep -v ^pass <<<"$there")"
    stop_board
    echo "$arch: $here"
done
grep -q "^$(wc -w <<<"$cases") passed, 0 failed, 0 unsupported" <<<"$here" || fail "not all cases of the list pass here: $here"

# A denormal that became 0 is no difference, and said.
room=$(mktemp -d)
cp -r "$suite/test_relu" "$room/case"
python3 - "$room/case/test_data_set_0" <<'EOF'
import sys
for kind in "input", "output":
    path = f"{sys.argv[1]}/{kind}_0.pb"
    data = bytearray(open(path, "rb").read())
    at = data.index(b"J\xf0\x01") + 3
    data[at:at + 4] = b"\x00\x01\x00\x00"
    open(path, "wb").write(data)
EOF
said=$("$TEC" check "$room/case") || fail "a denormal: $said"
grep -q "^pass .*denormals in output 'y' became 0" <<<"$said" || fail "not said of a denormal: $said"
rm -r "$room"

# What a board cannot run is refused by name.
start_board armhf
target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53"
said=$(cd "$suite" && on_board check test_relu) && fail "armv7 ran code for aarch64"
grep -q "is code for aarch64 .*this machine is armv7" <<<"$said" || fail "not the message: $said"

# The emulator has neither seccomp nor Landlock: without --weak-sandbox no server starts there.
said=$(timeout 60 "$room/armhf.session" --listen 127.0.0.1:0 --key-file "$keys" --session-program "$room/armhf.session" \
    --folder "$room/armhf.sessions" 2>&1) && fail "a server started that cannot isolate sessions: $said"
grep -q "^rpc_server: this system cannot isolate sessions (no seccomp, no landlock.*--weak-sandbox accepts that" <<<"$said" ||
    fail "not the message: $said"
! grep -q "listening on" <<<"$said" || fail "it listened: $said"
