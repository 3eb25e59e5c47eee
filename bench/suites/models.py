"""Whole networks: ResNet-18 and MobileNet-v1 on an image of 224x224, the digits network on its 360 images as one batch, a small BERT of
128 tokens, an LSTM of 16 steps. Peers: ONNX Runtime and OpenVINO, and PyTorch for the first two.
"""
import os
import sysconfig

from bench import engines, harness
from bench.harness import ROOT, TEC, WORK, Workload, call, program

PEERS = ['torch-eager', 'torch-frozen', 'torch-opt']
COLUMNS = engines.COLUMNS
cells = engines.cells


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


def made(name):
    """One of make_models.py, with PyTorch's outputs; written once."""
    folder = os.path.join(WORK, name)
    if not os.path.exists(os.path.join(folder, 'test_data_set_0', 'output_0.pb')):
        call(harness.PYTHON, os.path.join(ROOT, 'bench', 'models', 'make_models.py'), WORK, name)
    return folder


# name: its folder, the value of symbolic dimensions, whether PyTorch is measured
NETWORKS = {'resnet18': (resnet18, 1, True), 'digits': (digits, 360, True), 'mobilenet_v1': (lambda: made('mobilenet_v1'), 1, False),
            'bert_small': (lambda: made('bert_small'), 1, False), 'lstm16': (lambda: made('lstm16'), 1, False)}


def torch_peer(name, network, threads):
    """With the OpenBLAS that shares OpenMP's threads with PyTorch; the other one has threads of its own, which fight them."""
    blas = f'/usr/lib/{sysconfig.get_config_var("MULTIARCH")}/openblas-openmp'
    return ['env', f'LD_LIBRARY_PATH={blas}', harness.PYTHON, os.path.join(ROOT, 'bench', 'peers', 'nets_torch.py'), name, network, str(threads)]


def copy_of(folder, name):
    """The same model in a folder that may be written to, for the inputs as bytes."""
    own = os.path.join(WORK, f'{name}-inputs')
    os.makedirs(own, exist_ok=True)
    for part in ('model.onnx', 'test_data_set_0'):
        if not os.path.lexists(os.path.join(own, part)):
            os.symlink(os.path.join(folder, part), os.path.join(own, part))
    engines.write_inputs(own)
    return own


def workload(name, threads, peers):
    make, extent, with_torch = NETWORKS[name]
    folder = make()
    module, data, commands = os.path.join(WORK, f'{name}-{threads}.tec'), [], {}
    call(TEC, 'compile', os.path.join(folder, 'model.onnx'), '-o', module, '--threads', str(threads), '--quiet')
    if peers:                                  # all get the same inputs; alone, ours gets random numbers
        data = [copy_of(folder, name)]
        commands = engines.commands(data[0], threads, extent)
    if with_torch:
        commands.update({p: torch_peer(p, name, threads) for p in PEERS})

    def check_scores():
        inputs = os.path.join(folder, 'test_data_set_0')
        call(TEC, 'run', module, '--input', f'input={inputs}/input_0.pb', '--out', WORK, '--format', 'pb', '--repeat', '1')
        call(program('compare_scores'), os.path.join(WORK, 'output.pb'), os.path.join(inputs, 'output_0.pb'))

    return Workload(name, [program('bench_model'), module, str(threads), str(extent), *data],
                    check=check_scores if with_torch else lambda: call(TEC, 'check', folder), peers=commands)


def workloads(options):
    for name in NETWORKS:
        if options.only in name:
            yield workload(name, options.threads, options.peers)
