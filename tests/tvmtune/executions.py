#!/usr/bin/env python3
"""executions -- the trials of a store that devices of a pool measured, compared with what the servers' own logs say they ran.

    executions.py STORE LOG...

A server writes "session N: measures 'HASH'" before it runs a trial, and HASH is that of the trial's trace; the session was
opened for the file of a job. An execution belongs to a stored trial of the same job and hash. A session that has no outputs to
check a trial against says so and runs nothing; it makes them, and the trial is asked for again at once. So of two lines in a row
with one hash in one session, one counts. Printed is one line of numbers:

    executions of trials, trials stored, executions beyond the first of each trial, executions without a stored trial,
    stored trials without an execution, runs of two trials that were compared

The fourth number counts trials whose answer was lost and that were not proposed again. The fifth must be 0.
"""
import collections
import re
import sqlite3
import sys

WORD = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & WORD
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & WORD
    return x ^ (x >> 31)


def base_hash(data, seed=0x9e3779b97f4a7c15):
    """The hash of base/base.h."""
    h = mix(seed ^ len(data))
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):
        h = (mix(h ^ int.from_bytes(data[i:i + 8], "little")) + 0x9e3779b97f4a7c15) & WORD
    return mix(h ^ int.from_bytes(data[whole:], "little")) if whole < len(data) else h


def logged(logs, files):
    """Executions by (file, hash), of the jobs of these files; and the number of runs of two. Sessions are numbered anew in each
    life of a server, and are opened before they measure."""
    runs, pairs, file_of, last = collections.Counter(), 0, {}, {}
    for log in logs:
        with open(log, errors="replace") as lines:
            for line in lines:
                opened = re.search(r"session (\d+): opened on .* by client \d+, '(.*)'$", line)
                measures = re.search(r"session (\d+): measures '([0-9a-f ]+)'$", line)
                session = (log, (opened or measures).group(1)) if opened or measures else None
                if opened:
                    file_of[session] = opened.group(2)
                    last.pop(session, None)
                elif measures and file_of.get(session) in files:
                    label = measures.group(2)
                    again = last.pop(session, None) == label
                    if not again:
                        last[session] = label
                    if " " in label:
                        pairs += not again
                    else:
                        runs[file_of[session], label] += not again
    return runs, pairs


def main():
    store = sqlite3.connect(sys.argv[1], timeout=60)
    file_of = dict(store.execute("SELECT name, arguments FROM jobs"))
    stored = collections.Counter()
    for job, trace in store.execute("SELECT r.job, r.trace FROM records r JOIN devices d ON d.id = r.device WHERE tuner <> 'adopted' AND "
                                    "r.stage NOT IN ('schedule', 'build') AND d.name LIKE 's_/cpu:0'"):
        stored[file_of[job], f"{base_hash(trace.encode()):016x}"] += 1
    runs, pairs = logged(sys.argv[2:], set(file_of.values()))
    print(sum(runs.values()), sum(stored.values()), sum(max(0, runs[x] - n) for x, n in stored.items()),
          sum(n for x, n in runs.items() if x not in stored), sum(max(0, n - runs[x]) for x, n in stored.items()), pairs)


if __name__ == "__main__":
    main()
