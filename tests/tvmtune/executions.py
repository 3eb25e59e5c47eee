#!/usr/bin/env python3
"""executions -- the trials of a store that were measured, compared with what the logs of those who measured say they ran.

    executions.py STORE LOG...

A server writes "session N: measures 'HASH'" before it runs a trial, and HASH is that of the trial's trace; the session was
opened for the file of a job. A machine that measures for itself writes "FILE: measures 'HASH'" (tec tune --run-log). An execution
belongs to a stored trial of the same file and hash. Printed are two lines, of the devices of the pool and of the machine itself:

    executions of trials, trials stored, executions beyond the first of each trial, executions without a stored trial,
    stored trials without an execution, runs of two trials that were compared

The fourth number counts trials whose answer was lost and that were not proposed again. The fifth must be 0.
"""
import collections
import re
import sqlite3
import sys

WORD = (1 << 64) - 1
POOL, HERE = 0, 1


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
    """For the pool and for the machine itself: executions by (file, hash), of the jobs of these files; and the number of runs of
    two. Sessions are numbered anew in each life of a server, and are opened before they measure."""
    runs, pairs, file_of = (collections.Counter(), collections.Counter()), [0, 0], {}
    for log in logs:
        with open(log, errors="replace") as lines:
            for line in lines:
                opened = re.search(r"session (\d+): opened on .* by client \d+, '(.*)'$", line)
                if opened:
                    file_of[log, opened.group(1)] = opened.group(2)
                measures = re.search(r"^(?:.*session (\d+)|(.*)): measures '([0-9a-f ]+)'$", line)
                if not measures:
                    continue
                session, file, label = measures.groups()
                where = POOL if session else HERE
                file = file_of.get((log, session)) if session else file
                if file not in files:
                    continue
                if " " in label:
                    pairs[where] += 1
                else:
                    runs[where][file, label] += 1
    return runs, pairs


def main():
    store = sqlite3.connect(sys.argv[1], timeout=60)
    file_of = dict(store.execute("SELECT name, arguments FROM jobs"))
    stored = (collections.Counter(), collections.Counter())
    for job, trace, device in store.execute("SELECT r.job, r.trace, d.name FROM records r JOIN devices d ON d.id = r.device "
                                            "WHERE tuner <> 'adopted' AND r.stage NOT IN ('schedule', 'build', 'reference')"):
        where = POOL if re.fullmatch(r"s./cpu:0", device) else HERE
        stored[where][file_of[job], f"{base_hash(trace.encode()):016x}"] += 1
    runs, pairs = logged(sys.argv[2:], set(file_of.values()))
    for r, s, p in zip(runs, stored, pairs, strict=True):
        print(sum(r.values()), sum(s.values()), sum(max(0, r[x] - n) for x, n in s.items()),
              sum(n for x, n in r.items() if x not in s), sum(max(0, n - r[x]) for x, n in s.items()), p)


if __name__ == "__main__":
    main()
