"""The engines that models are compared with: ONNX Runtime and OpenVINO, from PyPI in an environment of their own (scripts/packages --install
bench). A model is a folder in the layout of the ONNX backend tests.
"""
import os
import sys

from bench.harness import ROOT, Failed, call

NAMES = ['onnxruntime', 'openvino']
COLUMNS = ['engines']                          # what each peer of a row said of itself: NAME-VERSION/THREADS@CPUS
PYTHON = os.path.join(ROOT, 'build', 'engines', 'bin', 'python')
PEER = os.path.join(ROOT, 'bench', 'peers', 'onnx_peer.py')
INPUTS = '''import glob, os, sys, onnx
from onnx import numpy_helper
for path in glob.glob(os.path.join(sys.argv[1], "test_data_set_0", "input_*.pb")):
    i = os.path.basename(path)[len("input_"):-len(".pb")]
    numpy_helper.to_array(onnx.load_tensor(path)).tofile(os.path.join(sys.argv[1], i + ".bin"))'''


def need():
    if not os.path.exists(PYTHON):
        raise Failed('build/engines is not there: scripts/packages --install bench')


def write_inputs(folder):
    """The bytes of input N as FOLDER/N.bin, where the workers read them."""
    need()
    if not os.path.exists(os.path.join(folder, '0.bin')):
        call(PYTHON, '-c', INPUTS, folder)


def commands(folder, threads, extent=1):
    """Name and command of each engine that runs the model, whose symbolic dimensions are all `extent`. What an engine says to a model that it
    refuses is printed.
    """
    found = {}
    for name in NAMES:
        command = [PYTHON, PEER, name, os.path.join(folder, 'model.onnx'), str(threads), str(extent), folder]
        try:
            call(*command, 'try')
            found[name] = command
        except Failed as e:
            print(f'bench: {name} does not run {os.path.basename(folder)}: {str(e).splitlines()[-1][:200]}', file=sys.stderr, flush=True)
    return found


def cells(row):
    return [' '.join(row.chose[name] for name in sorted(row.chose))]
