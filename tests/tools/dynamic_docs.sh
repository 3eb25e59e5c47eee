#!/bin/bash
# dynamic_docs -- the Tree-LSTM of docs/dynamic.md is what scripts/dynamic_docs writes today, and the check notices a change.
# tests/install/pages.sh runs the page's commands.
set -eu
: "${TEC:?}"
scripts/dynamic_docs --check
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/scripts" "$dir/docs" "$dir/bench" "$dir/graph"
cp scripts/dynamic_docs "$dir/scripts/"
cp graph/passes.c "$dir/graph/"
cp -r bench/programs "$dir/bench/"
sed 's/= tanh(slice/= sigmoid(slice/' bench/programs/tree_lstm.tecp >"$dir/bench/programs/tree_lstm.tecp"
cp docs/dynamic.md "$dir/docs/"
if TEC=$(realpath "$TEC") "$dir/scripts/dynamic_docs" --check >"$dir/out"; then
    echo "dynamic_docs: another program passes"
    exit 1
fi
grep -q 'sigmoid.3' "$dir/out" || { cat "$dir/out"; exit 1; }
echo "dynamic_docs: ok"
