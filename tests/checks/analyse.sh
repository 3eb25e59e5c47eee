#!/bin/bash
# analyse -- scripts/analyse names a planted leak, takes an explanation for it, and names an explanation of nothing.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/scripts" "$dir/cmake" "$dir/base" "$dir/b"
cp scripts/analyse "$dir/scripts"
cp cmake/rooms.txt "$dir/cmake"
cat >"$dir/base/lion.c" <<'C'
#include <stdlib.h>

int lion(int n);
int lion(int n)
{
    char *p = malloc((size_t)n);

    return p ? n : 0;
}
C
cat >"$dir/b/compile_commands.json" <<JSON
[
{
  "directory": "$dir/b",
  "command": "/usr/bin/cc -O0 -Werror -o lion.o -c $dir/base/lion.c",
  "file": "$dir/base/lion.c"
}
]
JSON

# expect STATUS TEXT
expect() {
    local said status=0
    said=$("$dir/scripts/analyse" --build b 2>&1) || status=$?
    [ "$status" = "$1" ] && grep -qF -- "$2" <<<"$said" || {
        echo "analyse should have ended with $1 and said '$2'; it ended with $status and said:"
        echo "$said"
        exit 1
    }
}

echo '# none' >"$dir/scripts/analyse.known"
expect 1 'base/lion.c lion malloc-leak  line 8:'
echo 'base/lion.c lion malloc-leak: it is a small one' >"$dir/scripts/analyse.known"
expect 0 'analyse: ok, 1 findings are explained'
echo 'base/lion.c cub malloc-leak: it is none' >>"$dir/scripts/analyse.known"
expect 1 'analyse.known:2: nothing is found there any more: base/lion.c cub malloc-leak'
echo "analyse: ok"
