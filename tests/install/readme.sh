#!/bin/bash
# readme -- what README.md shows works: its files are saved, its shell commands run, in order, against an installed tec.
#
# A block of C or te is saved under the name of a file that the text before it mentions, as in "`call.c`:". Needs TEC_BUILD_DIR; TEC_SANITIZE
# holds the sanitizers that it was built with, if any.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cmake --install "$TEC_BUILD_DIR" --prefix "$dir/prefix" >"$dir/log" || { cat "$dir/log"; exit 1; }
libdir=$(dirname "$(find "$dir/prefix" -name libtec.so)")
export PATH=$dir/prefix/bin:$PATH PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir

awk -v dir="$dir" '
/^```/ && out { close(out); out = ""; next }
/^```(c|te)$/ { out = dir "/" name; files++; next }
/^```sh$/ { out = dir "/" ++steps ".sh"; next }
/^```/ { out = "/dev/null"; next }
out { print > out; next }
match($0, /`[a-z]+\.(c|te)`/) { name = substr($0, RSTART + 1, RLENGTH - 2) }
END { if (steps < 4 || files < 3) { print "readme: found " steps " blocks of shell and " files " files"; exit 1 } }' README.md
for page in $(grep -oE '\]\([A-Za-z/.-]+\)' README.md | tr -d '])('); do
    [ -e "$page" ] || { echo "readme: there is no $page"; exit 1; }
done

mkdir "$dir/tests"
cp -r tests/models "$dir/tests"
cd "$dir"
if [ -n "${TEC_SANITIZE-}" ]; then
    sed -i "s/^cc /cc -fsanitize=$TEC_SANITIZE /" ./*.sh
fi
for step in $(ls ./*.sh | sort -V); do
    if ! bash -eu "$step" >>said 2>&1; then
        echo "readme: this does not work:"
        cat "$step" said
        exit 1
    fi
done
grep -qx 'C\[1, 7\] = 6' said || { echo "readme: call.c printed something else:"; cat said; exit 1; }
grep -q '^1 passed, 0 failed' said || { echo "readme: the digits did not pass:"; cat said; exit 1; }
grep -q 'vectorised' said || { echo "readme: define.c printed no vectorised loop"; exit 1; }
echo "readme: ok"
