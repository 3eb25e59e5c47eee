#!/bin/bash
# no_system_call -- a running network makes no system call but the futex with which the thread pool waits and wakes.
set -eu
proof=no_system_call
. tests/proofs/programs/common.sh
command -v strace >/dev/null || skip "strace is not installed"
strace -o "$dir/trace" true 2>/dev/null || skip "this process may not trace another"

# Names of the system calls of all threads between the marks, with their counts. On a busy machine a thread of the pool may still be
# starting up at the first mark: what it does before its first futex is not of the runs. (A thread that the runs made would be seen by the
# clone of the one that made it.)
# watch THREADS [disturb]
watch() {
    strace -f -o "$dir/trace" "$dir/run_loop" "$dir/digits.tec" "$@" >/dev/null || fail "run_loop failed under strace"
    [ "$(grep -c 'getppid(' "$dir/trace")" = 2 ] || fail "expected two marks in the trace"
    awk '
        / (futex|getppid)\(/ { started[$1] = 1 }
        /getppid\(/ { inside = !inside }
        inside && !/getppid/ && started[$1]' "$dir/trace" |
        sed -E 's/^[0-9]+ +//; s/^<\.\.\. ([a-z0-9_]+) resumed.*/\1/; s/\(.*//' | sort | uniq -c
}

watch 1 disturb >"$dir/calls"
grep -qE '^ *200 getuid$' "$dir/calls" || fail "200 calls of getuid were not seen"
for threads in 1 2; do
    watch $threads >"$dir/calls"
    if grep -vE '^ *[0-9]+ futex$' "$dir/calls"; then
        fail "these system calls were made between the marks, with $threads thread(s)"
    fi
    [ $threads = 2 ] || [ ! -s "$dir/calls" ] || fail "one thread needs no futex"
done
echo "$proof: 200 runs on one thread: no system call; on two: $(awk '{ print $1 }' "$dir/calls") of futex alone"
