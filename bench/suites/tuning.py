"""C1 to C12 and D1 to D9, tuned together as one model: how good tuned kernels are. Peer: oneDNN's fastest kernel that is not Winograd's.

The record store is kept: a run that was interrupted goes on where it stopped, and one that has used its time measures at once. For a figure, begin
with a fresh store.
"""
import os
import statistics
import subprocess
import sys
from math import exp, log

from bench.harness import WORK, Workload, program, say
from bench.suites import conv, depthwise

NAMES = conv.NAMES + depthwise.NAMES
COLUMNS = ['default_ms', 'gain', 'peer_kernel']
MEAN, LEAST = 0.95, 0.8                        # of the peer's speed: the geometric mean, and the least of all


def cells(row):
    return [f'{row.before_ms:.4f}', f'{row.before_ms / row.ours_ms:.3f}', row.chose.get(row.best_peer(), '')]


def tune(names, options):
    """Seconds, trials, and reused trials of the job in all."""
    os.makedirs(WORK, exist_ok=True)
    db = options.records or os.path.join(WORK, f'tuning-{options.threads}.db')
    done = subprocess.run([program('tune_convs'), db, str(options.tune_seconds), str(options.threads), *names], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit('bench: tuning failed')
    table, last = done.stdout.rstrip('\n').rsplit('\n', 1)
    say(table)
    seconds, trials, reused = last.split()
    return db, float(seconds), int(trials), int(reused)


def workload(name, threads, db):
    tuned, default = conv.Kernel(name, threads, db), conv.Kernel(name, threads)

    def build():
        tuned.build()
        default.build()

    return Workload(name, tuned.worker, check=build, before=default.worker, peers={'onednn-direct': [program('conv_dnnl'), name, 'direct']})


def workloads(options):
    names = [n for n in NAMES if options.only in n]
    if not names:
        return
    db, seconds, trials, reused = tune(names, options)
    options.tuned = f'{trials} trials ({reused} of them from other jobs) in {seconds:.0f} s, limit {options.tune_seconds:.0f} s'
    options.late = seconds > options.tune_seconds
    for name in names:
        yield workload(name, options.threads, db)


def mean(ratios):
    return exp(statistics.fmean(log(r) for r in ratios))


def is_direct(kernel):
    return kernel.startswith(('jit', 'brgconv', 'brdgmm')) and 'wino' not in kernel


def against_peer(rows, options):
    """Prints how fast the rows are beside their peer. Why that is too slow, or no fair comparison."""
    ratios = {r.workload: r.peers[r.best_peer()] / r.ours_ms for r in rows}
    worst, average = min(ratios, key=ratios.get), mean(ratios.values())
    print(f'speed over that of oneDNN: geometric mean {average:.3f} (at least {MEAN}), least {ratios[worst]:.3f} of {worst} (at least {LEAST})')
    missed = [f'tuning took too long: {options.tuned}'] if options.late else []
    missed += [f'the geometric mean is {average:.3f}'] if average < MEAN else []
    missed += [f'{name} is at {ratio:.3f} of its peer' for name, ratio in ratios.items() if ratio < LEAST]
    return missed + [f"{r.workload}: '{r.chose.get(r.best_peer())}' is no direct kernel" for r in rows if not is_direct(r.chose.get(r.best_peer(), ''))]


def judge(rows, options):
    """Prints what all rows come to. Why the run fails."""
    if not rows:
        return []
    print(f'\ntuned: {options.tuned}\ngain over the default schedules: geometric mean {mean([r.before_ms / r.ours_ms for r in rows]):.3f}')
    return against_peer(rows, options) if options.peers else []
