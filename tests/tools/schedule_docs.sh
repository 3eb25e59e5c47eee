#!/bin/bash
# schedule_docs -- docs/schedule.md is what scripts/schedule_docs writes today, and a primitive needs an example.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

TEC=$TEC scripts/schedule_docs >"$dir/page"
if ! diff -u docs/schedule.md "$dir/page" >"$dir/diff"; then
    head -60 "$dir/diff"
    echo "schedule_docs: docs/schedule.md is out of date: run scripts/schedule_docs > docs/schedule.md and read what changed"
    exit 1
fi

cp -r docs/schedule.d "$dir/examples"
rm "$dir/examples/fuse.te"
if EXAMPLES=$dir/examples TEC=$TEC scripts/schedule_docs >/dev/null 2>"$dir/error"; then
    echo "schedule_docs: a primitive without an example went unnoticed"
    exit 1
fi
grep -q "there is no example of fuse: write $dir/examples/fuse.te" "$dir/error"

sed 's/fuse(C.y, C.x)/reorder(C.y, C.x)/' docs/schedule.d/fuse.te >"$dir/examples/fuse.te"
if EXAMPLES=$dir/examples TEC=$TEC scripts/schedule_docs >/dev/null 2>"$dir/error"; then
    echo "schedule_docs: an example that shows nothing went unnoticed"
    exit 1
fi
grep -q "the last step of $dir/examples/fuse.te changes nothing" "$dir/error"
echo "schedule_docs: ok"
