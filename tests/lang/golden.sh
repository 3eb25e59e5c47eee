#!/bin/bash
# golden -- what each pass over programs makes of tests/lang/golden/passes.tecp, as `tec compile --dump-graph` writes it, is
# tests/lang/golden/PASS.graph. Long lines are cut.
#
# TEC_UPDATE=1 writes the files anew. Needs TEC, the program.
set -eu
: "${TEC:?}"
golden=$PWD/tests/lang/golden
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The parameters: 0.5 throughout, 4 bytes 00 00 00 3f each.
header='{"K":{"dtype":"F32","shape":[16,16,2,2],"data_offsets":[0,4096]},"S":{"dtype":"F32","shape":[16],"data_offsets":[4096,4160]},"W":{"dtype":"F32","shape":[4,4],"data_offsets":[4160,4224]}}'
{
    printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s" "$header"
    for ((i = 0; i < 1056; i++)); do printf '\0\0\0\x3f'; done
} >"$dir/params.safetensors"
[ ${#header} -lt 256 ]

"$TEC" fmt --check "$golden/passes.tecp"
"$TEC" compile "$golden/passes.tecp" --params "$dir/params.safetensors" --target "llvm -mcpu=x86-64-v3 -num-cores=2" \
    --dump-graph "$dir/graphs" -o "$dir/passes.tec" --quiet

# One file for each stage; a stage that occurs twice gets a number.
mkdir "$dir/found"
for file in "$dir"/graphs/*.graph; do
    stage=$(basename "$file" .graph)
    stage=${stage#*-}
    name=$stage
    for ((n = 2; ; n++)); do
        [ -e "$dir/found/$name.graph" ] || break
        name=$stage-$n
    done
    cut -c1-200 "$file" >"$dir/found/$name.graph"
done
if [ -n "${TEC_UPDATE:-}" ]; then
    rm -f "$golden"/*.graph
    cp "$dir"/found/*.graph "$golden"
fi
for stage in read unpack-tuples inline simplify share-common fold-batch-norm remove-dead layout choose fold-constants fuse plan coalesce; do
    [ -s "$dir/found/$stage.graph" ] || { echo "golden: the pass $stage changed nothing"; exit 1; }
done
diff -r "$golden" "$dir/found" -x passes.tecp || { echo "golden: TEC_UPDATE=1 $0 takes these lines over"; exit 1; }
echo "golden: $(ls "$dir/found" | wc -l) stages"
