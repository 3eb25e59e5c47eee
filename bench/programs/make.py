#!/usr/bin/env python3
"""Weights and inputs of the programs of bench/programs, seeded, as files that `tec` and the peers read.

    make.py FOLDER          # tree_lstm.safetensors, lstm1.safetensors, lstm2.safetensors, trees.json, lengths.json, words.f32
    make.py FOLDER bert     # bert.onnx: the twelve layers of BERT-base on f32[1, n, 768]; needs Python's onnx

Trees have the shape of the Stanford treebank: sentence lengths 2 to 60 with mean 19, binary, split at a uniformly drawn
point. Sentences have lengths like those of MRPC: mean 25. A leaf is the number of its word in the sentence.
"""
import json
import os
import random
import struct
import sys

import numpy as np


def write_safetensors(path, tensors):
    header, data, at = {}, [], 0
    for name, t in tensors.items():
        t = np.ascontiguousarray(t, np.float32)
        header[name] = {'dtype': 'F32', 'shape': list(t.shape), 'data_offsets': [at, at + t.nbytes]}
        data.append(t.tobytes())
        at += t.nbytes
    text = json.dumps(header).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data))


def weights(seed, **shapes):
    """Small ones, so that gates do not saturate."""
    rng = np.random.RandomState(seed)
    return {name: (rng.randn(*shape) / np.sqrt(max(shape))).astype(np.float32) for name, shape in shapes.items()}


def tree_lstm():
    return weights(1, W=(300, 450), U=(150, 450), V=(150, 150), b=(450,), d=(150,))


def lstm(layers):
    shapes = {}
    for k in range(layers):
        shapes.update({f'W{k}': (512 if k else 300, 2048), f'U{k}': (512, 2048), f'b{k}': (2048,)})
    return weights(2, **shapes)


def words(n, size=300):
    return np.random.RandomState(3).randn(n, size).astype(np.float32) * 0.1


def make_trees(n, seed=7):
    """n pairs of a length and a binary tree as nested lists."""
    rng = random.Random(seed)

    def grow(lo, hi):
        if hi - lo == 1:
            return lo
        cut = rng.randint(lo + 1, hi - 1)
        return [grow(lo, cut), grow(cut, hi)]
    out = []
    for _ in range(n):
        length = min(60, max(2, int(round(rng.gammavariate(4.0, 19.0 / 4.0)))))
        out.append((length, grow(0, length)))
    return out


def make_lengths(n, seed=8):
    rng = random.Random(seed)
    return [min(60, max(5, int(round(rng.gauss(25, 6))))) for _ in range(n)]


def bert(folder, layers=12, size=768, heads=12):
    import onnx
    from onnx import helper as oh
    rng, nodes, inits = np.random.RandomState(5), [], []

    def constant(name, value):
        inits.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(op, operands, name, **attributes):
        nodes.append(oh.make_node(op, operands, [name], name=name, **attributes))
        return name

    def linear(x, name, rows, columns):
        w = constant(f'{name}.w', (rng.randn(rows, columns) * 0.02).astype(np.float32))
        b = constant(f'{name}.b', (rng.randn(columns) * 0.02).astype(np.float32))
        return add('Add', [add('MatMul', [x, w], f'{name}.product'), b], name)

    def norm(x, name):
        g, b = constant(f'{name}.g', np.ones(size, np.float32)), constant(f'{name}.b', np.zeros(size, np.float32))
        return add('LayerNormalization', [x, g, b], name, epsilon=1e-12)

    def split(x, name, order):
        return add('Transpose', [add('Reshape', [x, 'split'], f'{name}.rows')], f'{name}.heads', perm=order)

    def gelu(x, name):
        erf = add('Erf', [add('Div', [x, 'root2'], f'{name}.scaled')], f'{name}.erf')
        return add('Mul', [add('Mul', [x, add('Add', [erf, 'one'], f'{name}.plus')], f'{name}.twice'), 'half'], name)

    constant('split', np.array([0, 0, heads, size // heads], np.int64))
    constant('merge', np.array([0, 0, size], np.int64))
    for name, value in (('root2', np.sqrt(2)), ('one', 1), ('half', 0.5), ('scale', np.sqrt(heads / size))):
        constant(name, np.float32(value))
    x = 'x'
    for k in range(layers):
        q = split(linear(x, f'l{k}.q', size, size), f'l{k}.q', [0, 2, 1, 3])
        key = split(linear(x, f'l{k}.k', size, size), f'l{k}.k', [0, 2, 3, 1])
        v = split(linear(x, f'l{k}.v', size, size), f'l{k}.v', [0, 2, 1, 3])
        scores = add('Mul', [add('MatMul', [q, key], f'l{k}.scores'), 'scale'], f'l{k}.scaled')
        mixed = add('MatMul', [add('Softmax', [scores], f'l{k}.softmax', axis=-1), v], f'l{k}.mixed')
        merged = add('Reshape', [add('Transpose', [mixed], f'l{k}.back', perm=[0, 2, 1, 3]), 'merge'], f'l{k}.merged')
        x = norm(add('Add', [x, linear(merged, f'l{k}.o', size, size)], f'l{k}.r0'), f'l{k}.n0')
        inner = gelu(linear(x, f'l{k}.up', size, 4 * size), f'l{k}.gelu')
        x = norm(add('Add', [x, linear(inner, f'l{k}.down', 4 * size, size)], f'l{k}.r1'), f'l{k}.n1')
    graph = oh.make_graph(nodes, 'bert', [oh.make_tensor_value_info('x', 1, [1, 'n', size])],
                          [oh.make_tensor_value_info(x, 1, [1, 'n', size])], inits)
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid('', 17)], ir_version=8), os.path.join(folder, 'bert.onnx'))
    rng.randn(128, size).astype(np.float32).tofile(os.path.join(folder, 'bert.f32'))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    if sys.argv[2:] == ['bert']:
        bert(folder)
        return
    write_safetensors(os.path.join(folder, 'tree_lstm.safetensors'), tree_lstm())
    for layers in (1, 2):
        write_safetensors(os.path.join(folder, f'lstm{layers}.safetensors'), lstm(layers))
    words(64).tofile(os.path.join(folder, 'words.f32'))
    with open(os.path.join(folder, 'trees.json'), 'w') as f:
        json.dump([t for _, t in make_trees(64)], f)
    with open(os.path.join(folder, 'lengths.json'), 'w') as f:
        json.dump(make_lengths(64), f)


if __name__ == '__main__':
    main()
