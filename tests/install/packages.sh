#!/bin/bash
# packages -- the Debian packages: three, each with its files and what it depends on; unpacked into an empty folder, the programs run.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || tail -n 20 "$dir/log"
    echo "packages: $*" >&2
    exit 1
}

[ -z "${TEC_SANITIZE:-}" ] || { echo "packages: not of a build with sanitizers"; exit 0; }
cpack --config "$TEC_BUILD_DIR/CPackConfig.cmake" -G DEB -B "$dir/out" >"$dir/log" 2>&1 || fail "cpack failed"
for package in tec tec-runtime tec-pool; do
    deb=$(find "$dir/out" -maxdepth 1 -name "${package}_*.deb")
    [ -n "$deb" ] || fail "there is no package $package"
    mkdir -p "$dir/root" "$dir/$package"
    dpkg-deb --contents "$deb" >"$dir/$package/files"
    dpkg-deb --control "$deb" "$dir/$package/control"
    dpkg-deb --extract "$deb" "$dir/root"
done

has() { # PACKAGE FILE
    grep -q " \./$2\( \|$\)" "$dir/$1/files" || fail "$1 has no $2"
}
has tec usr/bin/tec
has tec usr/bin/tec_runner
has tec usr/include/tec/tec.h
has tec usr/share/man/man1/tec.1
has tec-pool usr/bin/tvmtune
has tec-pool usr/lib/systemd/system/tvmtune.service
grep -q 'usr/lib/.*libtec_runtime\.so\.' "$dir/tec-runtime/files" || fail "tec-runtime has no library"
! grep -q 'usr/bin\|include' "$dir/tec-runtime/files" || fail "tec-runtime has more than the library"
grep -q '^Depends: .*tec-runtime (=' "$dir/tec/control/control" || fail "tec does not depend on its runtime"
grep -q '^Depends: libc6 ([^,]*)$' "$dir/tec-runtime/control/control" || fail "tec-runtime depends on more than libc"
for script in postinst prerm postrm; do
    sh -n "$dir/tec-pool/control/$script" || fail "$script is no script"
done
for program in tec tvmtune; do
    "$dir/root/usr/bin/$program" --version >"$dir/log" || fail "$program does not run"
done
cat "$dir"/tec*/files | sed 's/.* \.\//\//; s/ -> .*//' | grep -v '/$' | sort | uniq -d >"$dir/log"
[ ! -s "$dir/log" ] || fail "files in two packages"
