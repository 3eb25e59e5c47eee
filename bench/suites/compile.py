"""How long `tec compile` takes, as a process, from the model file to the module file. No peers."""
import os
import time

from bench.harness import TEC, WORK, Workload, call
from bench.suites import models


def workload(name):
    model, module = os.path.join(models.NETWORKS[name][0](), 'model.onnx'), os.path.join(WORK, f'{name}-compile.tec')
    os.makedirs(WORK, exist_ok=True)

    def compile_once():
        start = time.perf_counter()
        call(TEC, 'compile', model, '-o', module, '--quiet')
        return (time.perf_counter() - start) * 1e3

    return Workload(name, compile_once)


def workloads(_options):
    for name in models.NETWORKS:
        yield workload(name)
