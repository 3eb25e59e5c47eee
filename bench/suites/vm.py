"""What the VM costs. `walk`: a list of 10,000 elements, control alone; `ns_per_step` is for one instruction. `bert-N`: BERT-base on N words
by the VM; `static_ms` by the static executor, in turns, and `vm_cost` the ratio. No peers."""
import os

from bench.harness import ROOT, TEC, WORK, Workload, call, program
from bench.suites import programs

COLUMNS = ['ns_per_step', 'static_ms', 'vm_cost']
MOST_COST, MOST_NS = 1.03, 50.0
_steps = {}


def walk(threads):
    module = os.path.join(WORK, 'walk.tec')
    call(TEC, 'compile', os.path.join(ROOT, 'bench', 'programs', 'walk.tecp'), '-o', module, '--quiet')
    command = [program('bench_program'), 'list', module, str(threads), '10000']
    _steps['walk'] = int(programs.ask(command, threads, 'steps')[-1])
    return Workload('walk', command)


def bert(words, threads):
    programs.make_files('bert')
    ours, before = (programs.compiled('bert', executor) for executor in ('vm', 'auto'))
    return Workload(f'bert-{words}', [program('bench_program'), 'words', ours, str(threads), str(words)],
                    before=[program('bench_model'), before, str(threads), str(words)])


def cells(row):
    steps = _steps.get(row.workload)
    return [f'{1e6 * row.ours_ms / steps:.1f}' if steps else '', f'{row.before_ms:.4f}' if row.before_ms else '',
            f'{row.ours_ms / row.before_ms:.4f}' if row.before_ms else '']


def judge(rows, _options):
    for row in rows:
        if row.workload in _steps and 1e6 * row.ours_ms / _steps[row.workload] > MOST_NS:
            yield f'{row.workload}: more than {MOST_NS:.0f} ns an instruction'
        if row.before_ms and row.ours_ms / row.before_ms > MOST_COST:
            yield f'{row.workload}: the VM takes more than {MOST_COST} of the time of the static executor'


def workloads(options):
    os.makedirs(WORK, exist_ok=True)
    for make in (walk, lambda threads: bert(25, threads), lambda threads: bert(128, threads)):
        yield make(options.threads)
