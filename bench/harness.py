"""What the suites of bench/run share: workers that measure when they are told to, and rounds in which they alternate.

A worker is a process of its own, pinned to the CPUs of the run, that says "ready FLOPS" (0: unknown), perhaps with the name of what it
chose to run behind it, and answers each line "sample SECONDS" with one number: milliseconds for a run of its workload, or what else it
measures. Between samples it sleeps, so workers do not disturb each other, whatever thread pools they have.
"""
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get('TEC_BUILD_DIR', os.path.join(ROOT, 'build', 'release'))
TEC = os.path.join(BUILD, 'tec')
WORK = os.path.join(ROOT, 'build', 'bench')
PYTHON = '/usr/bin/python3'                    # the one that Debian's python3-torch belongs to


class Failed(Exception):
    pass


def program(name):
    return os.path.join(BUILD, 'bench', name)


def cpus(threads):
    """The last CPUs that this process may use: the first ones have the interrupts."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        raise Failed(f'{threads} threads on {len(allowed)} CPUs')
    return set(allowed[-threads:])


def call(*command):
    """Runs a command; its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f'{" ".join(command)}: {(done.stderr or done.stdout).strip()}')
    return done.stdout


class Worker:
    def __init__(self, command, threads):
        mask = cpus(threads)
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), BLIS_NUM_THREADS=str(threads),
                   OMP_PROC_BIND='close', OMP_PLACES=','.join(f'{{{cpu}}}' for cpu in sorted(mask)), PYTHONDONTWRITEBYTECODE='1')
        self.command = command
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                                            preexec_fn=lambda: os.sched_setaffinity(0, mask))
        except FileNotFoundError:
            raise Failed(f'{command[0]} is not there: scripts/packages --install bench, and configure again') from None
        ready = self.answer(2, 3)
        self.flops, self.chose = float(ready[1]), ready[2] if len(ready) == 3 else ''

    def answer(self, least, most):
        """The words of a line."""
        line = self.process.stdout.readline().split()
        if not least <= len(line) <= most:
            self.process.kill()
            raise Failed(f'{" ".join(self.command)}: {self.process.stderr.read().strip() or "ended without an answer"}')
        return line

    def sample(self, seconds):
        print(f'sample {seconds}', file=self.process.stdin, flush=True)
        return float(self.answer(1, 1)[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Workload:
    name: str
    ours: object                               # the command of our worker, or a function that gives milliseconds
    flops: float = 0                           # 0: as our worker says
    peers: dict = field(default_factory=dict)  # name: command
    before: object = None                      # the command of one more worker of ours: without what the suite is about
    check: object = None                       # a function that raises Failed where our result is wrong
    peak: bool = True                          # the peak of this machine's CPUs is measured beside it


@dataclass
class Row:
    suite: str
    workload: str
    threads: int
    ours_ms: float
    flops: float
    peak: float                                # 1e9 operations per second; 0: not measured
    peers: dict                                # name: ms
    before_ms: float = 0                       # 0: there is no such worker
    chose: dict = field(default_factory=dict)  # what peers that say so chose to run

    def gflops(self):
        return self.flops / self.ours_ms * 1e-6

    def best_peer(self):
        return min(self.peers, key=self.peers.get) if self.peers else None

    def cells(self):
        peer, rate = self.best_peer(), self.gflops()
        return [self.suite, self.workload, str(self.threads), f'{self.ours_ms:.4f}', f'{rate:.2f}' if rate else '',
                f'{100 * rate / self.peak:.1f}' if rate and self.peak else '', peer or '', f'{self.peers[peer]:.4f}' if peer else '',
                f'{self.peers[peer] / self.ours_ms:.3f}' if peer else '']


COLUMNS = ['suite', 'workload', 'threads', 'ours_ms', 'ours_gflops', 'pct_of_peak', 'peer', 'peer_ms', 'ratio']


def alternate(workers, rounds, seconds):
    """The median over the rounds of each worker's samples; in each round every worker has its turn."""
    samples = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            samples[name].append(worker.sample(seconds))
    return {name: statistics.median(s) for name, s in samples.items()}


class Function:
    """A worker in this process: for what starts processes itself."""
    flops = 0

    def __init__(self, function):
        self.function = function

    def sample(self, _seconds):
        return self.function()

    def close(self):
        pass


def measure(suite, workload, options):
    if workload.check:
        workload.check()
    workers = {}
    try:
        workers['ours'] = Function(workload.ours) if callable(workload.ours) else Worker(workload.ours, options.threads)
        if workload.before:
            workers['before'] = Worker(workload.before, options.threads)
        if options.peers:
            for name, command in workload.peers.items():
                workers[name] = Worker(command, options.threads)
        if workload.peak and not callable(workload.ours):
            workers['peak'] = Worker([program('bench_peak'), str(options.threads)], options.threads)
        flops = workload.flops or workers['ours'].flops
        chose = {name: workers[name].chose for name in workload.peers if name in workers and workers[name].chose}
        medians = alternate(workers, options.rounds, options.seconds)
    finally:
        for worker in workers.values():
            worker.close()
    ours, peak, before = medians.pop('ours'), medians.pop('peak', 0), medians.pop('before', 0)
    return Row(suite, workload.name, options.threads, ours, flops, peak, medians, before, chose)


def say(text):
    print(text, file=sys.stderr, flush=True)
