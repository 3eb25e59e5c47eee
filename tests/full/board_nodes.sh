#!/bin/bash
# board_nodes -- ONNX's whole node suite through a tracker, on emulated boards of aarch64 and armhf: each case has the outcome that
# it has on this machine. About five minutes on two cores; tests/cross/nodes.sh runs a part of the suite.
set -eu
. tests/cross/board.sh

suite=$(dirname "$(dpkg -L libonnx-testdata | grep -m1 'node/test_relu$')")
open_room submit,serve
start tracker "$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --key-file "$keys" --state "$room/tracker.db"
tracker=127.0.0.1:$port
for arch in aarch64 armhf; do
    serve_board $arch --tracker $tracker --device-class $arch --name $arch
done

# outcomes FILE: the cases, each with what became of it
outcomes() {
    grep -E '^(pass|fail|unsupported) ' "$1" | awk '{print $2, $1}' | sort
}

cd "$suite"
checks=()
"$TEC" check test_* >"$room/here" || true
for arch in aarch64 armhf; do
    "$TEC" check --tracker $tracker --device-class $arch --key-file "$keys" --jobs 2 test_* >"$room/$arch.suite" &
    checks+=($!)
done
for check in "${checks[@]}"; do
    wait $check || true
done
for name in here aarch64.suite armhf.suite; do
    echo "$name: $(tail -1 "$room/$name")"
done
for arch in aarch64 armhf; do
    differ=$(diff <(outcomes "$room/here") <(outcomes "$room/$arch.suite")) ||
        fail "on $arch other cases pass: $differ $(grep ^fail "$room/$arch.suite")"
done
[ "$(outcomes "$room/here" | wc -l)" = "$(ls -d test_* | wc -l)" ] || fail "not every case has an outcome"
