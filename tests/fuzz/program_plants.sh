# tests/fuzz/program_plants.sh -- random programs find each fault that is planted in the passes over programs (base/plants.def), from a case on that is near one that shows it.
set -e
. tests/fuzz/plants.inc "program plants"

# fault, the first case of seed 3 that is tried
cat >"$out/from" <<'END'
unpack_index 3
unpack_carried 7
inline_operand 30
simplify_perm 17
common_operand 1
batch_norm_mean 23
dead_symbols 836
layout_axes 7
choose_shared 35
fold_leaf 7
fuse_readers 2
fuse_results 139
bounded_value 3
place_possible 6
plan_kill 0
plan_view 27
plan_append 9
coalesce_lives 6
coalesce_escapes 667
code_tail 0
code_known 78
code_limit 1
code_row 1
code_branch 0
code_equal 19
dynamic_place 20
END

grep ' graph/' "$out/list" | sed 's/^ *[0-9]* \([a-z_]*\) .*/\1/' | compare_faults
find_from() { # fault, first case
    local target=native
    [[ $1 == place_* ]] && target="opencl -device=pocl" # only programs for a device are placed
    "$TEC" fuzz --programs --plant "$1" --seed 3 --first "$2" --cases 2 --target "$target" </dev/null
}
find_faults find_from
