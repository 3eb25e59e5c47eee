"""What scheduling and lowering cost a candidate of the tuner: random tilings of two convolutions of ResNet-18, the median. No peers.

build/release/bench/bench_lower prints the same by passes, and with `rss` the resident size after 1000, 10000 and 100000 candidates.
"""
import re

from bench.harness import Workload, call, program

CANDIDATES = 200


def workload(name):
    def median():
        text = call(program('bench_lower'), name, str(CANDIDATES))
        found = [re.search(rf'^{part} +([0-9.]+)', text, re.M) for part in ('schedule', 'lower')]
        return sum(float(m.group(1)) for m in found)

    return Workload(f'candidate-{name}', median)


def workloads(_options):
    for name in ('C2', 'C6'):
        yield workload(name)
