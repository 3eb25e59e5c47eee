"""Programs and models of unknown length (bench/programs), one input at a time: Tree-LSTM, LSTM of one and two layers, BERT-base. Peers:
PyTorch eager and compiled, ONNX Runtime, DyNet, all from PyPI (scripts/packages --install peers). Times are those of a pass over all inputs;
`us_per_token` divides by their words. Shares are of medians over profiled passes: kernels, memory, control; `gbytes` is what the
kernels touch a second.
"""
import json
import os
import statistics
import subprocess

from bench import harness
from bench.harness import BUILD, ROOT, TEC, WORK, Failed, Workload, call, program

FOLDER = os.path.join(WORK, 'programs')
PYTHON = os.path.join(ROOT, 'build', 'peers', 'bin', 'python')
PEERS = ['torch-eager', 'torch-compiled', 'onnxruntime', 'dynet']
# name: how bench_program reads the inputs, the file that is compiled, the peers that can run it
WORKLOADS = {
    'tree_lstm': ('trees', 'tree_lstm.tecp', ['torch-eager', 'torch-compiled', 'dynet']),
    'lstm1': ('sentences', 'lstm1.tecp', PEERS),
    'lstm2': ('sentences', 'lstm2.tecp', PEERS),
    'bert': ('bert', 'bert.onnx', ['torch-eager', 'torch-compiled', 'onnxruntime']),
}
PASSES = 15  # with a profile, behind a first one
COLUMNS = ['us_per_token', 'kernels', 'memory', 'control', 'gbytes']
_rows = {}


def make_files(name):
    if not os.path.exists(PYTHON):
        raise Failed('build/peers is not there: scripts/packages --install peers')
    marker = os.path.join(FOLDER, 'bert.onnx' if name == 'bert' else 'trees.json')
    if not os.path.exists(marker):
        call(PYTHON, os.path.join(ROOT, 'bench', 'programs', 'make.py'), FOLDER, *(['bert'] if name == 'bert' else []))


def tokens(name):
    def leaves(t):
        return 1 if isinstance(t, int) else sum(map(leaves, t))
    if name == 'bert':
        return 12 + 19 + 25 + 32               # of bench_program.c
    with open(os.path.join(FOLDER, 'trees.json' if name == 'tree_lstm' else 'lengths.json')) as f:
        return sum(map(leaves, json.load(f)) if name == 'tree_lstm' else json.load(f))


def compiled(name, executor='vm'):
    """The module's path; an ONNX model becomes a program too."""
    source = WORKLOADS[name][1]
    path = os.path.join(FOLDER, f'{name}-{executor}.tec')
    if source.endswith('.onnx'):
        call(TEC, 'compile', os.path.join(FOLDER, source), '-o', path, '--executor', executor, '--quiet')
    else:
        call(TEC, 'compile', os.path.join(ROOT, 'bench', 'programs', source), '-o', path, '--quiet', '--params',
             os.path.join(FOLDER, f'{name}.safetensors'))
    return path


def peer(name, workload, threads):
    return [PYTHON, os.path.join(ROOT, 'bench', 'peers', 'programs_peer.py'), name, workload, str(threads), FOLDER]


def ask(command, threads, *lines, **env):
    """The answers of a worker that is started for these lines alone."""
    done = subprocess.run(command, input='\n'.join(lines) + '\n', capture_output=True, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads), **env))
    if done.returncode != 0:
        raise Failed(f'{" ".join(command)}: {done.stderr.strip()[-300:]}')
    return done.stdout.splitlines()[1:]


def compare(ours, reference):
    """Both files have floats; the largest difference counts against the largest value."""
    text = ('import numpy, sys; a, b = (numpy.fromfile(f, numpy.float32) for f in sys.argv[1:3]); '
            'print(abs(a - b).max() / abs(b).max() if a.shape == b.shape else 1)')
    error = float(call(PYTHON, '-c', text, ours, reference))
    if not error < 1e-3:
        raise Failed(f'relative error {error:.2e} against PyTorch')


def workload(name, threads):
    kind, _, peers = WORKLOADS[name]
    make_files(name)
    module = compiled(name)
    ours = [program('bench_program'), kind, module, str(threads), FOLDER]

    def check():
        mine, theirs = (os.path.join(FOLDER, f'{name}.{who}.f32') for who in ('ours', 'torch'))
        ask(ours, threads, f'write {mine}')
        ask(peer('torch-eager', name, threads), threads, f'write {theirs}')
        compare(mine, theirs)
        passes = ask(ours, threads, *['profile'] * (1 + PASSES), BENCH_PROFILE='1')[1:]
        _rows[name] = [statistics.median(column) for column in zip(*([float(v) for v in line.split()] for line in passes))]

    return Workload(name, ours, check=check, peers={p: peer(p, name, threads) for p in peers})


def cells(row):
    kernels, shapes, memory, control, touched = _rows[row.workload]
    all_ms = kernels + shapes + memory + control
    return [f'{1e3 * row.ours_ms / tokens(row.workload):.2f}', *(f'{100 * v / all_ms:.1f}' for v in (kernels + shapes, memory, control)),
            f'{touched / kernels * 1e-6:.1f}']


def workloads(options):
    for name in WORKLOADS:
        if options.only in name:
            yield workload(name, options.threads)
