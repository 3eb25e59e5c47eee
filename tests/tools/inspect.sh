#!/bin/bash
# inspect -- tec inspect shows the graph of a model before and after passes, and hands out a kernel as a .te file that tec te accepts.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
model=tests/models/digits/model.onnx

fail() {
    echo "inspect: $*" >&2
    exit 1
}

# expect WORDS COMMAND...: it succeeds, and a line of its output has WORDS.
expect() {
    local words=$1
    shift
    "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "failed: $*"; }
    grep -qF -- "$words" "$dir/out" || { cat "$dir/out"; fail "'$*' does not say '$words'"; }
}

# refuse WORDS COMMAND...: it fails, and says WORDS.
refuse() {
    local words=$1
    shift
    ! "$@" >"$dir/out" 2>&1 || fail "did not fail: $*"
    grep -qF -- "$words" "$dir/out" || { cat "$dir/out"; fail "'$*' does not say '$words'"; }
}

expect '6 Conv' "$TEC" inspect $model
expect 'op batch_norm "/0/0.1/BatchNormalization"' "$TEC" inspect $model --graph read
expect 'group "/1/body/body.1/body.1.0/Conv+/1/Add+/1/Relu"' "$TEC" inspect $model --graph fuse
refuse "fold-batch-norm: fold batch normalisation into convolutions" "$TEC" inspect $model --graph melt
refuse "no kernel computes a node 'nothing'" "$TEC" inspect $model --node nothing

expect 'schedule' "$TEC" inspect $model --node /1/Add --target "llvm -mcpu=x86-64-v3"
cp "$dir/out" "$dir/add.te"
expect 'conv_packed.acc' "$TEC" te --target "llvm -mcpu=x86-64-v3" --emit tree "$dir/add.te"
expect 'vfmadd' "$TEC" te --target "llvm -mcpu=x86-64-v3" --emit asm "$dir/add.te"

# a tuned kernel's code: the schedule of its record, for the same extents
refuse "--records is for --node" "$TEC" inspect $model --records "$dir/none.db"
refuse "the record store does not exist" "$TEC" inspect $model --node /1/Add --records "$dir/none.db"
"$TEC" tune $model --dim batch=1 --records "$dir/r.db" --trials 1 --model none --explorer random --threads 1 >"$dir/out" 2>&1 || {
    cat "$dir/out"
    fail "tec tune failed"
}
expect '# schedule: record' "$TEC" inspect $model --node /0/0.0/Conv --dim batch=1 --threads 1 --records "$dir/r.db"
cp "$dir/out" "$dir/conv.te"
expect 'ret' "$TEC" te --emit asm "$dir/conv.te"
expect '# schedule: default' "$TEC" inspect $model --node /0/0.0/Conv --dim batch=2 --threads 1 --records "$dir/r.db"

# One name for a kernel everywhere: its operators and extents.
"$TEC" compile $model --dim batch=1 --threads 1 --quiet -o "$dir/m.tec"
"$TEC" inspect "$dir/m.tec" | sed -n 's/^  step [0-9]*: \(.*\]\) (.*/\1/p' | sort >"$dir/inspect"
"$TEC" inspect "$dir/m.tec" | sed -n 's/^function .*): //p' | sort >"$dir/functions"
"$TEC" run "$dir/m.tec" --repeat 1 --profile | sed -n 's/.*  default  \(.*\]\) (.*/\1/p' | sort >"$dir/profile"
"$TEC" tune $model --dim batch=1 --records "$dir/r.db" --threads 1 --kernels | sed -n 's/.* x  \(.*\]\) (.*/\1/p' | sort >"$dir/tune"
"$TEC" records list "$dir/r.db" | sed -n 's/^[0-9a-f]\{16\} .*  \([a-z_+]* \[.*\]\)$/\1/p' | sort >"$dir/records"
grep -qx 'matmul+add \[1, 32, 10, 32\]' "$dir/inspect" || { cat "$dir/inspect"; fail "a step is not named after operators and extents"; }
for other in functions profile tune; do
    cmp "$dir/inspect" "$dir/$other" || { diff "$dir/inspect" "$dir/$other"; fail "$other has other names"; }
done
[ -s "$dir/records" ] && [ -z "$(comm -23 "$dir/records" "$dir/inspect")" ] || { cat "$dir/records"; fail "records have other names"; }
echo "inspect: ok"
