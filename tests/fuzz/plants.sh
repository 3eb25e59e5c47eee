# tests/fuzz/plants.sh -- the fuzzer finds each wrong reason that is planted (base/plants.def), from a case on that is near one that shows it.
set -e
# Some are found by the check of the notes behind each pass, which debug builds have.
[ -z "${TEC_SANITIZE:-}" ] || { echo "plants: not of a build with sanitizers"; exit 77; }
. tests/fuzz/plants.inc plants

# fault, the first case of seed 1 that is tried, cases
cat >"$out/from" <<'END'
reason_carried 0 3
reason_private 0 3
reason_owned 0 4
reason_once 65 4
reason_combined 23 4
reason_parts 3 4
reason_shared 20 4
reason_init 8 3
reason_guard 29 4
reason_within 5 4
reason_order 12 4
reason_adds 0 4
reason_runs 0 3
END

grep -o 'reason_[a-z]*' "$out/list" | compare_faults
find_from() { # fault, first case, cases
    "$TEC" fuzz --plant "$1" --seed 1 --first "$2" --cases "$3" --jobs 2 --keep "$out" </dev/null
}
find_faults find_from

# A search that no case can end is refused.
! "$TEC" fuzz --plant fuse_readers 2>"$out/why" || { echo "plants: a search in vain began"; exit 1; }
grep -q "no case comes by the fault 'fuse_readers' of 'graph/fuse' without --programs" "$out/why"
