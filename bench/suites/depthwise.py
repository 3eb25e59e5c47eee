"""The depthwise convolutions of MobileNet, D1 to D9, each with bias and ReLU. Peer: oneDNN's fastest kernel."""
from bench.suites.conv import workload

NAMES = [f'D{i}' for i in range(1, 10)]


def workloads(options):
    for name in NAMES:
        yield workload(name, options.threads, ['direct'])
