#!/usr/bin/env python3
"""Three decoders as an exporter writes them: ONNX files with small seeded weights, inputs and the results of a reference in NumPy.

    decoders.py FOLDER          # NAME.onnx, NAME.N.INPUT.npy, NAME.N.OUTPUT.npy for five lengths N

  rnn      an RNN language model: Scan over the words of a sentence; the scores of every next word
  greedy   greedy decoding: Loop whose cache of keys and values grows by a row a step, until the end mark or a limit
  beam     beam search: Loop that keeps the best four sentences, which grow by a word a step

The reference computes step by step with plain NumPy, from the same weights and nothing of the graphs.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

WORDS, SIZE, BEAMS = 23, 16, 4
LENGTHS = [1, 2, 5, 11, 24]
RNG = np.random.RandomState(11)


def weights(**shapes):
    return {name: (RNG.randn(*shape) * 0.5).astype(np.float32) for name, shape in shapes.items()}


class Graph:
    """Nodes and constants of a graph, or of a body that reads those around it."""

    def __init__(self):
        self.nodes, self.inits = [], []

    def const(self, name, value):
        self.inits.append(nh.from_array(np.asarray(value), name))
        return name

    def op(self, op, operands, outputs, **attributes):
        names = outputs if isinstance(outputs, list) else [outputs]
        self.nodes.append(oh.make_node(op, operands, names, name=names[0], **attributes))
        return outputs

    def proto(self, name, inputs, outputs):
        def info(tensor):
            return oh.make_tensor_value_info(*tensor)
        return oh.make_graph(self.nodes, name, [info(t) for t in inputs], [info(t) for t in outputs], self.inits)


def save(folder, name, graph):
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(folder, f'{name}.onnx'))


def save_case(folder, name, n, inputs, outputs):
    for key, value in {**inputs, **outputs}.items():
        np.save(os.path.join(folder, f'{name}.{n}.{key}.npy'), value)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- rnn ----

def rnn(folder):
    w = weights(E=(WORDS, SIZE), W=(SIZE, SIZE), U=(SIZE, SIZE), O=(SIZE, WORDS))
    body = Graph()
    row = body.op('Gather', ['E', 'word'], 'row')                # f32[SIZE]
    x = body.op('MatMul', [body.op('Unsqueeze', [row, 'zero'], 'column'), 'W'], 'x')
    h = body.op('Tanh', [body.op('Add', [x, body.op('MatMul', ['h', 'U'], 'hu')], 'sum')], 'next')
    body.op('Squeeze', [body.op('MatMul', [h, 'O'], 'row_scores'), 'zero'], 'score')
    inner = body.proto('step', [('h', T.FLOAT, [1, SIZE]), ('word', T.INT64, [])],
                       [('next', T.FLOAT, [1, SIZE]), ('score', T.FLOAT, [WORDS])])
    g = Graph()
    for name, value in w.items():
        g.const(name, value)
    g.const('zero', np.array([0], np.int64))
    g.const('start', np.zeros((1, SIZE), np.float32))
    g.op('Scan', ['start', 'words'], ['last', 'scores'], body=inner, num_scan_inputs=1)
    save(folder, 'rnn', g.proto('rnn', [('words', T.INT64, ['n'])],
                                [('scores', T.FLOAT, ['n', WORDS]), ('last', T.FLOAT, [1, SIZE])]))
    for n in LENGTHS:
        words, h, scores = RNG.randint(0, WORDS, n), np.zeros((1, SIZE), np.float32), []
        for word in words:
            h = np.tanh(w['E'][word:word + 1] @ w['W'] + h @ w['U'])
            scores.append((h @ w['O'])[0])
        save_case(folder, 'rnn', n, {'words': words.astype(np.int64)}, {'scores': np.array(scores, np.float32), 'last': h})


# ---- greedy ----

def greedy(folder):
    w = weights(E=(WORDS, SIZE), Q=(SIZE, SIZE), K=(SIZE, SIZE), V=(SIZE, SIZE), O=(SIZE, WORDS))
    b = Graph()
    x = b.op('Gather', ['E', 'word'], 'x')                       # f32[1, SIZE]
    b.op('Concat', ['keys', b.op('MatMul', [x, 'K'], 'key')], 'more_keys', axis=0)
    b.op('Concat', ['values', b.op('MatMul', [x, 'V'], 'value')], 'more_values', axis=0)
    scores = b.op('MatMul', [b.op('MatMul', [x, 'Q'], 'query'), b.op('Transpose', ['more_keys'], 'columns', perm=[1, 0])], 'scores')
    mixed = b.op('MatMul', [b.op('Softmax', [scores], 'shares', axis=-1), 'more_values'], 'mixed')
    logits = b.op('MatMul', [b.op('Add', [mixed, x], 'residual'), 'O'], 'logits')
    b.op('ArgMax', [logits], 'next_word', axis=1, keepdims=0)    # i64[1]
    b.op('Not', [b.op('Squeeze', [b.op('Equal', ['next_word', 'end'], 'ends'), 'axis'], 'ended')], 'go')
    inner = b.proto('step', [('i', T.INT64, []), ('going', T.BOOL, []), ('word', T.INT64, [1]), ('keys', T.FLOAT, ['m', SIZE]),
                             ('values', T.FLOAT, ['m', SIZE])],
                    [('go', T.BOOL, []), ('next_word', T.INT64, [1]), ('more_keys', T.FLOAT, ['k', SIZE]),
                     ('more_values', T.FLOAT, ['k', SIZE]), ('next_word', T.INT64, [1])])
    g = Graph()
    for name, value in w.items():
        g.const(name, value)
    g.const('end', np.array([0], np.int64))
    g.const('axis', np.array([0], np.int64))
    g.const('yes', np.array(True))
    x = g.op('Gather', ['E', 'prompt'], 'prompt_rows')
    g.op('MatMul', [x, 'K'], 'prompt_keys')
    g.op('MatMul', [x, 'V'], 'prompt_values')
    g.op('Loop', ['limit', 'yes', 'first', 'prompt_keys', 'prompt_values'], ['last_word', 'all_keys', 'all_values', 'sentence'],
         body=inner)
    save(folder, 'greedy', g.proto('greedy', [('limit', T.INT64, []), ('first', T.INT64, [1]), ('prompt', T.INT64, ['p'])],
                                   [('sentence', T.INT64, ['t', 1]), ('all_keys', T.FLOAT, ['c', SIZE])]))
    for n in LENGTHS:
        prompt, word = RNG.randint(1, WORDS, n), np.array([1])
        keys, values, sentence = w['E'][prompt] @ w['K'], w['E'][prompt] @ w['V'], []
        first = word
        for _ in range(3 * n):
            x = w['E'][word]
            keys, values = np.concatenate([keys, x @ w['K']]), np.concatenate([values, x @ w['V']])
            word = ((softmax((x @ w['Q']) @ keys.T) @ values + x) @ w['O']).argmax(1)
            sentence.append(word)
            if word[0] == 0:
                break
        save_case(folder, 'greedy', n, {'limit': np.array(3 * n), 'first': first.astype(np.int64), 'prompt': prompt.astype(np.int64)},
                  {'sentence': np.array(sentence, np.int64), 'all_keys': keys})


# ---- beam ----

def beam(folder):
    w = weights(E=(WORDS, SIZE), W=(SIZE, SIZE), U=(SIZE, SIZE), O=(SIZE, WORDS))
    b = Graph()
    x = b.op('MatMul', [b.op('Gather', ['E', 'word'], 'rows'), 'W'], 'x')
    h = b.op('Tanh', [b.op('Add', [x, b.op('MatMul', ['h', 'U'], 'hu')], 'sum')], 'state')
    steps = b.op('LogSoftmax', [b.op('MatMul', [h, 'O'], 'logits')], 'steps', axis=-1)
    total = b.op('Add', [steps, b.op('Unsqueeze', ['score', 'one'], 'column')], 'total')
    b.op('TopK', [b.op('Reshape', [total, 'flat'], 'row'), 'beams'], ['best', 'which'], axis=0)
    b.op('Div', ['which', 'n_words'], 'parent')
    b.op('Mod', ['which', 'n_words'], 'next_word')
    b.op('Gather', ['state', 'parent'], 'next_h')
    b.op('Concat', [b.op('Gather', ['sentences', 'parent'], 'kept'), b.op('Unsqueeze', ['next_word', 'one'], 'grown')], 'longer', axis=1)
    b.op('Identity', ['going'], 'go')
    inner = b.proto('step', [('i', T.INT64, []), ('going', T.BOOL, []), ('word', T.INT64, [BEAMS]), ('score', T.FLOAT, [BEAMS]),
                             ('h', T.FLOAT, [BEAMS, SIZE]), ('sentences', T.INT64, [BEAMS, 'm'])],
                    [('go', T.BOOL, []), ('next_word', T.INT64, [BEAMS]), ('best', T.FLOAT, [BEAMS]), ('next_h', T.FLOAT, [BEAMS, SIZE]),
                     ('longer', T.INT64, [BEAMS, 'k'])])
    g = Graph()
    for name, value in w.items():
        g.const(name, value)
    for name, value in (('one', [1]), ('flat', [-1]), ('beams', [BEAMS])):
        g.const(name, np.array(value, np.int64))
    g.const('n_words', np.array(WORDS, np.int64))
    g.const('yes', np.array(True))
    g.const('start_h', np.zeros((BEAMS, SIZE), np.float32))
    start = np.array([0] + [-1e9] * (BEAMS - 1), np.float32)     # of equal sentences one alone counts
    g.const('start_score', start)
    g.op('Unsqueeze', ['first', 'one'], 'start_sentences')
    g.op('Loop', ['limit', 'yes', 'first', 'start_score', 'start_h', 'start_sentences'], ['last', 'scores', 'last_h', 'all'], body=inner)
    save(folder, 'beam', g.proto('beam', [('limit', T.INT64, []), ('first', T.INT64, [BEAMS])],
                                 [('all', T.INT64, [BEAMS, 't']), ('scores', T.FLOAT, [BEAMS])]))
    for n in LENGTHS:
        first = np.full(BEAMS, RNG.randint(0, WORDS))
        h, score, sentences, word = np.zeros((BEAMS, SIZE), np.float32), start, first[:, None], first
        for _ in range(n):
            h = np.tanh(w['E'][word] @ w['W'] + h @ w['U'])
            total = (np.log(softmax(h @ w['O'])) + score[:, None]).reshape(-1)
            which = np.argsort(-total, kind='stable')[:BEAMS]
            score, parent, word = total[which], which // WORDS, which % WORDS
            h, sentences = h[parent], np.concatenate([sentences[parent], word[:, None]], 1)
        save_case(folder, 'beam', n, {'limit': np.array(n), 'first': first.astype(np.int64)},
                  {'all': sentences.astype(np.int64), 'scores': score.astype(np.float32)})


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for make in (rnn, greedy, beam):
        make(sys.argv[1])


if __name__ == '__main__':
    main()
