#!/usr/bin/python3
"""Write the networks that the benchmarks and checks use, as ONNX, with reference outputs from PyTorch.

    make_models.py DIR [NAME ...] [--all] [--batch]        (no NAME: all but the large ones; --all: everything)

Each network becomes DIR/NAME/model.onnx and DIR/NAME/test_data_set_0/{input,output}_K.pb, the layout of the ONNX
backend tests that `tec check` reads. Weights are seeded He-normal, except `digits`, which is trained here on the 1,797 real
handwritten digits that scikit-learn ships (its test set is stored as one batch, with the labels in labels.txt);
tests/models/digits is what this script made of it. With --batch the first dimension is symbolic, `batch`, and there are data sets
of 1, 8 and 33.

Needs the packages of `scripts/packages bench`: python3-torch python3-onnx python3-sklearn. write_resnet18.c writes a ResNet-18
without them.
"""
import math, os, sys
import numpy as np
import onnx
from onnx import numpy_helper
import torch
from torch import nn
import torch.nn.functional as F


# ---- networks -------------------------------------------------------------------------------------------------------

def conv_bn(i, o, k, s=1, g=1, act=True):
    layers = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([nn.ReLU()] if act else []))


class Residual(nn.Module):
    """ResNet v1 block: basic (two 3x3) or bottleneck (1x1, 3x3, 1x1 with expansion 4)."""

    def __init__(self, i, width, stride, bottleneck):
        super().__init__()
        o = width * (4 if bottleneck else 1)
        self.body = (nn.Sequential(conv_bn(i, width, 1), conv_bn(width, width, 3, stride), conv_bn(width, o, 1, act=False))
                     if bottleneck else nn.Sequential(conv_bn(i, width, 3, stride), conv_bn(width, o, 3, act=False)))
        self.skip = conv_bn(i, o, 1, stride, act=False) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet(depths, bottleneck):
    layers, i = [conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            layers.append(Residual(i, width, 2 if block == 0 and stage else 1, bottleneck))
            i = width * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


def mobilenet_v1():
    plan = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    plan += [(512, 512, 1)] * 5 + [(512, 1024, 2), (1024, 1024, 1)]
    layers = [conv_bn(3, 32, 3, 2)]
    for i, o, s in plan:
        layers += [conv_bn(i, i, 3, s, g=i), conv_bn(i, o, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


def dqn():
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3),
                         nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 18))


