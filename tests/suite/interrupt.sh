#!/bin/bash
# interrupt.sh -- `tec compile`, ended by a signal at any moment, leaves a whole module or nothing.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for i in $(seq 1 20); do
    "$TEC" compile --quiet -o "$dir/m.tec" tests/models/digits/model.onnx &
    pid=$!
    sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
    for file in "$dir"/*; do
        [ -e "$file" ] || continue
        [ "$file" = "$dir/m.tec" ] || { echo "left behind: $file"; exit 1; }
        "$TEC" inspect "$file" >/dev/null || { echo "a module in part"; exit 1; }
    done
    rm -f "$dir/m.tec"
done
echo "20 interrupts: whole modules or none"
