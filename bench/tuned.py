"""What bench/curves and bench/transfer share: the workloads as .te files, one tuning run with a record store of its own, and its curve.

The default schedule and the start of the space are measured in every run but not counted: what counts is what the explorer proposed.
Convolutions have plain layouts (NCHW), batch 1; their shapes are those of bench/shapes.h.
"""
import json
import os
import statistics
import subprocess
import sys

from bench.harness import BUILD, TEC, WORK, program

# name: (extent, channels in, channels out, kernel, stride, depthwise)
CONVS = {'C2': (56, 64, 64, 3, 1, False), 'C4': (56, 64, 128, 3, 2, False), 'C5': (56, 64, 128, 1, 2, False), 'C6': (28, 128, 128, 3, 1, False),
         'C7': (28, 128, 256, 3, 2, False), 'C9': (14, 256, 256, 3, 1, False), 'C10': (14, 256, 512, 3, 2, False),
         'C11': (14, 256, 512, 1, 2, False), 'C12': (7, 512, 512, 3, 1, False), 'D5': (28, 256, 256, 3, 1, True)}
NOT_PROPOSED = 2                                                            # the default and the start


def definition(name):
    if name == 'sgemm':
        return 'def sgemm(A: f32[1024, 1024], B: f32[1024, 1024]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n'
    n, inputs, outputs, k, stride, depthwise = CONVS[name]
    out = (n + stride - 1) // stride
    before = max((out - 1) * stride + k - n, 0) // 2
    padded = (out - 1) * stride + k
    inside = f'y >= {before} && y < {n + before} && x >= {before} && x < {n + before}'
    channel, depth, weights = ('o', '', f'{outputs}') if depthwise else ('i', f'i: {inputs}, ', f'{outputs}, {inputs}')
    weight = 'W[o, ky, kx]' if depthwise else 'W[o, i, ky, kx]'
    return (f'def {name}(X: f32[{inputs}, {n}, {n}], W: f32[{weights}, {k}, {k}]) {{\n'
            f'  P[c: {inputs}, y: {padded}, x: {padded}] = select({inside}, X[c, y - {before}, x - {before}], 0.0)\n'
            f'  Y[o, y: {out}, x: {out}] = sum[{depth}ky: {k}, kx: {k}](P[{channel}, y * {stride} + ky, x * {stride} + kx] * {weight})\n'
            f'  return Y\n}}\n')


def source_of(name):
    source = os.path.join(WORK, f'tuned-{name}.te')
    os.makedirs(WORK, exist_ok=True)
    with open(source, 'w') as f:
        f.write(definition(name))
    return source


def tune(name, db, explorer, seed, options):
    """One tuning run of options.trials proposals; it goes on where it stopped."""
    source = source_of(name)
    print(f'{os.path.basename(db)}: {name}, {explorer}, seed {seed} ...', file=sys.stderr, flush=True)
    subprocess.run([TEC, 'tune', source, '--records', db, '--explorer', explorer, '--seed', str(seed), '--trials',
                    str(options.trials + NOT_PROPOSED), '--threads', str(options.threads)], check=True, stdout=subprocess.DEVNULL)


def records(db, name):
    """Those of the workload, in the order of their trials."""
    lines = subprocess.run([TEC, 'records', 'export', db], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    of_all = (json.loads(line) for line in lines.splitlines())
    return sorted((r for r in of_all if r['workload']['definition'].startswith(f'def {name}(')), key=lambda r: r.get('trial', 0))


def incumbents(of, explorer, trials):
    """(trial, trace) of each candidate of the explorer that was the fastest so far."""
    best, found, trial = float('inf'), [], 0
    for r in of:
        if r['tuner'] != explorer or trial == trials:
            continue
        trial += 1
        if r['status'] == 'ok' and statistics.median(r['costs']) < best:
            best = statistics.median(r['costs'])
            found.append((trial, r['trace']))
    return found


def again(name, first, traces, options):
    """How many times as fast as the first each schedule is, measured now, in turns with it."""
    lines = subprocess.run([program('bench_again'), source_of(name), BUILD, str(options.threads)], check=True, stdout=subprocess.PIPE, text=True,
                           input=''.join(f'{trace.rstrip()}\n.\n' for trace in [first, *traces])).stdout
    return [float(line) for line in lines.split()]


def gains(name, runs, options):
    """After each trial of runs of one workload, {key: (explorer, records)}: how many times as fast as the default schedule is what the explorer had
    measured as the fastest by then. All that were the fastest for a time are measured anew in three rounds, each in turns with the default; costs in
    records were taken at whatever clock the machine had then."""
    found = {key: incumbents(of, explorer, options.trials) for key, (explorer, of) in runs.items()}
    traces = list(dict.fromkeys(trace for of in found.values() for _, trace in of))
    default = next(r['trace'] for _, of in runs.values() for r in of if r['tuner'] == 'default')
    print(f'{name}: {len(traces)} schedules once more ...', file=sys.stderr, flush=True)
    rounds = [again(name, default, traces, options) for _ in range(3)]
    gain = {trace: statistics.median(of) for trace, *of in zip(traces, *rounds)}
    return {key: [next((gain[trace] for trial, trace in reversed(of) if trial <= t), 0.0) for t in range(1, options.trials + 1)]
            for key, of in found.items()}


def reached(points, goal):
    """After how many trials; None: never."""
    return next((i + 1 for i, p in enumerate(points) if p >= goal), None)
