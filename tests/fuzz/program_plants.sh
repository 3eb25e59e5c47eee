# tests/fuzz/program_plants.sh -- random programs find each fault that is planted in the passes over programs (base/plants.def), from a case on that is near one that shows it.
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

if ! "$TEC" fuzz --plant list >"$out/list" 2>"$out/why"; then
    grep -q "faults are planted in debug builds only" "$out/why"
    echo "program plants: none in this build"
    exit 0
fi

# fault, the first case of seed 3 that is tried
cat >"$out/from" <<'END'
simplify_perm 14
common_operand 1
batch_norm_mean 19
dead_symbols 1
layout_axes 19
choose_shared 19
fold_leaf 10
fuse_readers 1
plan_kill 0
plan_view 12
plan_append 1
coalesce_lives 1
coalesce_escapes 132
code_tail 0
code_known 47
code_limit 1
code_row 15
code_branch 1
dynamic_place 6
END

grep ' graph/' "$out/list" | sed 's/^ *[0-9]* \([a-z_]*\) .*/\1/' | sort >"$out/listed"
cut -d' ' -f1 "$out/from" | sort | diff - "$out/listed" || {
    echo "program plants: the faults here and in base/plants.def differ"
    exit 1
}
while read -r fault first; do
    "$TEC" fuzz --programs --plant "$fault" --seed 3 --first "$first" --cases 2 >"$out/found" || {
        cat "$out/found"
        echo "program plants: $fault is not found"
        exit 1
    }
done <"$out/from"
echo "program plants: all $(wc -l <"$out/from") found"
