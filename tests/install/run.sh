#!/bin/bash
# run -- installs into a fresh prefix, and uses what is there as a stranger would: with pkg-config, with CMake, by hand.
#
# Needs TEC_BUILD_DIR, a finished build; TEC_SANITIZE holds the sanitizers that it was built with, if any.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
flags=${TEC_SANITIZE:+-fsanitize=$TEC_SANITIZE}

fail() {
    echo "install: $*" >&2
    exit 1
}

cmake --install "$TEC_BUILD_DIR" --prefix "$prefix" >"$dir/log" || { cat "$dir/log"; fail "cmake --install failed"; }
libdir=$(dirname "$(find "$prefix" -name libtec.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
version=$(pkg-config --modversion tec)

for name in tec tec_runtime; do
    soname=$(readelf -d "$libdir/lib$name.so" | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p')
    [ "$soname" = "lib$name.so.${version%%.*}" ] || fail "lib$name.so has the SONAME '$soname'"
    [ -e "$libdir/$soname" ] || fail "$soname is not installed"
    [ -e "$libdir/lib$name.a" ] || fail "lib$name.a is not installed"
done

cat >"$dir/compiler.c" <<'END'
#include <stdio.h>
#include <tec/tec.h>

int main(void)
{
    tec_context *cx = tec_context_new();
    int failed = tec_context_status(cx) != TEC_OK;

    tec_context_free(cx);
    return failed || printf("%s\n", tec_version()) < 0;
}
END
cat >"$dir/runtime.c" <<'END'
#include <stdio.h>
#include <tec/base.h>

int main(void)
{
    return puts(tec_version()) < 0;
}
END

# expect_version HOW PROGRAM
expect_version() {
    local said
    said=$("$2") || fail "the program built with $1 fails"
    [ "$said" = "$version" ] || fail "the program built with $1 says '$said', not '$version'"
}

cc $flags -std=c11 -Wall -Werror "$dir/compiler.c" $(pkg-config --cflags --libs tec) -o "$dir/a"
expect_version "pkg-config tec" "$dir/a"
cc $flags -std=c11 -Wall -Werror "$dir/runtime.c" $(pkg-config --cflags --libs tec_runtime) -o "$dir/b"
expect_version "pkg-config tec_runtime" "$dir/b"
cc $flags -std=c11 "$dir/compiler.c" $(pkg-config --cflags tec) "$libdir/libtec.a" \
    $(pkg-config --static --libs-only-L --libs-only-l tec | sed "s|-ltec||") -o "$dir/c"
expect_version "the static library" "$dir/c"

cat >"$dir/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(stranger C)
find_package(tec 0.1 REQUIRED)
add_executable(compiler compiler.c)
target_link_libraries(compiler tec::tec)
add_executable(runtime runtime.c)
target_link_libraries(runtime tec::runtime)
END
cmake -S "$dir" -B "$dir/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" >"$dir/log" &&
    cmake --build "$dir/build" >>"$dir/log" || { cat "$dir/log"; fail "the CMake package does not work"; }
expect_version "tec::tec" "$dir/build/compiler"
expect_version "tec::runtime" "$dir/build/runtime"

if [ -e "$TEC_BUILD_DIR/tec" ]; then
    "$prefix/bin/tec" --version | grep -qF "$version" || fail "the installed tec does not say its version $version"
    [ -e "$prefix/share/man/man1/tec.1" ] || fail "the manual page of tec is not installed"
fi
echo "install: ok"
