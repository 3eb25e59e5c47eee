#!/bin/bash
# tune_kill -- tec tune is killed at a hundred random moments: each time the store opens clean, nothing that was told as done is lost, and the run
# goes on; at the end there are the trials of a run that was never killed, and a replay proposes the same.
#
# With proposals that do not follow from times (random) the trials can be compared with those of another run; for those that do, the replay is it.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
kills=${TEC_TEST_KILLS:-100}
trials=64
seed=${TEC_TEST_SEED:-$RANDOM}
echo "seed $seed"
RANDOM=$seed

fail() {
    [ ! -e "$dir/out" ] || tail -5 "$dir/out"
    echo "tune_kill: $*" >&2
    exit 1
}

cat >"$dir/mm.te" <<'END'
def mm(A: f32[64, 64], B: f32[64, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
END

trials_of() { # STORE: number and schedule of all but what was adopted, in order
    "$TEC" records export "$1" 2>"$dir/err" | python3 -c '
import json, sys
for r in sorted((r for r in map(json.loads, sys.stdin) if r["tuner"] != "adopted"), key=lambda r: r.get("trial", 0)):
    print(r.get("trial", 0), r["trace"].replace("\n", ";"))'
}
count() { # STORE: its trials
    trials_of "$1" | wc -l
}
told() { # the trials that the run has told as done: they were in the store by then
    sed -n 's/.*"all_trials":\([0-9]*\).*/\1/p' "$dir/out" | tail -1
}

# tune EXPLORER STORE MOST: to its end, but killed MOST times on the way; how often is added to `done`
tune() {
    local command=("$TEC" tune "$dir/mm.te" --threads 1 --explorer "$1" --records "$2" --trials $trials --json) last=0 killed=0 n
    while [ $killed -lt "$3" ]; do
        "${command[@]}" >"$dir/out" 2>"$dir/err" &
        local pid=$!
        sleep "$((RANDOM % (1 + killed / 4))).$((RANDOM % 1000))" # ever later, so that it gets on wherever going through what is there takes long
        kill -KILL $pid 2>"$dir/err" || { wait $pid || fail "it fails by itself: $(tail -3 "$dir/err")"; break; }
        wait $pid 2>"$dir/err" || true
        killed=$((killed + 1))
        [ -e "$2" ] || continue
        [ "$("$TEC" records check "$2" 2>&1)" = "$2: 0 problems" ] || fail "the store is damaged"
        n=$(count "$2")
        [ "$n" -ge "$last" ] || fail "$n trials, there were $last"
        [ "$n" -ge "$(told || true)" ] 2>"$dir/err" || [ -z "$(told)" ] || fail "$n trials, $(told) were told"
        last=$n
        [ "$n" -lt $trials ] || break
    done
    done=$((done + killed))
    "${command[@]}" >"$dir/out" 2>"$dir/err" || fail "it does not come to its end: $(tail -3 "$dir/err")"
    "$TEC" tune "$dir/mm.te" --threads 1 --explorer "$1" --records "$2" --replay >"$dir/out" 2>&1 || fail "the replay of $1 differs after $killed kills"
    echo "$1: $(count "$2") trials after $killed kills"
}

done=0
tune random "$dir/whole.db" 0
trials_of "$dir/whole.db" >"$dir/whole"
[ "$(wc -l <"$dir/whole")" = $trials ] || fail "an uninterrupted run has not $trials trials"
explorers=(random anneal random genetic evolve random epsilon-greedy grid)
for ((round = 0; done < kills; round++)); do
    explorer=${explorers[round % ${#explorers[@]}]}
    tune $explorer "$dir/$round.db" $((kills - done))
    [ "$(trials_of "$dir/$round.db" | cut -d' ' -f1 | sort -n | uniq | wc -l)" = "$(count "$dir/$round.db")" ] || fail "a trial is there twice"
    [ $explorer != random ] || trials_of "$dir/$round.db" | diff -q "$dir/whole" - || fail "a run that was killed tried something else"
done
echo "$done kills"
