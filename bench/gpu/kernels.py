#!/usr/bin/python3
"""The kernels that bench/run gpu and scripts/portable measure on devices, as definitions in .te: products, the convolutions C1 to C12 and
D1 to D9 of bench/shapes.h, softmax, layer norm and transpose.

    kernels.py FOLDER [--small] [--only "NAME ..."]     # writes NAME.te for each; prints NAME KIND FLOPS a line
    kernels.py --list [--small]

KIND is `any`, or `cuda` where the schedule is one for tensor cores. --small: sizes for a device that is a CPU.
"""
import os
import re
import sys
from dataclasses import dataclass

SHAPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'shapes.h')
EDGES = {False: [512, 1024, 2048, 4096, 8192], True: [64, 256, 512]}
HALF_EDGES = {False: [1024, 2048, 4096, 8192], True: [128]}
ROWS = {False: 4096, True: 256}                # of softmax, layer norm and transpose
BATCHES = {False: [1, 64], True: [1]}

# Blocks of 64 x 64 by 4 warps, each 16 rows: 8 results of mma.m16n8k16 side by side; tiles of 32 columns of A and rows of B.
TENSOR_CORES = """
schedule {name} {{
  cache_write(C, local)
  y0, yt, yi = split(C.cache.local.y, _, 4, 16)
  x0, xt, xi = split(C.cache.local.x, _, 8, 8)
  reorder(y0, x0, yt, xt, yi, xi)
  bind(y0, blockIdx.y)
  bind(x0, blockIdx.x)
  bind(yt, threadIdx.y)
  compute_at(C, yt)
  k0, km, k1 = split(C.k, _, 2, 16)
  cxt, cxi = split(C.x, _, 8)
  reorder(k0, km, cxt, C.y, cxi, k1)
  unroll(km)
  unroll(cxt)
  cache_read(A, shared)
  cache_read(B, shared)
  compute_at(A.cache.shared, k0)
  compute_at(B.cache.shared, k0)
  fa = fuse(A.cache.shared.ax0, A.cache.shared.ax1)
  a0, a1, a2 = split(fa, _, 4, 32)
  bind(a1, threadIdx.y)
  bind(a2, threadIdx.x)
  fb = fuse(B.cache.shared.ax0, B.cache.shared.ax1)
  b0, b1, b2 = split(fb, _, 4, 32)
  bind(b1, threadIdx.y)
  bind(b2, threadIdx.x)
  cache_read(A.cache.shared, local)
  cache_read(B.cache.shared, local)
  compute_at(A.cache.shared.cache.local, km)
  compute_at(B.cache.shared.cache.local, cxt)
  tensorize(A.cache.shared.cache.local.ax0, cuda.ldmatrix.a.f16)
  tensorize(B.cache.shared.cache.local.ax0, cuda.ldmatrix.b.f16)
  tensorize(C.y, cuda.mma.f16)
  tensorize(yi, cuda.store.f32)
}}
"""


@dataclass
class Kernel:
    name: str
    group: str                                 # sgemm, hgemm, conv, depthwise, bandwidth
    text: str
    flops: int = 0
    bytes: int = 0                             # what must be read and written
    on: str = 'any'                            # or cuda
    size: tuple = ()                           # what the peers need to compute the same

    def identifier(self):
        return identifier(self.name)


def identifier(name):
    return name.replace('-', '_')


def sgemm(n):
    name = f'sgemm-{n}'
    return Kernel(name, 'sgemm', f'def {identifier(name)}(A: f32[{n}, {n}], B: f32[{n}, {n}]) {{\n'
                  '  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n', 2 * n ** 3, 12 * n * n, size=(n,))


def hgemm(n):
    name = f'hgemm-{n}'
    return Kernel(name, 'hgemm', f'def {identifier(name)}(A: f16[{n}, {n}], B: f16[{n}, {n}]) {{\n'
                  '  C[y, x] = sum[k](f32(A[y, k]) * f32(B[k, x]))\n  return C\n}\n' + TENSOR_CORES.format(name=identifier(name)),
                  2 * n ** 3, 8 * n * n, 'cuda', size=(n,))


def shapes():
    """The rows of bench/shapes.h: name, extent, input and output channels, kernel, stride, whether it is depthwise."""
    with open(SHAPES) as f:
        rows = re.findall(r'\{"([CD]\d+)", (\d+), (\d+), (\d+), (\d+), (\d+), ([01])\}', f.read())
    return [(name, *map(int, rest[:-1]), rest[-1] == '1') for name, *rest in rows]


