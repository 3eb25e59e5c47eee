"""Whole networks: ResNet-18 at 224x224, and the digits network on its 360 images as one batch. Peers: PyTorch."""
import os
import sysconfig

from bench import harness
from bench.harness import ROOT, TEC, WORK, Workload, call, program

PEERS = ['torch-eager', 'torch-frozen', 'torch-opt']


def resnet18():
    """The model with its input and a reference output; written once."""
    folder = os.path.join(WORK, 'resnet18')
    if not os.path.exists(os.path.join(folder, 'test_data_set_0', 'output_0.pb')):
        os.makedirs(WORK, exist_ok=True)
        call(program('write_resnet18'), WORK)
        call(program('reference_resnet18'), WORK)
    return folder


def digits():
    return os.path.join(ROOT, 'tests', 'models', 'digits')


NETWORKS = {'resnet18': (resnet18, 1), 'digits': (digits, 360)}


def peer(name, network, threads):
    """With the OpenBLAS that shares OpenMP's threads with PyTorch; the other one has threads of its own, which fight them."""
    blas = f'/usr/lib/{sysconfig.get_config_var("MULTIARCH")}/openblas-openmp'
    return ['env', f'LD_LIBRARY_PATH={blas}', harness.PYTHON, os.path.join(ROOT, 'bench', 'peers', 'nets_torch.py'), name, network, str(threads)]


def workload(name, threads):
    folder, extent = NETWORKS[name][0](), NETWORKS[name][1]
    module, data = os.path.join(WORK, f'{name}-{threads}.tec'), os.path.join(folder, 'test_data_set_0')
    os.makedirs(WORK, exist_ok=True)
    call(TEC, 'compile', os.path.join(folder, 'model.onnx'), '-o', module, '--threads', str(threads), '--quiet')

    def check():
        call(TEC, 'run', module, '--input', f'input={data}/input_0.pb', '--out', WORK, '--format', 'pb', '--repeat', '1')
        call(program('compare_scores'), os.path.join(WORK, 'output.pb'), os.path.join(data, 'output_0.pb'))

    return Workload(name, [program('bench_model'), module, str(threads), str(extent)], check=check,
                    peers={p: peer(p, name, threads) for p in PEERS})


def workloads(options):
    for name in NETWORKS:
        yield workload(name, options.threads)
