"""One operator at a time, at ordinary sizes (bench/ops/make.py). Peers: ONNX Runtime and OpenVINO. `least` is the ratio that the operator
should reach: the run fails where one does not.
"""
import os

from bench import engines
from bench.harness import ROOT, TEC, WORK, Workload, call, program

FOLDER = os.path.join(WORK, 'ops')
MAKE = os.path.join(ROOT, 'bench', 'ops', 'make.py')
COLUMNS = ['least', *(f'{name}_ms' for name in engines.NAMES), *engines.COLUMNS]
_least = {}


def workload(name, threads, peers):
    folder = os.path.join(FOLDER, name)
    model, module = os.path.join(folder, 'model.onnx'), os.path.join(folder, f'{threads}.tec')
    if not os.path.exists(model):
        call(engines.PYTHON, MAKE, FOLDER, name)
    call(TEC, 'compile', model, '-o', module, '--threads', str(threads), '--quiet')
    ours = [program('bench_model'), module, str(threads), '1', folder]
    if 'program function' in call(TEC, 'inspect', module):       # its result has a shape that the inputs' values say
        ours = [program('bench_program'), 'tensors', module, str(threads), folder]
    return Workload(name, ours, check=lambda: call(TEC, 'check', folder),
                    peers=engines.commands(folder, threads) if peers else {})


def cells(row):
    return [f'{_least[row.workload]:.1f}', *(f'{row.peers[e]:.4f}' if e in row.peers else '' for e in engines.NAMES), *engines.cells(row)]


def judge(rows, _options):
    """What is slower than its bar; without peers nothing is judged."""
    missed = []
    for row in rows:
        ratio = row.peers[row.best_peer()] / row.ours_ms if row.peers else 1
        if ratio < _least[row.workload]:
            missed.append(f'{row.workload}: {ratio:.2f} of {row.best_peer()}, expected {_least[row.workload]}')
    return missed


def workloads(options):
    engines.need()
    for line in call(engines.PYTHON, MAKE, FOLDER, '--list').splitlines():
        name, least = line.split()
        _least[name] = float(least)
        if options.only in name:
            yield workload(name, options.threads, options.peers)
