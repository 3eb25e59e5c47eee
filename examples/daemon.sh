#!/bin/bash
# daemon -- the life of the tuning daemon in one script: installs tec into a folder, starts the daemon, submits a model, kills the
# daemon twice while it tunes, fetches the module and runs it beside an untuned one.
#
#   examples/daemon.sh BUILD_DIR|installed [MODEL.onnx|resnet18 [TRIALS [OPTIONS of tvmtune submit...]]]
#
# 'installed' uses the programs of the system's packages. 'resnet18' writes that model with a program of the build. Without a
# model: tests/models/digits/model.onnx, 60 trials, --dim batch=1.
set -eu
build=${1:?the folder of a finished build is missing}
model=${2:-tests/models/digits/model.onnx}
trials=${3:-60}
shift $(($# < 3 ? $# : 3))
[ "$model" != tests/models/digits/model.onnx ] || set -- --dim batch=1 "$@"
dir=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill $daemon 2>"$dir/err" || true; wait; rm -rf "$dir"' EXIT

say() {
    printf '\n== %s\n' "$*"
}

if [ "$build" = installed ]; then
    bin=$(dirname "$(command -v tvmtune)")
else
    say "install"
    cmake --install "$build" --prefix "$dir/usr" >"$dir/log"
    bin=$dir/usr/bin
fi
"$bin/tvmtune" --version
if [ "$model" = resnet18 ]; then
    "$build/bench/write_resnet18" "$dir"
    model=$dir/resnet18/model.onnx
fi

start() {
    rm -f "$dir/state/port"
    "$bin/tvmtune" serve --state "$dir/state" --log info &
    daemon=$!
    until [ -s "$dir/state/port" ]; do
        kill -0 $daemon
        sleep 0.1
    done
}

tvmtune() { # COMMAND ARGUMENTS...
    local command=$1
    shift
    "$bin/tvmtune" "$command" --state "$dir/state" "$@"
}

say "start, submit"
start
tvmtune submit "$model" --trials "$trials" "$@"

for time in first second; do
    before=$(tvmtune list 1 | awk '{print $3}')
    until now=$(tvmtune list 1 | awk '{print $3}') && [ "$now" != "$before" ]; do
        sleep 0.2
    done
    say "kill -9 for the $time time, after $now trials"
    kill -KILL $daemon
    wait $daemon 2>"$dir/err" || true
    start
done

say "watch"
tvmtune watch 1
say "fetch, run"
tvmtune fetch 1 -o "$dir/tuned.tec"
! command -v python3 >"$dir/log" || tvmtune fetch 1 --file report -o - | python3 -c '
import json, sys
r = json.load(sys.stdin)
for k in r["kernels"]:
    print("%8.4f -> %8.4f ms  %4d trials  %s" % (k.get("before_ms", 0), k.get("after_ms", 0), k["trials"], k["task"]))
print("end to end, sum of kernels: %.4f -> %.4f ms" % (r["total"]["before_ms"], r["total"]["after_ms"]))
print("the daemon measured the whole in turns:", r["end_to_end"])'
options=()
for ((i = 1; i <= $#; i++)); do
    case ${!i} in --trials=* | --seconds=* | --priority=*) ;; *) options+=("${!i}") ;; esac
done
"$bin/tec" compile "$model" "${options[@]}" -o "$dir/untuned.tec" 2>"$dir/log"
"$bin/tec" run "$dir/tuned.tec" 2>&1 | tail -n 1 | sed "s#$dir/##"
threads=()
for option in "${options[@]}"; do
    case $option in --threads=*) threads=("$option") ;; esac
done
say "untuned and tuned in turns"
"$bin/tec" compare "$dir/untuned.tec" "$dir/tuned.tec" "${threads[@]}" | sed "s#$dir/##"
