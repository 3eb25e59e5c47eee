# tests/fuzz/plants.sh -- the fuzzer finds each wrong reason that is planted (base/plants.def), from a case on that is near one that shows it.
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

if ! "$TEC" fuzz --plant list >"$out/list" 2>"$out/why"; then
    grep -q "faults are planted in debug builds only" "$out/why"
    echo "plants: none in this build"
    exit 0
fi

# fault, the first case of seed 1 that is tried, cases
cat >"$out/from" <<'END'
reason_carried 0 3
reason_private 0 3
reason_owned 0 4
reason_once 0 6
reason_combined 0 4
reason_parts 0 4
reason_shared 1 3
reason_init 8 3
reason_guard 29 4
reason_within 5 4
reason_order 12 4
reason_adds 0 4
reason_runs 0 3
END

grep -o 'reason_[a-z]*' "$out/list" | sort >"$out/listed"
cut -d' ' -f1 "$out/from" | sort | diff - "$out/listed" || {
    echo "plants: the faults here and in base/plants.def differ"
    exit 1
}
while read -r fault first cases; do
    "$TEC" fuzz --plant "$fault" --seed 1 --first "$first" --cases "$cases" --jobs 2 --keep "$out" >"$out/found" || {
        cat "$out/found"
        echo "plants: $fault is not found"
        exit 1
    }
done <"$out/from"
echo "plants: all $(wc -l <"$out/from") found"
