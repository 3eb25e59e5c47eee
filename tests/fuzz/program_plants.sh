# tests/fuzz/program_plants.sh -- random programs find each fault that is planted in the passes over programs (base/plants.def), from a case on that is near one that shows it.
set -e
. tests/fuzz/plants.inc "program plants"

# fault, the first case of seed 3 that is tried
cat >"$out/from" <<'END'
simplify_perm 36
common_operand 0
batch_norm_mean 30
dead_symbols 5
layout_axes 15
choose_shared 161
fold_leaf 3
fuse_readers 1
plan_kill 0
plan_view 4
plan_append 5
coalesce_lives 3
coalesce_escapes 234
code_tail 0
code_known 77
code_limit 5
code_row 32
code_branch 0
dynamic_place 11
END

grep ' graph/' "$out/list" | sed 's/^ *[0-9]* \([a-z_]*\) .*/\1/' | compare_faults
find_from() { # fault, first case
    "$TEC" fuzz --programs --plant "$1" --seed 3 --first "$2" --cases 2 </dev/null
}
find_faults find_from
