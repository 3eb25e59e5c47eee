#!/usr/bin/python3
"""A worker of bench/run: one network through PyTorch (CPU, float32).

    nets_torch.py PEER NETWORK THREADS

Peers:
  torch-eager    plain module, no_grad
  torch-frozen   torch.jit.trace + freeze
  torch-opt      torch.jit.trace + freeze + optimize_for_inference
The networks are those of bench/models/make_models.py with random weights: only time is measured; the traced forms are held
against the eager one first. Says "ready 0 PEER-VERSION/THREADS@CPUS", then answers "sample SECONDS" with the median of its calls in milliseconds.
"""
import os
import statistics
import sys
import time

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import make_models                                                          # noqa: E402

NETWORKS = {
    'resnet18': (lambda: make_models.resnet([2, 2, 2, 2], False), (1, 3, 224, 224)),
    'digits': (make_models.digits, (360, 1, 8, 8)),
}


def frozen(net, x):
    return torch.jit.freeze(torch.jit.trace(net, x))


PEERS = {
    'torch-eager': lambda net, x: net,
    'torch-frozen': frozen,
    'torch-opt': lambda net, x: torch.jit.optimize_for_inference(torch.jit.trace(net, x)),
}


def check(got, want):
    error = ((got - want).norm() / want.norm()).item()
    if not error < 1e-3:
        sys.exit(f'nets_torch: relative error {error:.2e} against the eager network')


def sample(run, seconds):
    times, end = [], time.perf_counter() + seconds
    run()
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main(peer, network, threads):
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    make, shape = NETWORKS[network]
    with torch.no_grad():
        net, x = make_models.he_init(make()).eval(), torch.randn(*shape)
        run = PEERS[peer](net, x)
        check(run(x), net(x))
        for _ in range(5):
            run(x)
        cpus = '+'.join(map(str, sorted(os.sched_getaffinity(0))))
        print(f'ready 0 {peer}-{torch.__version__}/{torch.get_num_threads()}@{cpus}', flush=True)
        for line in sys.stdin:
            print(f'{sample(lambda: run(x), float(line.split()[1])):.6f}', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
