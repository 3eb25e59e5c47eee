#!/usr/bin/env python3
"""A worker of bench/run: an ONNX model by another engine.

    onnx_peer.py ENGINE MODEL.onnx THREADS EXTENT FOLDER [try]

Engines: onnxruntime, openvino. FOLDER has the bytes of input N in N.bin; symbolic dimensions are EXTENT.
Inputs and outputs are bound once, so that a call copies nothing. Says "ready 0 NAME-VERSION/THREADS@CPUS", what it runs on, then answers
"sample SECONDS" with the median in milliseconds. With `try` it ends when the model has run.
"""
import os
import statistics
import sys
import time

import numpy as np

ENGINE, MODEL, THREADS, EXTENT, FOLDER = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]


def read(i, dtype, shape):
    shape = [s if isinstance(s, int) and s >= 0 else EXTENT for s in shape]
    return np.fromfile(os.path.join(FOLDER, f'{i}.bin'), dtype).reshape(shape)


def start_onnxruntime():
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(MODEL, options, providers=['CPUExecutionProvider'])
    binding = session.io_binding()
    dtypes = {'tensor(float)': np.float32, 'tensor(int64)': np.int64, 'tensor(bool)': np.bool_}
    for i, x in enumerate(session.get_inputs()):
        binding.bind_ortvalue_input(x.name, ort.OrtValue.ortvalue_from_numpy(read(i, dtypes[x.type], x.shape)))
    for y in session.get_outputs():
        binding.bind_output(y.name)
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    for y, v in zip(session.get_outputs(), outputs):
        binding.bind_ortvalue_output(y.name, v)
    return lambda: session.run_with_iobinding(binding), ort.__version__, session.get_session_options().intra_op_num_threads


def start_openvino():
    import openvino
    core = openvino.Core()
    core.set_property('CPU', {'INFERENCE_NUM_THREADS': THREADS, 'NUM_STREAMS': 1, 'INFERENCE_PRECISION_HINT': 'f32', 'ENABLE_CPU_PINNING': False})
    compiled = core.compile_model(MODEL, 'CPU')
    request = compiled.create_infer_request()
    for i, x in enumerate(compiled.inputs):
        shape = [int(d.get_length()) if d.is_static else -1 for d in x.get_partial_shape()]
        request.set_input_tensor(i, openvino.Tensor(read(i, x.get_element_type().to_dtype(), shape)))
    return request.infer, openvino.__version__.split('-')[0], compiled.get_property('INFERENCE_NUM_THREADS')


def main():
    run, version, threads = {'onnxruntime': start_onnxruntime, 'openvino': start_openvino}[ENGINE]()
    for _ in range(3):
        run()
    if 'try' in sys.argv[6:]:
        return
    print(f'ready 0 {ENGINE}-{version}/{threads}@{"+".join(map(str, sorted(os.sched_getaffinity(0))))}', flush=True)
    for line in sys.stdin:
        seconds, times = float(line.split()[1]), []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(f'{1e3 * statistics.median(times):.6f}', flush=True)


main()
