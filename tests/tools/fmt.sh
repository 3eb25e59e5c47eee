#!/bin/bash
# fmt -- `tec fmt` prints, checks and rewrites programs; the programs of docs/ and tests/ keep their graph.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

printf 'def main(c:bool)->bool{c} # same\n' >wrong.tecp
printf 'def main(c: bool) -> bool { c }  # same\n' >right.tecp
printf 'def main(c: bool -> bool { c }\n' >faulty.tecp

"$TEC" fmt wrong.tecp | cmp - right.tecp
"$TEC" fmt - <wrong.tecp | cmp - right.tecp
"$TEC" fmt --check right.tecp
status=0
"$TEC" fmt --check right.tecp wrong.tecp - <wrong.tecp >out || status=$?
[ $status = 1 ] && printf 'wrong.tecp\n-\n' | cmp - out
status=0
"$TEC" fmt faulty.tecp wrong.tecp >out 2>errors || status=$?
[ $status = 1 ] && cmp out right.tecp && grep -q '^ *^$' errors && grep -q "faulty.tecp:1:18: error: expected ')', found '->'" errors

# Rewriting leaves what is right as it is, and nothing beside.
cp wrong.tecp other.tecp
touch -d '2001-01-01' right.tecp
"$TEC" fmt --write wrong.tecp right.tecp
"$TEC" fmt -i other.tecp
cmp wrong.tecp right.tecp && cmp other.tecp right.tecp
[ "$(date -r right.tecp +%Y)" = 2001 ]
before=$(md5sum faulty.tecp)
! "$TEC" fmt -i faulty.tecp 2>/dev/null
[ "$(md5sum faulty.tecp)" = "$before" ]
[ "$(ls | sort | tr '\n' ' ')" = "errors faulty.tecp other.tecp out right.tecp wrong.tecp " ]
status=0
"$TEC" fmt --check --write right.tecp 2>/dev/null || status=$?
[ $status = 2 ]

# Programs in documents.
count=0
for page in "$root"/docs/lang.md "$root"/tests/tools/program.sh "$root"/tests/lang/*.sh; do
    awk -v dir="$dir/page$((count++))" -v n=0 '
        /^```tecp$/ || /<<.TECP.$/ { n++; inside = 1; next }
        /^```$/ || /^TECP$/ { inside = 0 }
        inside { print > (dir "-" n ".tecp") }' "$page"
done
count=0
for file in page*.tecp; do
    "$TEC" check-program --graph "$file" >graph 2>/dev/null || continue
    "$TEC" fmt -i "$file"
    "$TEC" check-program --graph "$file" | cmp - graph
    "$TEC" fmt --check "$file"
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "fmt: found $count programs, expected at least 4"; exit 1; }
echo "fmt: $count programs"
