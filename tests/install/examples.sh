#!/bin/bash
# examples -- installs into a fresh prefix, builds examples/ against it outside the tree, with CMake and with make, and runs them.
#
# Needs TEC_BUILD_DIR, a finished build; TEC_SANITIZE holds the sanitizers that it was built with, if any.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
flags="-Wall -Wextra -Werror ${TEC_SANITIZE:+-fsanitize=$TEC_SANITIZE}"

fail() {
    echo "examples: $*" >&2
    exit 1
}

quietly() {
    "$@" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "failed: $*"; }
}

# expect WORDS COMMAND...: it succeeds and says WORDS.
expect() {
    local words=$1
    shift
    quietly "$@"
    grep -qF -- "$words" "$dir/log" || { cat "$dir/log"; fail "'$*' does not say '$words'"; }
}

[ "$(wc -l <examples/matmul.c)" -lt 60 ] || fail "examples/matmul.c promises to be under 60 lines"
quietly cmake --install "$TEC_BUILD_DIR" --prefix "$prefix"
libdir=$(dirname "$(find "$prefix" -name libtec.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir

cp -r examples "$dir/cmake"
quietly cmake -S "$dir/cmake" -B "$dir/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release
quietly cmake --build "$dir/cmake/build"
cp -r examples "$dir/make"
quietly make -C "$dir/make" CFLAGS="-O2 $flags"
for programs in "$dir/cmake/build" "$dir/make"; do
    expect "a plain loop: 961" "$programs/matmul"
    expect "3 rows, 1000 runs: y[0, 0] = 768" "$programs/two_threads"
done

# A pool: a tracker, a server, and the client that links libtec_rpc alone.
export XDG_STATE_HOME=$dir/state
bin=$prefix/bin
listening() { # listening FILE: the port that a program printed
    for _ in $(seq 100); do
        grep -oE '[0-9]+$' "$1" && return
        sleep 0.1
    done
    cat "$1"
    fail "no program listens"
}
"$bin/rpc_tracker" --listen 127.0.0.1:0 --quiet >"$dir/tracker" &
tracker=$!
port=$(listening "$dir/tracker")
"$bin/rpc_server" --tracker "127.0.0.1:$port" --device-class desk --quiet >"$dir/server" &
server=$!
trap 'kill $tracker $server 2>/dev/null; wait; rm -rf "$dir"' EXIT
listening "$dir/server" >/dev/null
echo 'def add(A: f32[8], B: f32[8]) { C[i] = A[i] + B[i] return C }' >"$dir/add.te"
quietly "$bin/tec" te "$dir/add.te" -o "$dir/add.so"
for programs in "$dir/cmake/build" "$dir/make"; do
    ldd "$programs/lease" | grep -q LLVM && fail "lease links a compiler"
    expect "on desk: 7 + 100 = 107" "$programs/lease" "127.0.0.1:$port" desk "$XDG_STATE_HOME/tec/loopback.keys" "$dir/add.so"
done
expect "GFLOP/s" "$prefix/bin/tec" te --time examples/matmul.te
expect "GFLOP/s" "$prefix/bin/tec" te --time --dim t=64 --dim n=8 examples/lstm.te
echo "examples: ok"
