#!/usr/bin/env python3
"""Write a network of float32 once more in float16 or bfloat16, with reference outputs from ONNX Runtime.

    halve.py f16|bf16 FROM TO        FROM, TO: folders with model.onnx and test_data_set_K/{input,output}_K.pb

Weights, inputs, outputs and the values between them get the type of 16 bits; integers stay as they are. A reference is what the
float32 network gives for the rounded weights and the rounded inputs, rounded once at its end: it tells the error of computing with 16
bits, without the error of rounding the network itself.

Runs in build/engines (scripts/packages --install bench), which has ONNX and ONNX Runtime.
"""
import glob
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
import onnxruntime

TYPES = {'f16': TensorProto.FLOAT16, 'bf16': TensorProto.BFLOAT16}


def bits(values, dtype):
    """The 16 bits of each float32, rounded to nearest even."""
    if dtype == TensorProto.FLOAT16:
        with np.errstate(over='ignore'):
            return values.astype(np.float16).view(np.uint16)
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((words + 0x7fff + (words >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7fc0), rounded)


def widen(halves, dtype):
    """The float32 of each 16 bits."""
    if dtype == TensorProto.FLOAT16:
        return halves.view(np.float16).astype(np.float32)
    return (halves.astype(np.uint32) << 16).view(np.float32)


def round_tensor(tensor, dtype):
    """A float32 tensor as one of 16 bits, and as the float32 with the same values; others are given back as they are."""
    if tensor.data_type != TensorProto.FLOAT:
        return tensor, tensor
    values = np.array(numpy_helper.to_array(tensor), np.float32)
    halves = bits(values, dtype)
    if np.isinf(widen(halves, dtype)).sum() > np.isinf(values).sum():
        sys.exit(f'halve: a value of {tensor.name!r} is too large for the type')
    half = TensorProto(name=tensor.name, dims=tensor.dims, data_type=dtype, raw_data=halves.tobytes())
    return half, numpy_helper.from_array(widen(halves, dtype).reshape(values.shape), tensor.name)


def halve_graph(half, wide, dtype):
    """Changes two copies of one graph: `half` to the type of 16 bits, `wide` to the rounded weights."""
    for k, tensor in enumerate(half.initializer):
        new, rounded = round_tensor(tensor, dtype)
        half.initializer[k].CopyFrom(new)
        wide.initializer[k].CopyFrom(rounded)
    for value in [*half.input, *half.output, *half.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = dtype
    for node, other in zip(half.node, wide.node):
        for attribute, twin in zip(node.attribute, other.attribute):
            if attribute.type == onnx.AttributeProto.TENSOR:
                new, rounded = round_tensor(attribute.t, dtype)
                attribute.t.CopyFrom(new)
                twin.t.CopyFrom(rounded)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                halve_graph(attribute.g, twin.g, dtype)
            elif node.op_type == 'Cast' and attribute.name == 'to' and attribute.i == TensorProto.FLOAT:
                attribute.i = dtype


def save(tensor, folder, kind, k):
    with open(os.path.join(folder, f'{kind}_{k}.pb'), 'wb') as f:
        f.write(tensor.SerializeToString())


def load(path):
    tensor = TensorProto()
    with open(path, 'rb') as f:
        tensor.ParseFromString(f.read())
    return tensor


def halve_set(source, folder, session, graph, dtype):
    """One data set: its inputs rounded, and the outputs of the session for them."""
    os.makedirs(folder, exist_ok=True)
    weights = {tensor.name for tensor in graph.initializer}
    feeds = {}
    for k, value in enumerate(value for value in graph.input if value.name not in weights):
        half, wide = round_tensor(load(os.path.join(source, f'input_{k}.pb')), dtype)
        save(half, folder, 'input', k)
        feeds[value.name] = numpy_helper.to_array(wide)
    for k, values in enumerate(session.run(None, feeds)):
        save(round_tensor(numpy_helper.from_array(values, graph.output[k].name), dtype)[0], folder, 'output', k)


def main(args):
    if len(args) != 3 or args[0] not in TYPES:
        sys.exit(__doc__)
    dtype, source, to = TYPES[args[0]], args[1], args[2]
    half, wide = (onnx.load(os.path.join(source, 'model.onnx')) for _ in range(2))
    halve_graph(half.graph, wide.graph, dtype)
    session = onnxruntime.InferenceSession(wide.SerializeToString(), providers=['CPUExecutionProvider'])
    os.makedirs(to, exist_ok=True)
    onnx.save(half, os.path.join(to, 'model.onnx'))
    for folder in sorted(glob.glob(os.path.join(source, 'test_data_set_*'))):
        halve_set(folder, os.path.join(to, os.path.basename(folder)), session, wide.graph, dtype)


if __name__ == '__main__':
    main(sys.argv[1:])
