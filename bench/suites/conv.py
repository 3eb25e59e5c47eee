"""The convolutions of ResNet-18, C1 to C12, each with bias and ReLU. Peers: oneDNN's fastest direct kernel, and its Winograd one."""
import os

from bench.harness import WORK, Workload, call, program

NAMES = [f'C{i}' for i in range(1, 13)]
WINOGRAD = ['C2', 'C6', 'C9', 'C12']


def workload(name, threads, algorithms):
    module = os.path.join(WORK, f'conv-{name}-{threads}.tec')
    os.makedirs(WORK, exist_ok=True)
    call(program('write_conv'), name, str(threads), module)
    return Workload(name, [program('bench_model'), module, str(threads), '1'],
                    peers={f'onednn-{a}': [program('conv_dnnl'), name, a] for a in algorithms})


def workloads(options):
    for name in NAMES:
        yield workload(name, options.threads, ['direct', 'winograd'] if name in WINOGRAD else ['direct'])
