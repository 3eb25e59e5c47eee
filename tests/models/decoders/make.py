#!/usr/bin/python3
"""Write four decoders as PyTorch exports them, with small seeded weights, and what PyTorch computes at five lengths.

    make.py [FOLDER]        # NAME.onnx, NAME.npz with arrays "LENGTH/TENSOR", for tests/tools/decoders.sh; default: this folder

  torch_rnn      an RNN language model of an LSTM cell: a loop over the words, whose scores are a tensor that grows
  torch_greedy   greedy decoding: `while`, until the end mark or a limit; keys, values and the sentence grow
  torch_cache    the same with a cache of 64 rows that are overwritten, of which each step reads the first ones
  torch_beam     beam search: the best four sentences, which grow by a word a step

Needs Debian's python3-torch (1.13) and python3-onnx.
"""
import os
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import Tensor, nn

LENGTHS = [1, 2, 5, 11, 24]
END = 0


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(23, 16), nn.LSTMCell(16, 16), nn.Linear(16, 23)

    def forward(self, words: Tensor):
        h, c, scores = torch.zeros(1, 16), torch.zeros(1, 16), torch.zeros(0, 23)
        for i in range(words.size(0)):
            h, c = self.cell(self.embed(words[i:i + 1]), (h, c))
            scores = torch.cat([scores, torch.log_softmax(self.out(h), -1)], 0)
        return scores, h


class Greedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(23, 16), nn.Linear(16, 23)
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, prompt: Tensor, limit: Tensor):
        x = self.embed(prompt)
        keys, values, sentence, word = self.k(x), self.v(x), prompt, prompt[-1:]
        most, i, going = int(limit), 0, True
        while going and i < most:
            x = self.embed(word)
            keys, values = torch.cat([keys, self.k(x)], 0), torch.cat([values, self.v(x)], 0)
            share = torch.softmax(torch.matmul(self.q(x), keys.transpose(0, 1)) / 4.0, -1)
            word = torch.argmax(self.out(torch.matmul(share, values) + x), -1)
            sentence = torch.cat([sentence, word], 0)
            going = bool(word[0] != 0)
            i += 1
        return sentence, keys


class Cache(Greedy):
    def forward(self, first: Tensor, limit: Tensor):
        keys, values, word = torch.zeros(64, 16), torch.zeros(64, 16), first
        sentence = torch.zeros(64, dtype=torch.int64)
        for i in range(int(limit)):
            x = self.embed(word)
            keys[i] = self.k(x)[0]
            values[i] = self.v(x)[0]
            share = torch.softmax(torch.matmul(self.q(x), keys[:i + 1].transpose(0, 1)) / 4.0, -1)
            word = torch.argmax(self.out(torch.matmul(share, values[:i + 1]) + x), -1)
            sentence[i] = word[0]
        return sentence[:int(limit)], keys


class Beam(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(23, 16), nn.Linear(16, 23)
        self.w, self.u = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, first: Tensor, limit: Tensor):
        h = torch.tanh(self.w(self.embed(first)))
        score, word = torch.topk(torch.log_softmax(self.out(h), -1)[0], 4)
        h, sentences = h.expand(4, 16), word.unsqueeze(1)
        for _ in range(int(limit)):
            h = torch.tanh(self.w(self.embed(word)) + self.u(h))
            total = torch.log_softmax(self.out(h), -1) + score.unsqueeze(1)
            score, which = torch.topk(total.reshape(-1), 4)
            parent, word = torch.div(which, 23, rounding_mode='floor'), which % 23
            h, sentences = h[parent], torch.cat([sentences[parent], word.unsqueeze(1)], 1)
        return sentences, score


def export(folder, name, model, cases, inputs, outputs, axes):
    script = torch.jit.script(model.eval())
    path = os.path.join(folder, f'{name}.onnx')
    torch.onnx.export(script, cases[2], path, input_names=inputs, output_names=outputs, opset_version=16, dynamic_axes=axes)
    onnx.checker.check_model(path)
    arrays = {}
    for n, case in zip(LENGTHS, cases):
        results = model(*case)
        for key, value in zip(inputs + outputs, [*case, *results]):
            arrays[f'{n}/{key}'] = value.detach().numpy()
    np.savez_compressed(os.path.join(folder, f'{name}.npz'), **arrays)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    warnings.simplefilter('ignore')
    torch.manual_seed(7)
    words = [torch.randint(1, 23, (n,)) for n in LENGTHS]
    export(folder, 'torch_rnn', Rnn(), [(w,) for w in words], ['words'], ['scores', 'last'], {'words': {0: 'n'}, 'scores': {0: 'n'}})
    export(folder, 'torch_greedy', Greedy(), [(w, torch.tensor(3 * n)) for w, n in zip(words, LENGTHS)], ['prompt', 'limit'],
           ['sentence', 'all_keys'], {'prompt': {0: 'p'}, 'sentence': {0: 't'}, 'all_keys': {0: 't'}})
    export(folder, 'torch_cache', Cache(), [(w[:1], torch.tensor(n)) for w, n in zip(words, LENGTHS)], ['first', 'limit'],
           ['sentence', 'keys'], {'sentence': {0: 't'}})
    export(folder, 'torch_beam', Beam(), [(w[:1], torch.tensor(n)) for w, n in zip(words, LENGTHS)], ['first', 'limit'],
           ['all', 'scores'], {'all': {1: 't'}})


if __name__ == '__main__':
    main()
