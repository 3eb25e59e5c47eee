# tests/fuzz/program_plants.sh -- random programs find each fault that is planted in the passes over programs (base/plants.def), from a case on that is near one that shows it.
set -e
. tests/fuzz/plants.inc "program plants"

# fault, the first case of seed 3 that is tried
cat >"$out/from" <<'END'
simplify_perm 5
common_operand 1
batch_norm_mean 1
dead_symbols 3
layout_axes 1
choose_shared 47
fold_leaf 1
fuse_readers 1
plan_kill 0
plan_view 32
plan_append 1
coalesce_lives 1
coalesce_escapes 28
code_tail 0
code_known 42
code_limit 3
code_row 5
code_branch 0
code_equal 282
dynamic_place 7
END

grep ' graph/' "$out/list" | sed 's/^ *[0-9]* \([a-z_]*\) .*/\1/' | compare_faults
find_from() { # fault, first case
    "$TEC" fuzz --programs --plant "$1" --seed 3 --first "$2" --cases 2 </dev/null
}
find_faults find_from
