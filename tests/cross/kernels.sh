#!/bin/bash
# kernels -- random kernels on emulated boards must give what the interpreter gives.
set -eu
. tests/cross/board.sh

for arch in aarch64 armhf; do
    start_board $arch
    said=$(on_board fuzz --cases 24 --seed 31 --jobs 2 --keep "$room") || fail "$arch: $said"
    grep -q ", 0 invalid, 0 wrong" <<<"$said" || fail "$arch: $said"
    grep same <<<"$said" | sed "s/;.*//; s/^/$arch: /"
    stop_board
done
