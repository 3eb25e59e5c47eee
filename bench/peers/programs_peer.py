#!/usr/bin/env python3
"""A worker of bench/run: a program of bench/programs by another system, on the same inputs and weights.

    programs_peer.py PEER WORKLOAD THREADS FOLDER

Peers: torch-eager, torch-compiled, onnxruntime, dynet. Workloads: tree_lstm, lstm1, lstm2, bert. FOLDER is what
bench/programs/make.py has written. Says "ready 0", then answers "sample SECONDS" with the medians of all inputs, added
up, in milliseconds, and "write FILE" by writing the results of a pass as floats.
"""
import json
import os
import statistics
import sys
import time

import numpy as np

PEER, WORKLOAD, THREADS, FOLDER = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
H = 512
BERT_LENGTHS = [12, 19, 25, 32]                # of bench/bench_program.c too


def read_safetensors(name):
    with open(os.path.join(FOLDER, name), 'rb') as f:
        data = f.read()
    n = int.from_bytes(data[:8], 'little')
    out = {}
    for key, t in json.loads(data[8:8 + n]).items():
        lo, hi = t['data_offsets']
        out[key] = np.frombuffer(data[8 + n + lo:8 + n + hi], np.float32).reshape(t['shape']).copy()
    return out


def read_json(name):
    with open(os.path.join(FOLDER, name)) as f:
        return json.load(f)


def words():
    return np.fromfile(os.path.join(FOLDER, 'words.f32'), np.float32).reshape(-1, 300)


# ---- Tree-LSTM ----

def tree_torch(compiled):
    import torch
    w = {k: torch.from_numpy(v) for k, v in read_safetensors('tree_lstm.safetensors').items()}
    x = torch.from_numpy(words())

    def leaf(row):
        i, o, u = torch.chunk(torch.addmm(w['b'], row, w['W']), 3, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def node(hl, cl, hr, cr):
        i, o, u = torch.chunk(torch.addmm(w['b'], hl + hr, w['U']), 3, 1)
        f = torch.sigmoid(torch.addmm(w['d'], torch.cat([hl, hr]), w['V']))
        c = torch.sigmoid(i) * torch.tanh(u) + f[0:1] * cl + f[1:2] * cr
        return torch.sigmoid(o) * torch.tanh(c), c

    if compiled:
        leaf, node = torch.compile(leaf), torch.compile(node)

    def run(t):
        return leaf(x[t:t + 1]) if isinstance(t, int) else node(*run(t[0]), *run(t[1]))
    return read_json('trees.json'), lambda t: run(t)[0].numpy()


def tree_dynet():
    import dynet as dy
    w, x = read_safetensors('tree_lstm.safetensors'), words()
    m = dy.ParameterCollection()
    p = {k: m.parameters_from_numpy(np.ascontiguousarray(v.T)) for k, v in w.items()}
    n = 150

    def gates(g):
        return dy.logistic(g[0:n]), dy.logistic(g[n:2 * n]), dy.tanh(g[2 * n:3 * n])

    def run(t):
        if isinstance(t, int):
            i, o, u = gates(dy.affine_transform([p['b'], p['W'], dy.inputTensor(x[t])]))
            c = dy.cmult(i, u)
            return dy.cmult(o, dy.tanh(c)), c
        l, r = run(t[0]), run(t[1])
        i, o, u = gates(dy.affine_transform([p['b'], p['U'], l[0] + r[0]]))
        f = [dy.logistic(dy.affine_transform([p['d'], p['V'], k[0]])) for k in (l, r)]
        c = dy.cmult(i, u) + dy.cmult(f[0], l[1]) + dy.cmult(f[1], r[1])
        return dy.cmult(o, dy.tanh(c)), c

    def one(t, keep=m):                        # the parameters die with their collection
        dy.renew_cg()
        return run(t)[0].npvalue()
    return read_json('trees.json'), one


# ---- LSTM: gates in the order input, forget, cell, output ----

def layers():
    return 2 if WORKLOAD == 'lstm2' else 1


def sentences():
    x = words()
    return [x[:n] for n in read_json('lengths.json')]


def lstm_torch(compiled):
    import torch
    w = read_safetensors(f'{WORKLOAD}.safetensors')
    net = torch.nn.LSTM(300, H, layers())
    with torch.no_grad():
        for k in range(layers()):
            getattr(net, f'weight_ih_l{k}').copy_(torch.from_numpy(w[f'W{k}'].T))
            getattr(net, f'weight_hh_l{k}').copy_(torch.from_numpy(w[f'U{k}'].T))
            getattr(net, f'bias_ih_l{k}').copy_(torch.from_numpy(w[f'b{k}']))
            getattr(net, f'bias_hh_l{k}').zero_()
    run = torch.compile(net, dynamic=True) if compiled else net
    return [torch.from_numpy(s).unsqueeze(1) for s in sentences()], lambda x: run(x)[1][0][-1].numpy()


def lstm_onnxruntime():
    import onnx
    import onnxruntime
    from onnx import helper as oh
    w, inits, nodes = read_safetensors(f'{WORKLOAD}.safetensors'), [], []
    order = [0, 3, 1, 2]                        # ONNX: input, output, forget, cell
    x = 'x'
    for k in range(layers()):
        for name, t in (('W', w[f'W{k}']), ('R', w[f'U{k}'])):
            gates = np.split(t.T, 4)
            inits.append(onnx.numpy_helper.from_array(np.concatenate([gates[g] for g in order])[None], f'{name}{k}'))
        gates = np.split(w[f'b{k}'], 4)
        inits.append(onnx.numpy_helper.from_array(
            np.concatenate([gates[g] for g in order] + [np.zeros(4 * H, np.float32)])[None], f'B{k}'))
        nodes.append(oh.make_node('LSTM', [x, f'W{k}', f'R{k}', f'B{k}'], [f'y{k}', f'h{k}'], hidden_size=H))
        inits.append(onnx.numpy_helper.from_array(np.array([1], np.int64), f'axis{k}'))
        nodes.append(oh.make_node('Squeeze', [f'y{k}', f'axis{k}'], [f's{k}']))
        x = f's{k}'
    graph = oh.make_graph(nodes, 'lstm', [oh.make_tensor_value_info('x', 1, ['n', 1, 300])],
                          [oh.make_tensor_value_info(f'h{layers() - 1}', 1, [1, 1, H])], inits)
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid('', 17)], ir_version=8)
    session = onnx_session(onnxruntime, model.SerializeToString())
    return [s[:, None] for s in sentences()], lambda s: session.run(None, {'x': s})[0]