def conv(name, extent, inputs, outputs, kernel, stride, depthwise, batch):
    """relu(bias + convolution), as bench/shapes.h pads it: an odd row or column of padding is the last."""
    o = (extent + stride - 1) // stride
    around = max(0, (o - 1) * stride + kernel - extent)
    before, padded = around // 2, extent + around
    inside = f'y >= {before} && y < {before + extent} && x >= {before} && x < {before + extent}'
    depth = 1 if depthwise else inputs
    full = f'{name}-b{batch}'
    weights = f'{outputs}, {kernel}, {kernel}' if depthwise else f'{outputs}, {inputs}, {kernel}, {kernel}'
    at = '{0}, y*{1} + i, x*{1} + j' if stride > 1 else '{0}, y + i, x + j'
    x = 'P' if around else 'X'
    lines = [f'def {identifier(full)}(X: f32[{batch}, {inputs}, {extent}, {extent}], W: f32[{weights}], b: f32[{outputs}]) {{']
    if around:
        lines.append(f'  P[n, c, y: {padded}, x: {padded}] = select({inside}, X[n, c, y - {before}, x - {before}], 0.0)')
    if depthwise:
        lines.append(f'  S[n: {batch}, f: {outputs}, y: {o}, x: {o}] = sum[i: {kernel}, j: {kernel}]('
                     f'{x}[n, {at.format("f", stride)}] * W[f, i, j])')
    elif kernel == 1:
        one = f'y*{stride}, x*{stride}' if stride > 1 else 'y, x'
        lines[0] = lines[0].replace(f'W: f32[{weights}]', f'W: f32[{outputs}, {inputs}]')
        lines.append(f'  S[n: {batch}, f: {outputs}, y: {o}, x: {o}] = sum[c]({x}[n, c, {one}] * W[f, c])')
    else:
        lines.append(f'  S[n: {batch}, f: {outputs}, y: {o}, x: {o}] = sum[c, i: {kernel}, j: {kernel}]('
                     f'{x}[n, {at.format("c", stride)}] * W[f, c, i, j])')
    lines += ['  Y[n, f, y, x] = max(S[n, f, y, x] + b[f], 0.0)', '  return Y', '}', '']
    size = batch * (inputs * extent * extent + outputs * o * o) + outputs * (depth * kernel * kernel + 1)
    return Kernel(full, 'depthwise' if depthwise else 'conv', '\n'.join(lines), 2 * batch * o * o * kernel * kernel * depth * outputs,
                  4 * size, size=(batch, extent, inputs, outputs, kernel, stride, depthwise, before, around - before))


def bandwidth(rows):
    n = rows
    yield Kernel(f'softmax-{n}', 'bandwidth', f'def softmax_{n}(A: f32[{n}, {n}]) {{\n  M[y] = max[k](A[y, k])\n'
                 '  E[y, x] = exp(A[y, x] - M[y])\n  S[y] = sum[k](E[y, k])\n  P[y, x] = E[y, x] / S[y]\n  return P\n}\n', 0, 8 * n * n,
                 size=(n,))
    yield Kernel(f'layer_norm-{n}', 'bandwidth', f'def layer_norm_{n}(A: f32[{n}, {n}], g: f32[{n}], b: f32[{n}]) {{\n'
                 f'  M[y] = sum[k](A[y, k])\n  D[y, x] = A[y, x] - M[y] / {n}.0\n  V[y] = sum[k](D[y, k] * D[y, k])\n'
                 f'  N[y, x] = D[y, x] / sqrt(V[y] / {n}.0 + 0.00001) * g[x] + b[x]\n  return N\n}}\n', 0, 8 * n * n + 8 * n, size=(n,))
    yield Kernel(f'transpose-{n}', 'bandwidth', f'def transpose_{n}(X: f32[{n}, {n}]) {{\n  Y[i, j: {n}] = X[j, i]\n  return Y\n}}\n', 0,
                 8 * n * n, size=(n,))


def kernels(small=False):
    rows = [sgemm(n) for n in EDGES[small]] + [hgemm(n) for n in HALF_EDGES[small]]
    rows += [conv(*shape, batch) for batch in BATCHES[small] for shape in shapes()]
    return rows + list(bandwidth(ROWS[small]))


def main(args):
    small = '--small' in args
    only = args[args.index('--only') + 1].split() if '--only' in args else []
    if not args or args[0] in ('-h', '--help'):
        sys.exit(__doc__)
    known = [k for k in kernels(small) if not only or k.name in only]
    missing = set(only) - {k.name for k in known}
    if missing:
        sys.exit(f'kernels: there is no {", ".join(sorted(missing))}; see --list{" --small" if small else ""}')
    for k in known:
        if args[0] != '--list':
            os.makedirs(args[0], exist_ok=True)
            with open(os.path.join(args[0], k.name + '.te'), 'w') as f:
                f.write(k.text)
        print(k.name, k.on, k.flops)


if __name__ == '__main__':
    main(sys.argv[1:])
