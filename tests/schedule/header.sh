#!/bin/bash
# header -- the primitives' part of include/tec/schedule.h is what scripts/schedule_header writes of
# schedule/functions.def, and a change of the table shows there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

scripts/schedule_header --check || { echo "header: run scripts/schedule_header"; exit 1; }

mkdir -p "$dir/scripts" "$dir/include/tec" "$dir/schedule"
cp scripts/schedule_header "$dir/scripts"
cp .clang-format "$dir"
cp include/tec/schedule.h "$dir/include/tec"
sed 's/(sched \*s, const char \*loop, int64_t point,/(sched *s, const char *loop, int64_t where,/' schedule/functions.def \
    >"$dir/schedule/functions.def"
status=0
said=$("$dir/scripts/schedule_header" --check) || status=$?
[ $status = 1 ] && grep -qF '+TEC_API bool tec_cut(tec_schedule *s, const char *loop, int64_t where, const char **out);' <<<"$said" &&
    grep -qF '+#define tec_cut(s, loop, where, out)' <<<"$said" ||
    { echo "header: a changed row ends with $status and says:"; echo "$said"; exit 1; }
echo "header: ok"
