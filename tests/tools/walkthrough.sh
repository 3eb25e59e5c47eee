#!/bin/bash
# walkthrough -- docs/walkthrough.md is what scripts/walkthrough writes today, apart from what LLVM wrote.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

ours() {
    sed '/^<!-- llvm -->$/,/^<!-- end -->$/d' "$1"
}

TEC=$TEC scripts/walkthrough >"$dir/page"
for part in 'op conv "conv1"' 'conv_packed.acc' 'lower/vectorize.c' 'compute_at' '\*\*fma\*\*' 'llvm.fma' 'vfmadd'; do
    grep -q -- "$part" "$dir/page" || { echo "walkthrough: the page shows no '$part'"; exit 1; }
done
if ! diff -u <(ours docs/walkthrough.md) <(ours "$dir/page") >"$dir/diff"; then
    head -60 "$dir/diff"
    echo "walkthrough: docs/walkthrough.md is out of date: run scripts/walkthrough > docs/walkthrough.md and read what changed"
    exit 1
fi
echo "walkthrough: ok"