def dcgan():
    chans, layers = [100, 512, 256, 128, 64], []
    for n, (i, o) in enumerate(zip(chans, chans[1:])):
        layers += [nn.ConvTranspose2d(i, o, 4, 1 if n == 0 else 2, 0 if n == 0 else 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


class LstmSteps(nn.Module):
    """A language-model LSTM written out for a fixed number of steps, from primitive operators only."""

    def __init__(self, steps=16, vocab=1000, hidden=512):
        super().__init__()
        self.steps, self.hidden = steps, hidden
        self.embed, self.out = nn.Embedding(vocab, hidden), nn.Linear(hidden, vocab)
        self.x, self.h = nn.Linear(hidden, 4 * hidden), nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, tokens):
        e = self.embed(tokens)
        h = c = torch.zeros(1, self.hidden)
        for t in range(self.steps):
            i, f, g, o = (self.x(e[:, t]) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


class Bert(nn.Module):
    """A BERT-style encoder (post-norm, GELU by erf), from token ids to the last hidden states."""

    def __init__(self, layers=12, width=768, heads=12, vocab=30522, positions=512):
        super().__init__()
        self.heads, self.width = heads, width
        self.tok, self.pos, self.norm = nn.Embedding(vocab, width), nn.Embedding(positions, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(
            q=nn.Linear(width, width), k=nn.Linear(width, width), v=nn.Linear(width, width), o=nn.Linear(width, width),
            n1=nn.LayerNorm(width), up=nn.Linear(width, 4 * width), down=nn.Linear(4 * width, width), n2=nn.LayerNorm(width)))
            for _ in range(layers))

    def forward(self, ids, positions):
        x = self.norm(self.tok(ids) + self.pos(positions))
        for b in self.blocks:
            def split(t):
                return t.reshape(t.shape[0], t.shape[1], self.heads, self.width // self.heads).transpose(1, 2)
            q, k, v = split(b['q'](x)), split(b['k'](x)), split(b['v'](x))
            a = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.width // self.heads), -1) @ v
            x = b['n1'](x + b['o'](a.transpose(1, 2).reshape(x.shape)))
            x = b['n2'](x + b['down'](F.gelu(b['up'](x))))
        return x


def digits():
    return nn.Sequential(conv_bn(1, 16, 3), Residual(16, 16, 1, False), Residual(16, 32, 2, False),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


# ---- weights, training, export --------------------------------------------------------------------------------------

def he_init(net):
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            nn.init.kaiming_normal_(m.weight, nonlinearity='relu')
        if isinstance(m, nn.BatchNorm2d):                      # a trained network's statistics are not 0 and 1
            m.running_mean.normal_(0, 0.1), m.running_var.uniform_(0.5, 1.5)
            m.weight.data.uniform_(0.5, 1.0), m.bias.data.normal_(0, 0.1)
    return net


def train_digits(net):
    from sklearn.datasets import load_digits
    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    y, order = torch.tensor(data.target), torch.randperm(len(data.target))
    train, test = order[:1437], order[1437:]
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(30):
        for batch in train[torch.randperm(len(train))].split(64):
            opt.zero_grad()
            F.cross_entropy(net(x[batch]), y[batch]).backward()
            opt.step()
    net.eval()
    return x[test], y[test]


def input_names(inputs):
    return ['input'] if len(inputs) == 1 else [f'input{k}' for k in range(len(inputs))]


def save_set(data, names, inputs, output):
    os.makedirs(data, exist_ok=True)
    for k, t in enumerate(inputs):
        onnx.save_tensor(numpy_helper.from_array(t.numpy(), names[k]), os.path.join(data, f'input_{k}.pb'))
    onnx.save_tensor(numpy_helper.from_array(output.numpy(), 'output'), os.path.join(data, 'output_0.pb'))


def with_batch(names, dynamic):
    """The symbolic dimensions, the first one of each tensor among them."""
    return {name: {0: 'batch', **(dynamic or {}).get(name, {})} for name in [*names, 'output']}


def of_batch(inputs, n):
    """The inputs of the first one n times, turned by one element each time, so that no two are the same."""
    return [torch.stack([t[0].roll(k) for k in range(n)]) for t in inputs]


def export(root, name, net, inputs, dynamic=None, labels=None, batches=()):
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    net.eval()
    names = input_names(inputs)
    sets = [of_batch(inputs, n) for n in batches] or [inputs]
    with torch.no_grad():
        outputs = [net(*one) for one in sets]
    for k, one in enumerate(sets):
        save_set(os.path.join(folder, f'test_data_set_{k}'), names, one, outputs[k])
    inputs, output = sets[-1], outputs[-1]
    torch.onnx.export(net, tuple(inputs), os.path.join(folder, 'model.onnx'), opset_version=13, input_names=names,
                      output_names=['output'], dynamic_axes=with_batch(names, dynamic) if batches else dynamic, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
    if labels is not None:
        np.savetxt(os.path.join(folder, 'labels.txt'), labels.numpy(), '%d')
        print(f'{name}: accuracy {float((output.argmax(1) == labels).float().mean()):.4f} on {len(labels)} images')
    print(f'{name}: inputs {[tuple(t.shape) for t in inputs]}, output {tuple(output.shape)}')


def image(*shape):
    return torch.randn(*shape)


def bert_inputs(n):
    return [torch.randint(0, 30522, (1, n)), torch.arange(n)[None]]


SEQ = {'input0': {1: 'seq'}, 'input1': {1: 'seq'}, 'output': {1: 'seq'}}
MODELS = {
    'digits': None,                                            # trained; see main
    'resnet18': lambda: (he_init(resnet([2, 2, 2, 2], False)), [image(1, 3, 224, 224)], None),
    'mobilenet_v1': lambda: (he_init(mobilenet_v1()), [image(1, 3, 224, 224)], None),
    'dqn': lambda: (he_init(dqn()), [image(1, 4, 84, 84)], None),
    'dcgan': lambda: (he_init(dcgan()), [image(1, 100, 1, 1)], None),
    'lstm16': lambda: (LstmSteps(), [torch.randint(0, 1000, (1, 16))], None),
    'bert_small': lambda: (Bert(layers=4, width=256, heads=4), bert_inputs(128), None),
    'bert_small_dynamic': lambda: (Bert(layers=4, width=256, heads=4), bert_inputs(37), SEQ),
}
LARGE = {
    'resnet50': lambda: (he_init(resnet([3, 4, 6, 3], True)), [image(1, 3, 224, 224)], None),
    'bert_base': lambda: (Bert(), bert_inputs(128), None),
    'bert_base_dynamic': lambda: (Bert(), bert_inputs(53), SEQ),
}


def main(args):
    if not args or args[0].startswith('-'):
        sys.exit(__doc__)
    root, wanted, known = args[0], [a for a in args[1:] if a not in ('--all', '--batch')], {**MODELS, **LARGE}
    batches = (1, 8, 33) if '--batch' in args else ()
    for name in wanted or (known if '--all' in args else MODELS):
        if name not in known:
            sys.exit(f'make_models: no network named {name!r}; there are {", ".join(known)}')
        torch.manual_seed(20181)
        if name == 'digits':
            net = digits()
            x, y = train_digits(net)
            export(root, name, net, [x], {'input': {0: 'batch'}, 'output': {0: 'batch'}}, y if not batches else None, batches)
        else:
            net, inputs, dynamic = known[name]()
            export(root, name, net, inputs, dynamic, batches=batches)


if __name__ == '__main__':
    main(sys.argv[1:])
