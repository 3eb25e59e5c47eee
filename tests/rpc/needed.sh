#!/bin/bash
# needed -- rpc_server needs the C library alone, and rpc_tracker SQLite besides: libuv and libsodium are linked in. What either of
# them takes of the C library is said, as a build has the symbols of the machine that built it.
set -eu
[ -z "${TEC_SANITIZE:-}" ] || exit 77 # the sanitizers are libraries as well

fail() {
    echo "needed: $*"
    exit 1
}

libc='libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux[-a-z0-9_]*\.so\.[0-9]'
for program in rpc_server rpc_tracker; do
    file=$TEC_BUILD_DIR/$program
    needed=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    grep -qx 'libc\.so\.6' <<<"$needed" || fail "$program does not need the C library: is readelf's output read as it is? '$needed'"
    foreign=$(grep -vxE "$libc" <<<"$needed" || true)
    [ $program = rpc_server ] || foreign=$(grep -vx 'libsqlite3\.so\.0' <<<"$foreign" || true)
    [ -z "$foreign" ] || fail "$program needs" $foreign
    newest=$(readelf -VW "$file" | grep -o 'GLIBC_[0-9.]*[0-9]' | sort -Vu | tail -1)
    [ "$newest" ] || fail "$program has no symbol of a version of glibc"
    echo "$program:" $needed "(up to $newest)"
done
# The check can fail: the compiler's program needs both libraries.
readelf -dW "$TEC" | grep -q 'libuv\.so' || fail "tec no longer needs libuv's shared library: the test above tells nothing"
