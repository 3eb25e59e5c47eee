#!/usr/bin/python3
"""A worker of bench/run gpu: a kernel or a network through PyTorch (cuBLAS, cuDNN), with its TF32 off.

    gpu_torch.py kernel|network NAME eager|compiled cuda|cpu full|small
    < sample 0.2        > 0.31        the median of samples, in milliseconds of one call, by CUDA's events (on a CPU by the clock)
    < check FOLDER      > 1e-7        what the arguments there (NAME.npy, by bench_device) differ from PyTorch's result

NAME is one of bench/gpu/kernels.py, `copy`, or a network of bench/models/make_models.py. Says "ready 0 WHAT" first. Tensors of kernels lie on
the device; a call of a network copies its inputs there and its output back.
"""
import os
import statistics
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'gpu'), os.path.join(HERE, '..', 'models')]
import kernels                                                              # noqa: E402

TOLERANCE = {'hgemm': 2e-3}                    # PyTorch rounds its result to f16
REPEATS = 5


def conv(size):
    """Convolution, bias, ReLU. Where the padding is not the same on both sides, it is there before the clock starts."""
    _, _, _, channels, kernel, stride, depthwise, before, after = size

    def prepare(x, w, b):
        w = w[:, None] if depthwise else w.reshape(*w.shape[:2], kernel, kernel)
        return (F.pad(x, (before, after, before, after)) if before != after else x, w, b)

    def run(x, w, b):
        return F.relu(F.conv2d(x, w, b, stride, before if before == after else 0, groups=channels if depthwise else 1))
    return prepare, run


def as_given(*tensors):
    return tensors


def function(k):
    """How arguments are prepared, and the call that is timed."""
    if k.group in ('conv', 'depthwise'):
        return conv(k.size)
    if k.group in ('sgemm', 'hgemm'):
        return as_given, torch.matmul
    n = k.size[0]
    return as_given, {'softmax': lambda a: torch.softmax(a, 1), 'transpose': lambda x: x.t().contiguous(),
                      'layer_norm': lambda a, g, b: F.layer_norm(a, (n,), g, b, 1e-5)}[k.name.rsplit('-', 1)[0]]


def parameters(k):
    """Name, dtype and shape of each input, as the definition has them."""
    head = k.text[k.text.index('(') + 1:k.text.index(') {')]
    found = []
    for part in head.split(']'):
        if ':' in part:
            name, rest = part.strip(' ,').split(': ')
            dtype, extents = rest.split('[')
            found.append((name, torch.float16 if dtype == 'f16' else torch.float32, [int(e) for e in extents.split(',')]))
    return found


class Kernel:
    def __init__(self, name, device, small):
        self.device = device
        if name == 'copy':
            source = torch.ones((16 if small else 256) << 20, dtype=torch.uint8, device=device)
            target = torch.empty_like(source)
            self.call = lambda: target.copy_(source)
            return
        self.k = next(k for k in kernels.kernels(small) if k.name == name)
        self.prepare, self.run = function(self.k)
        torch.manual_seed(1)
        self.set([torch.rand(shape).mul(2).sub(1).to(dtype) for _, dtype, shape in parameters(self.k)])

    def set(self, tensors):
        args = self.prepare(*(t.to(self.device) for t in tensors))
        self.call = lambda: self.run(*args)

    def check(self, folder):
        files = {f[:-4]: numpy.load(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith('.npy')}
        inputs = [torch.from_numpy(files.pop(name)) for name, _, _ in parameters(self.k)]
        (got,) = files.values()
        self.set(inputs)
        with torch.no_grad():
            want = self.call().float().cpu().numpy()
        error = abs(got.astype(numpy.float64) - want).max() / abs(want).max() if got.shape == want.shape else 1
        if not error <= TOLERANCE.get(self.k.group, 1e-4):
            sys.exit(f'gpu_torch: {self.k.name}: our result is {error:.2e} of its greatest value away from PyTorch\'s')
        return error


class Network:
    def __init__(self, name, how, device):
        import make_models
        torch.manual_seed(20181)
        net, inputs = (make_models.digits(), [torch.randn(360, 1, 8, 8)]) if name == 'digits' else \
            {**make_models.MODELS, **make_models.LARGE}[name]()[:2]
        net = net.eval().to(device)
        run = torch.compile(net) if how == 'compiled' else net
        inputs = [t.pin_memory() if device == 'cuda' else t for t in inputs]
        self.call = lambda: run(*(t.to(device, non_blocking=True) for t in inputs)).cpu()


def took(call, times, device):
    """Seconds of so many calls."""
    if device != 'cuda':
        start = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def sample(call, seconds, device):
    share, begun, shortest = seconds / (REPEATS + 1), time.perf_counter(), float('inf')
    while True:
        shortest = min(shortest, took(call, 1, device))
        if time.perf_counter() - begun >= share:
            break
    times = max(1, min(100000, int(share / max(shortest, 1e-9))))
    return statistics.median(took(call, times, device) / times for _ in range(REPEATS)) * 1e3


def main(kind, name, how, device, sizes):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    one = Kernel(name, device, sizes == 'small') if kind == 'kernel' else Network(name, how, device)
    with torch.no_grad():
        one.call()
        where = torch.cuda.get_device_name().replace(' ', '_') if device == 'cuda' else 'cpu'
        print(f'ready 0 torch-{torch.__version__}/tf32-off@{where}', flush=True)
        for line in sys.stdin:
            word, what = line.split(maxsplit=1)
            print(f'{sample(one.call, float(what), device):.6f}' if word == 'sample' else one.check(what.strip()), flush=True)


if __name__ == '__main__':
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
