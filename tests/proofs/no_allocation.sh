#!/bin/bash
# no_allocation -- a running network allocates nothing: an interposed allocator counts the calls of all threads after the first run.
set -eu
proof=no_allocation
. tests/proofs/programs/common.sh
cc -std=c11 -O1 -fPIC -shared -Wall -Wextra -Werror tests/proofs/programs/count_allocations.c -o "$dir/count.so"

# allocations THREADS [disturb]
allocations() {
    LD_PRELOAD=$dir/count.so "$dir/run_loop" "$dir/digits.tec" "$@" | sed -nE 's/^200 runs, ([0-9]+) allocations$/\1/p'
}

[ "$(allocations 1 disturb)" = 400 ] || fail "200 allocations that are given back were counted as '$(allocations 1 disturb)' calls"
for threads in 1 2; do
    n=$(allocations $threads)
    [ "$n" = 0 ] || fail "with $threads thread(s), 200 runs called the allocator '$n' times"
done
echo "$proof: 200 runs on one thread and on two: 0 calls of the allocator"
