#!/bin/bash
# docs -- the program that docs/space.md shows compiles, runs, and prints what stands there. Needs TEC_BUILD_DIR.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' docs/space.md >"$dir/template.c"
awk '/^```text$/ { on = 1; next } /^```/ { on = 0 } on' docs/space.md >"$dir/expected"
[ -s "$dir/template.c" ] && [ -s "$dir/expected" ] || { echo "docs/space.md shows no program with its output"; exit 1; }
[ -e "$TEC_BUILD_DIR/libtec.so" ] || { echo "there is no $TEC_BUILD_DIR/libtec.so"; exit 1; }
cc -std=c11 -Wall -Wextra ${TEC_SANITIZE:+-fsanitize=$TEC_SANITIZE} -I include "$dir/template.c" -L "$TEC_BUILD_DIR" -ltec -o "$dir/template"
LD_LIBRARY_PATH=$TEC_BUILD_DIR "$dir/template" >"$dir/found"
diff -u "$dir/expected" "$dir/found"