def onnx_session(onnxruntime, model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])


def lstm_dynet():
    import dynet as dy
    w = read_safetensors(f'{WORKLOAD}.safetensors')
    m = dy.ParameterCollection()
    p = {k: m.parameters_from_numpy(np.ascontiguousarray(v.T)) for k, v in w.items()}

    def one(rows, keep=m):
        dy.renew_cg()
        xs = [dy.inputTensor(r) for r in rows]
        for k in range(layers()):
            h, c, out = dy.zeros(H), dy.zeros(H), []
            for x in xs:
                g = dy.affine_transform([p[f'b{k}'], p[f'W{k}'], x, p[f'U{k}'], h])
                i, f, u, o = (dy.logistic(g[0:H]), dy.logistic(g[H:2 * H]), dy.tanh(g[2 * H:3 * H]), dy.logistic(g[3 * H:4 * H]))
                c = dy.cmult(f, c) + dy.cmult(i, u)
                h = dy.cmult(o, dy.tanh(c))
                out.append(h)
            xs = out
        return h.npvalue()
    return sentences(), one


# ---- BERT ----

def bert_inputs():
    x = np.fromfile(os.path.join(FOLDER, 'bert.f32'), np.float32).reshape(-1, 768)
    return [x[None, :n].copy() for n in BERT_LENGTHS]


def bert_torch(compiled):
    import onnx
    import torch
    w = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy())
         for t in onnx.load(os.path.join(FOLDER, 'bert.onnx')).graph.initializer}

    def linear(x, name):
        return torch.matmul(x, w[f'{name}.w']) + w[f'{name}.b']

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (768,), w[f'{name}.g'], w[f'{name}.b'], 1e-12)

    def heads(x):
        return x.reshape(1, -1, 12, 64).transpose(1, 2)

    def net(x):
        for k in range(12):
            q, key, v = (heads(linear(x, f'l{k}.{n}')) for n in 'qkv')
            a = torch.nn.functional.scaled_dot_product_attention(q, key, v)
            x = norm(x + linear(a.transpose(1, 2).reshape(1, -1, 768), f'l{k}.o'), f'l{k}.n0')
            x = norm(x + linear(torch.nn.functional.gelu(linear(x, f'l{k}.up')), f'l{k}.down'), f'l{k}.n1')
        return x
    run = torch.compile(net, dynamic=True) if compiled else net
    return [torch.from_numpy(x) for x in bert_inputs()], lambda x: run(x).numpy()


def bert_onnxruntime():
    import onnxruntime
    session = onnx_session(onnxruntime, os.path.join(FOLDER, 'bert.onnx'))
    return bert_inputs(), lambda x: session.run(None, {'x': x})[0]


# ---- the worker ----

def make():
    kind = 'lstm' if WORKLOAD.startswith('lstm') else 'tree' if WORKLOAD == 'tree_lstm' else 'bert'
    if PEER.startswith('torch'):
        import torch
        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
        return globals()[f'{kind}_torch'](PEER == 'torch-compiled')
    if PEER == 'dynet':
        import dynet_config
        dynet_config.set(mem=1024, random_seed=1)
    return globals()[f'{kind}_{PEER}']()


def sample(run, inputs, seconds):
    """The median time of each input, added up."""
    times, rounds, end = [[] for _ in inputs], 0, time.perf_counter() + seconds
    while rounds < 3 or time.perf_counter() < end:
        for x, mine in zip(inputs, times):
            start = time.perf_counter()
            run(x)
            mine.append(time.perf_counter() - start)
        rounds += 1
    return sum(map(statistics.median, times)) * 1e3


def main():
    inputs, run = make()
    for x in inputs:
        run(x)
    print('ready 0', flush=True)
    for line in sys.stdin:
        word, value = line.split()
        if word == 'write':
            np.concatenate([np.asarray(run(x), np.float32).ravel() for x in inputs]).tofile(value)
            print('written', flush=True)
        else:
            print(f'{sample(run, inputs, float(value)):.6f}', flush=True)


if __name__ == '__main__':
    main()
