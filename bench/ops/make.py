#!/usr/bin/env python3
"""Writes models of one operator each, with inputs and the results of ONNX Runtime.

    make.py FOLDER [NAME]
    make.py FOLDER --list                   # names, and the least ratio to the fastest peer

FOLDER/NAME/model.onnx and test_data_set_0 have the layout of the ONNX backend tests, for `tec check`; FOLDER/NAME/N.bin are the bytes of
input N, for the workers. Without NAME all are written. Numbers are seeded, in -1 .. 1: no denormals.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
ELEMENT = {'float32': TensorProto.FLOAT, 'int64': TensorProto.INT64, 'bool': TensorProto.BOOL}


class Case:
    """One node. Arrays are inputs of the model; those given as `consts` are weights or parameters, which the model holds."""

    def __init__(self, op, inputs, consts=(), outputs=1, types=('float32',), **attributes):
        self.op, self.inputs, self.consts, self.outputs, self.types, self.attributes = op, inputs, consts, outputs, types, attributes


def random(*shape):
    return np.random.default_rng(sum(shape) + len(shape)).uniform(-1, 1, shape).astype(np.float32)


def below(limit, *shape):
    return np.random.default_rng(limit).integers(0, limit, shape)


def ints(*values):
    return np.array(values, np.int64)


def constants(**named):
    return list(named.items())


def layer_normalization(*shape):
    n = shape[-1]
    return Case('LayerNormalization', [random(*shape)], constants(scale=random(n), bias=random(n)), axis=-1)


def conv(shape, weight, group=1, op='Conv', **attributes):
    return Case(op, [random(*shape)], constants(w=random(*weight)), group=group, **attributes)


def resize(shape, mode, scale):
    factors = np.array([1, 1, scale, scale], np.float32)
    return Case('Resize', [random(*shape)], constants(roi=np.zeros(0, np.float32), scales=factors), mode=mode,
                coordinate_transformation_mode='half_pixel' if mode != 'nearest' else 'asymmetric', nearest_mode='floor')


def recurrent(op, gates, steps, batch, hidden):
    w, r, b = random(1, gates * hidden, hidden), random(1, gates * hidden, hidden), random(1, 2 * gates * hidden)
    scale = np.float32(hidden ** -0.5)
    return Case(op, [random(steps, batch, hidden)], constants(w=w * scale, r=r * scale, b=b * scale), hidden_size=hidden)


def reduce(op, shape, axis=-1):
    if op == 'ReduceSum':
        return Case(op, [random(*shape)], constants(axes=ints(axis)), keepdims=1)
    return Case(op, [random(*shape)], axes=[axis], keepdims=1)


def product(a, b, weight):
    return Case('MatMul', [random(*a)], constants(b=random(*b))) if weight else Case('MatMul', [random(*a), random(*b)])


def pad(shape, by, mode):
    amount = [0, 0, by, by, 0, 0, by, by]
    return Case('Pad', [random(*shape)], constants(pads=ints(*amount)), mode=mode)


def sliced(shape, starts, ends, steps):
    axes = range(len(shape))
    return Case('Slice', [random(*shape)], constants(starts=ints(*starts), ends=ints(*ends), axes=ints(*axes), steps=ints(*steps)))


def split(shape, axis, parts):
    return Case('Split', [random(*shape)], constants(split=ints(*[shape[axis] // parts] * parts)), parts, ['float32'] * parts, axis=axis)


def scatter(op, data, index, updates, **attributes):
    return Case(op, [random(*data), index, random(*updates)], **attributes)


def distinct_columns(rows, columns, n):
    """For each row n different columns: no two updates meet, so the order of updates does not matter."""
    g = np.random.default_rng(rows + n)
    return np.stack([g.permutation(columns)[:n] for _ in range(rows)])


def distinct_rows(rows, n):
    return np.random.default_rng(rows).permutation(rows)[:n].reshape(n, 1)


# name: (the least ratio to the fastest peer, a function for each size). Sizes are those of ordinary networks.
CASES = {
    # bound by memory: reductions of rows, copies in another order, elementwise
    'reduce_max': (0.9, [lambda s=s: reduce('ReduceMax', s) for s in [(512, 1000), (8, 197, 768), (4096, 128)]]),
    'reduce_sum': (0.9, [lambda s=s: reduce('ReduceSum', s) for s in [(512, 1000), (8, 197, 768), (4096, 128)]]),
    'reduce_mean': (0.9, [lambda s=s: reduce('ReduceMean', s) for s in [(512, 1000), (8, 197, 768), (4096, 128)]]),
    'reduce_l2': (0.9, [lambda s=s: reduce('ReduceL2', s) for s in [(512, 1000), (8, 197, 768), (4096, 128)]]),
    'reduce_max_rows': (0.9, [lambda s=s: reduce('ReduceMax', s, 0) for s in [(512, 1000), (64, 8192), (4096, 128)]]),
    'global_max_pool': (0.9, [lambda s=s: Case('GlobalMaxPool', [random(*s)]) for s in [(8, 512, 7, 7), (1, 64, 112, 112), (8, 256, 28, 28)]]),
    'global_average_pool': (0.9, [lambda s=s: Case('GlobalAveragePool', [random(*s)]) for s in [(8, 512, 7, 7), (1, 64, 112, 112), (8, 256, 28, 28)]]),
    'square': (0.9, [lambda s=s: Case('Pow', [random(*s)], constants(two=np.array(2, np.float32))) for s in [(512, 1000), (8, 197, 768), (64, 64, 56, 56)]]),
    'transpose': (0.9, [lambda s=s, p=p: Case('Transpose', [random(*s)], perm=p) for s, p in
                        [((1, 128, 12, 64), [0, 2, 1, 3]), ((8, 56, 56, 64), [0, 3, 1, 2]), ((1024, 1000), [1, 0])]]),
    'softmax': (0.9, [lambda s=s: Case('Softmax', [random(*s)], axis=-1) for s in [(12, 128, 128), (512, 1000), (8, 12, 197, 197)]]),
    'concat': (0.9, [lambda s=s, a=a: Case('Concat', [random(*s), random(*s) * 2], axis=a) for s, a in
                     [((8, 64, 56, 56), 1), ((512, 500), 1), ((8, 197, 384), 2)]]),
    'concat_many': (0.9, [lambda s=s, n=n, a=a: Case('Concat', [random(*s) * (k + 1) for k in range(n)], axis=a) for s, n, a in
                          [((512, 250), 4, 1), ((512, 16), 64, 1), ((4, 1, 16, 256), 64, 1), ((1, 16, 256), 64, 0), ((1000, 4), 16, 1),
                           ((8, 32, 28, 28), 6, 1)]]),
    'conv_grouped': (0.9, [lambda s=s, w=w, g=g: conv(s, w, g) for s, w, g in
                           [((1, 240, 28, 28), (240, 80, 1, 1), 3), ((1, 480, 14, 14), (480, 160, 1, 1), 3), ((8, 240, 28, 28), (240, 80, 1, 1), 3)]]),
    'product_narrow': (0.9, [lambda a=a, b=b: product(a, b, True) for a, b in
                             [((512, 1024), (1024, 1)), ((512, 1024), (1024, 10)), ((4096, 768), (768, 2))]]),
    'product_vector': (0.9, [lambda a=a, b=b: product(a, b, False) for a, b in
                             [((1, 1024), (1024, 1024)), ((1, 768), (768, 3072)), ((1, 4096), (4096, 1000))]]),
    # what every export contains
    'layer_normalization': (0.8, [lambda s=s: layer_normalization(*s) for s in [(128, 768), (512, 1024), (8, 197, 768)]]),
    'lrn': (0.8, [lambda s=s: Case('LRN', [random(*s)], size=5, alpha=1e-4, beta=0.75, bias=1.0) for s in [(1, 96, 55, 55), (1, 256, 27, 27), (4, 64, 56, 56)]]),
    'conv_transpose': (0.8, [lambda s=s, w=w, k=k: conv(s, w, 1, 'ConvTranspose', **k) for s, w, k in
                             [((1, 64, 32, 32), (64, 64, 4, 4), {'strides': [2, 2], 'pads': [1, 1, 1, 1]}),
                              ((1, 128, 16, 16), (128, 64, 3, 3), {'strides': [2, 2], 'pads': [1, 1, 1, 1], 'output_padding': [1, 1]}),
                              ((1, 256, 28, 28), (256, 128, 2, 2), {'strides': [2, 2]})]]),
    'resize': (0.8, [lambda s=s, m=m, f=f: resize(s, m, f) for s, m, f in
                     [((1, 64, 56, 56), 'nearest', 2), ((1, 64, 56, 56), 'linear', 2), ((1, 3, 224, 224), 'linear', 0.5)]]),
    'gather': (0.8, [lambda d=d, i=i: Case('Gather', [random(*d), below(d[0], *i)]) for d, i in
                     [((30522, 768), (128,)), ((30522, 768), (8, 128)), ((1000, 64), (4096,))]]),
    'gather_elements': (0.8, [lambda d=d, i=i: Case('GatherElements', [random(*d), below(d[1], *i)], axis=1) for d, i in
                              [((512, 1000), (512, 1000)), ((64, 8192), (64, 1000)), ((4096, 128), (4096, 32))]]),
    'gather_nd': (0.8, [lambda d=d, i=i: Case('GatherND', [random(*d), below(min(d[:i[1]]), *i)]) for d, i in
                        [((512, 1000), (10000, 2)), ((64, 128, 256), (1000, 2)), ((1000, 768), (512, 1))]]),
    'scatter_elements': (0.8, [lambda d=d, n=n: scatter('ScatterElements', d, distinct_columns(*d, n), (d[0], n), axis=1) for d, n in
                               [((512, 1000), 100), ((64, 8192), 1000), ((4096, 128), 32)]]),
    'scatter_nd': (0.8, [lambda d=d, n=n: scatter('ScatterND', d, distinct_rows(d[0], n), (n,) + d[1:]) for d, n in
                         [((512, 1000), 100), ((1000, 768), 512), ((4096, 128), 1000)]]),
    'range': (0.8, [lambda n=n: Case('Range', [np.array(0, np.int64), np.array(n, np.int64)], constants(one=np.array(1, np.int64)), types=['int64'])
                    for n in [10000, 100000, 1000000]]),
    'one_hot': (0.8, [lambda n=n, d=d: Case('OneHot', [below(d, n)], constants(depth=np.array(d, np.int64), values=np.array([0, 1], np.float32)))
                      for n, d in [(512, 1000), (128, 30522), (4096, 128)]]),
    'top_k': (0.8, [lambda s=s, k=k: Case('TopK', [random(*s)], constants(k=ints(k)), 2, ['float32', 'int64'], axis=-1) for s, k in
                    [((512, 1000), 5), ((8, 30522), 10), ((64, 4096), 100)]]),
    'cum_sum': (0.8, [lambda s=s, a=a: Case('CumSum', [random(*s)], constants(axis=np.array(a, np.int64))) for s, a in
                      [((512, 1000), 1), ((512, 1000), 0), ((8, 197, 768), 1)]]),
    'trilu': (0.8, [lambda s=s: Case('Trilu', [random(*s)], upper=0) for s in [(512, 512), (12, 128, 128), (1, 2048, 2048)]]),
    'einsum': (0.8, [lambda e=e, s=s, t=t: Case('Einsum', [random(*s), random(*t)], equation=e) for e, s, t in
                     [('bhid,bhjd->bhij', (1, 12, 128, 64), (1, 12, 128, 64)), ('ij,jk->ik', (256, 256), (256, 256)),
                      ('bij,bjk->bik', (8, 128, 64), (8, 64, 128))]]),
    'constant_of_shape': (0.8, [lambda s=s: Case('ConstantOfShape', [ints(*s)]) for s in [(512, 1000), (8, 197, 768), (4096, 128)]]),
    'expand': (0.8, [lambda s=s, t=t: Case('Expand', [random(*s)], constants(shape=ints(*t))) for s, t in
                     [((1, 1000), (512, 1000)), ((512, 1), (512, 1000)), ((8, 1, 768), (8, 197, 768))]]),
    'slice': (0.8, [lambda *_, a=a: sliced(*a) for a in
                    [((8, 197, 768), (0, 0, 0), (8, 128, 768), (1, 1, 1)), ((512, 1000), (0, 0), (512, 1000), (1, 2)),
                     ((8, 64, 56, 56), (0, 0, 4, 4), (8, 64, 52, 52), (1, 1, 1, 1))]]),
    'pad': (0.8, [lambda s=s, b=b, m=m: pad(s, b, m) for s, b, m in
                  [((8, 64, 56, 56), 1, 'constant'), ((1, 64, 56, 56), 3, 'reflect'), ((8, 32, 56, 56), 2, 'edge')]]),
    'split': (0.8, [lambda s=s, a=a, n=n: split(s, a, n) for s, a, n in [((8, 197, 2304), 2, 3), ((8, 128, 56, 56), 1, 2), ((512, 1000), 1, 4)]]),
    'lstm': (1.0, [lambda s=s, b=b, h=h: recurrent('LSTM', 4, s, b, h) for s, b, h in [(16, 1, 128), (64, 16, 256), (128, 1, 1024), (32, 16, 1024)]]),
    'gru': (1.0, [lambda s=s, b=b, h=h: recurrent('GRU', 3, s, b, h) for s, b, h in [(16, 1, 128), (64, 16, 256), (128, 1, 1024), (32, 16, 1024)]]),
    'rnn': (1.0, [lambda s=s, b=b, h=h: recurrent('RNN', 1, s, b, h) for s, b, h in [(16, 1, 128), (64, 16, 256), (128, 1, 1024)]]),
}


def names():
    for kind, (least, sizes) in CASES.items():
        for i in range(len(sizes)):
            yield f'{kind}.{i + 1}', least, sizes[i]


def value(name, array):
    return helper.make_tensor_value_info(name, ELEMENT[str(array.dtype)], array.shape)


def model(case):
    inputs = [(f'x{i}', np.ascontiguousarray(a)) for i, a in enumerate(case.inputs)]
    outputs = [f'y{i}' for i in range(case.outputs)]
    node = helper.make_node(case.op, [n for n, _ in inputs] + [n for n, _ in case.consts], outputs, **case.attributes)
    graph = helper.make_graph([node], case.op, [value(*i) for i in inputs],
                              [helper.make_tensor_value_info(o, ELEMENT[t], None) for o, t in zip(outputs, case.types)],
                              [numpy_helper.from_array(np.ascontiguousarray(a), n) for n, a in case.consts])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', OPSET)], ir_version=8), dict(inputs)


def write(folder, case):
    made, inputs = model(case)
    data = os.path.join(folder, 'test_data_set_0')
    os.makedirs(data, exist_ok=True)
    onnx.save(made, os.path.join(folder, 'model.onnx'))
    for i, (name, array) in enumerate(inputs.items()):
        array.tofile(os.path.join(folder, f'{i}.bin'))
        onnx.save_tensor(numpy_helper.from_array(array, name), os.path.join(data, f'input_{i}.pb'))
    session = onnxruntime.InferenceSession(os.path.join(folder, 'model.onnx'), providers=['CPUExecutionProvider'])
    for i, array in enumerate(session.run(None, inputs)):
        onnx.save_tensor(numpy_helper.from_array(array, f'y{i}'), os.path.join(data, f'output_{i}.pb'))


def main():
    folder, chosen = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    for name, least, make in names():
        if chosen == '--list':
            print(name, least)
        elif chosen in (None, name):
            write(os.path.join(folder, name), make())


if __name__ == '__main__':
    main()
