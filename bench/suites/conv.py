"""The convolutions of ResNet-18, C1 to C12, each with bias and ReLU. Peers: oneDNN's fastest direct kernel, and its Winograd one."""
import os

from bench.harness import WORK, Workload, call, program

NAMES = [f'C{i}' for i in range(1, 13)]
WINOGRAD = ['C2', 'C6', 'C9', 'C12']


class Kernel:
    """A module with the convolution: by its default schedule, or by the one of the record store."""

    def __init__(self, name, threads, records=None):
        self.path = os.path.join(WORK, f'conv-{name}-{threads}{"-tuned" if records else ""}.tec')
        self.write = [program('write_conv'), name, str(threads), self.path, *([records] if records else [])]
        self.worker = [program('bench_model'), self.path, str(threads), '1']

    def build(self):
        os.makedirs(WORK, exist_ok=True)
        call(*self.write)


def workload(name, threads, algorithms):
    kernel = Kernel(name, threads)
    return Workload(name, kernel.worker, check=kernel.build, peers={f'onednn-{a}': [program('conv_dnnl'), name, a] for a in algorithms})


def workloads(options):
    for name in NAMES:
        yield workload(name, options.threads, ['direct', 'winograd'] if name in WINOGRAD else ['direct'])
