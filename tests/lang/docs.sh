#!/bin/bash
# docs -- every program of docs/lang.md passes `tec check-program`, and each is refused when a name in it is misspelt.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
awk -v dir="$dir" '/^```tecp$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside { print > (dir "/" n ".tecp") }' docs/lang.md
count=0
for file in "$dir"/*.tecp; do
    "$TEC" check-program "$file" | grep -q 'functions$'
    "$TEC" check-program --graph "$file" | grep -q 'function "main"'
    sed 's/match \([a-z]\) /match \1x /; s/tanh(/tanhx(/' "$file" >"$dir/wrong"
    status=0
    "$TEC" check-program "$dir/wrong" >"$dir/out" 2>&1 || status=$?
    [ $status = 1 ] && grep -q '^ *^$' "$dir/out" || { cat "$dir/out"; exit 1; }
    count=$((count + 1))
done
[ $count -ge 2 ] || { echo "docs: found $count programs in docs/lang.md, expected at least 2"; exit 1; }
echo "docs: $count programs"
