#!/usr/bin/env python3
"""worse_defaults.py -- what tuning gains where a network's schedules were made worse on purpose.

    worse_defaults.py TEC [SECONDS]     tunes so long (60); prints what tuning says and what is measured behind it

A small network of convolutions and a product gets records that say: for each kernel, a schedule was adopted that
takes about twice as long as a good one. Then `tec tune` is to find out by measuring what is faster. The modules before
and after are compiled with the records and run in turns by `tec compare`, which knows nothing of tuning. Ends with 1
unless tuning and the comparison both say that the network is 1.3 times as fast, and the table of the kernels promises
the gain that was measured, within a third of it.
"""
import contextlib
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from large_models import Model                                               # noqa: E402


def write_network(path):
    m = Model(path)
    v = 'x'
    for inputs, outputs, size in (16, 64, 3), (64, 64, 3), (64, 128, 1), (128, 128, 3):
        v = m.node('Conv', v, m.weight(outputs, inputs, size, size), pads=[size // 2] * 4)
        v = m.node('Relu', v)
    v = m.node('GlobalAveragePool', v)
    v = m.node('Flatten', v)
    v = m.node('MatMul', v, m.weight(128, 512))
    with contextlib.redirect_stdout(io.StringIO()):
        m.write([('x', [1, 16, 28, 28])], v, [1, 512])


def run(*command):
    got = subprocess.run(command, capture_output=True, text=True)
    if got.returncode:
        sys.exit('%s ended with %d:\n%s%s' % (' '.join(command), got.returncode, got.stdout, got.stderr))
    return got.stdout


def spoil(lines):
    """For each kernel one of the schedules that were tried, which takes about twice as long as the fastest one, as
    adopted: worse than the default schedule, as a careless person might have written it."""
    tried, out = {}, ''
    for r in map(json.loads, lines.splitlines()):
        if r['status'] == 'ok' and r['tuner'] != 'adopted':
            tried.setdefault(r['workload']['exact_key'], []).append((statistics.median(r['costs']), r))
    for records in tried.values():
        best = min(seconds for seconds, _ in records)
        seconds, r = min(records, key=lambda at: abs(math.log(at[0] / best / 2)))
        r['tuner'] = 'adopted'
        for field in 'hash', 'point', 'features', 'features_version', 'job':
            r.pop(field, None)
        print('%5.2f times the fastest: %s' % (seconds / best, r['workload']['summary']))
        out += json.dumps(r) + '\n'
    return out


def main():
    tec, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '60'
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        write_network(at('net.onnx'))
        kernels = run(tec, 'tune', at('net.onnx'), '--kernels', '--threads', '1').splitlines()
        run(tec, 'tune', at('net.onnx'), '--records', at('first.db'), '--explorer', 'random', '--trials', str(24 * len(kernels)),
            '--threads', '1')
        with open(at('worse.jsonl'), 'w') as out:
            out.write(spoil(run(tec, 'records', 'export', at('first.db'))))
        run(tec, 'records', 'import', at('tune.db'), at('worse.jsonl'))
        run(tec, 'compile', at('net.onnx'), '--records', at('tune.db'), '-o', at('worse.tec'), '--threads', '1')
        said = run(tec, 'tune', at('net.onnx'), '--records', at('tune.db'), '--seconds', seconds, '--threads', '1', '--json')
        run(tec, 'compile', at('net.onnx'), '--records', at('tune.db'), '-o', at('tuned.tec'), '--threads', '1')
        again = json.loads(run(tec, 'compare', at('worse.tec'), at('tuned.tec'), '--threads', '1', '--json'))
    total = json.loads(said.splitlines()[-1])
    if not total.get('end_to_end', {}).get('wins'):
        sys.exit('tuning adopted nothing:\n' + said)
    promised, gain, again = total['before_ms'] / total['after_ms'], 1 + total['end_to_end']['gain'], 1 + again['gain']
    print('the table promises %.2fx, end to end %.2fx; compared again %.2fx' % (promised, gain, again))
    if min(gain, again) < 1.3 or abs(promised - gain) > (gain - 1) / 3:
        sys.exit('expected 1.3x at least, and a promise within a third of it')


main()
