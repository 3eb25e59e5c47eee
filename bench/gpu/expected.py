#!/usr/bin/python3
"""Writes the inputs and expected outputs of a folder of ONNX's backend tests as OUT/NAME.npy, which bench_device reads.

    expected.py FOLDER OUT
"""
import os
import sys

import numpy
import onnx
from onnx import numpy_helper


def main(case, out):
    os.makedirs(out, exist_ok=True)
    graph = onnx.load(os.path.join(case, 'model.onnx')).graph
    weights = {w.name for w in graph.initializer}
    names = {'input': [i.name for i in graph.input if i.name not in weights], 'output': [o.name for o in graph.output]}
    for kind in names:
        for k, name in enumerate(names[kind]):
            tensor = onnx.load_tensor(os.path.join(case, 'test_data_set_0', f'{kind}_{k}.pb'))
            numpy.save(os.path.join(out, name + '.npy'), numpy_helper.to_array(tensor))


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
