#!/usr/bin/env python3
"""large_models.py -- writes large ONNX models with random weights, without ONNX's own package.

    large_models.py chain FILE      100,000 small element-wise nodes
    large_models.py bert FILE       the encoder of BERT-large: 24 layers of 1,024 features, 1.2 GB of weights in the file
    large_models.py external FILE   64 products with weights of 48 MB each, 3 GB in FILE.bin beside it
"""
import os
import sys


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def piece(field, body):
    body = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(body)) + body


def value_info(name, dims):
    shape = b"".join(piece(1, number(1, d)) for d in dims)
    return piece(1, name) + piece(2, piece(1, number(1, 1) + piece(2, shape)))


class Model:
    """Collects nodes and writes the file in pieces, so that the weights are never in memory together."""

    def __init__(self, path, external=False):
        self.nodes, self.weights, self.path, self.external, self.count = [], [], path, external, 0
        self.random = os.urandom(1 << 16)

    def weight(self, *dims):
        name = "w%d" % len(self.weights)
        self.weights.append((name, dims))
        return name

    def ints(self, *values):
        name = "i%d" % self.count
        self.count += 1
        raw = b"".join(v.to_bytes(8, "little", signed=True) for v in values)
        self.nodes.append(piece(1, piece(2, name) + piece(4, "Constant") + piece(5, piece(1, "value") + number(20, 4) + piece(5,
            number(1, len(values)) + number(2, 7) + piece(9, raw)))))
        return name

    def node(self, op, *inputs, ints=(), **attributes):
        name = "v%d" % self.count
        self.count += 1
        body = b"".join(piece(1, i) for i in inputs) + piece(2, name) + piece(3, "node_" + name) + piece(4, op)
        for key, v in attributes.items():
            if isinstance(v, int):
                body += piece(5, piece(1, key) + number(3, v & (1 << 64) - 1) + number(20, 2))
            else:
                body += piece(5, piece(1, key) + b"".join(number(8, i) for i in v) + number(20, 7))
        self.nodes.append(piece(1, body))
        return name

    def bytes_of(self, dims):
        n = 4
        for d in dims:
            n *= d
        return n

    def write(self, inputs, output, output_dims):
        at, headers = 0, []
        for name, dims in self.weights:
            size = self.bytes_of(dims)
            body = b"".join(number(1, d) for d in dims) + number(2, 1) + piece(8, name)
            if self.external:
                where = {"location": os.path.basename(self.path) + ".bin", "offset": str(at), "length": str(size)}
                body += b"".join(piece(13, piece(1, k) + piece(2, v)) for k, v in where.items()) + number(14, 1)
                headers.append(varint(5 << 3 | 2) + varint(len(body)) + body)
            else:
                raw = varint(9 << 3 | 2) + varint(size)
                headers.append(varint(5 << 3 | 2) + varint(len(body) + len(raw) + size) + body + raw)
            at += size
        rest = b"".join(self.nodes) + piece(2, "net")
        rest += b"".join(piece(11, value_info(n, d)) for n, d in inputs) + piece(12, value_info(output, output_dims))
        inside = 0 if self.external else at
        with open(self.path, "wb") as f, open(self.path + ".bin" if self.external else os.devnull, "wb") as beside:
            f.write(number(1, 8) + piece(8, piece(1, "") + number(2, 17)))
            f.write(varint(7 << 3 | 2) + varint(sum(map(len, headers)) + inside + len(rest)))
            for header, (name, dims) in zip(headers, self.weights):
                f.write(header)
                self.fill(beside if self.external else f, self.bytes_of(dims))
            f.write(rest)
        print(at)

    def fill(self, f, size):
        """Small floats: the exponent is set in the upper byte of each."""
        block = bytearray(self.random)
        block[3::4] = bytes([0x3C if b & 1 else 0xBC for b in block[3::4]])
        for _ in range(size // len(block)):
            f.write(block)
        f.write(block[: size % len(block)])


def chain(path, n=100000):
    m, before = Model(path), ["x", "x"]
    for k in range(n):
        op = ("Add", "Mul", "Sub", "Relu", "Neg", "Tanh", "Max")[k % 7]
        before.append(m.node(op, before[-1]) if op in ("Relu", "Neg", "Tanh") else m.node(op, before[-1], before[-min(6, k + 2)]))
    m.write([("x", (4, 8))], before[-1], (4, 8))


def bert(path, layers=24, width=1024, heads=16, rows=128):
    m, x = Model(path), "x"
    shape, back = m.ints(rows, heads, width // heads), m.ints(rows, width)
    dense = lambda x, n, to: m.node("Add", m.node("MatMul", x, m.weight(n, to)), m.weight(to))
    norm = lambda x: m.node("LayerNormalization", x, m.weight(width), m.weight(width), axis=-1)
    for _ in range(layers):
        q, k, v = (m.node("Transpose", m.node("Reshape", dense(x, width, width), shape), perm=p)
                   for p in ((1, 0, 2), (1, 2, 0), (1, 0, 2)))
        a = m.node("MatMul", m.node("Softmax", m.node("MatMul", q, k), axis=-1), v)
        a = dense(m.node("Reshape", m.node("Transpose", a, perm=(1, 0, 2)), back), width, width)
        x = norm(m.node("Add", x, a))
        h = dense(x, width, 4 * width)
        h = m.node("Mul", h, m.node("Sigmoid", h))
        x = norm(m.node("Add", x, dense(h, 4 * width, width)))
    m.write([("x", (rows, width))], x, (rows, width))


def external(path, n=64):
    m, x = Model(path, external=True), "x"
    for k in range(n):
        x = m.node("MatMul", x, m.weight(3072, 4096) if k % 2 == 0 else m.weight(4096, 3072))
    m.write([("x", (1, 3072))], x, (1, 3072))


if __name__ == "__main__":
    {"chain": chain, "bert": bert, "external": external}[sys.argv[1]](sys.argv[2])
