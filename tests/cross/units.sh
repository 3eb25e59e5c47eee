#!/bin/bash
# units -- the runtime's, the runner's and the wire's unit tests on emulated boards.
set -eu
. tests/cross/board.sh

for arch in aarch64 armhf; do
    build_board $arch
    said=$(flock build/board.lock sh -c "cmake --preset $arch -DBUILD_TESTING=ON && cmake --build --preset $arch" 2>&1) ||
        fail "$said"
    said=$(ctest --preset $arch -LE long 2>&1) || fail "$arch: $said"
    grep "tests passed" <<<"$said" | sed "s/^/$arch: /"
done
