"""Run modules of the tensor-expression compiler tec, and make them from ONNX models.

import numpy as np, tec

model = tec.load("digits.tec")
outputs = model(np.zeros((8, 1, 8, 8), np.float32))        # by position, or by name: model(input=...)
scores = outputs["output"]                                 # a NumPy array

model = tec.compile("digits.onnx")                         # needs the compiler library libtec

tree = tec.load_program("tree.tec")                        # a program with lists, trees, control flow
state = tree(tec.Data("Node", tec.Data("Leaf", x), tec.Data("Leaf", y)))
"""

from ._arrays import Tensor
from ._compile import compile, compile_program
from ._library import (
    CacheCounts,
    Cancelled,
    CompilerMissing,
    DeviceError,
    Error,
    InputOutputError,
    InternalError,
    InvalidInput,
    OutOfMemory,
    TimedOut,
    Unsupported,
    device_cache,
    device_cache_counts,
    runtime,
    user_cache_folder,
)
from ._model import Function, Model, ParamSpec, Profile, ProfileRow, TensorSpec, load, load_function
from ._program import Data, Program, ProgramRow, load_program, make_list, read_list
from ._rivals import Rival, Rivals

__all__ = [
    "load",
    "load_function",
    "load_program",
    "compile",
    "compile_program",
    "device_cache",
    "device_cache_counts",
    "user_cache_folder",
    "CacheCounts",
    "Rival",
    "Rivals",
    "Data",
    "Program",
    "ProgramRow",
    "make_list",
    "read_list",
    "Model",
    "Function",
    "Tensor",
    "TensorSpec",
    "ParamSpec",
    "Profile",
    "ProfileRow",
    "Error",
    "InvalidInput",
    "Unsupported",
    "InputOutputError",
    "OutOfMemory",
    "DeviceError",
    "TimedOut",
    "InternalError",
    "Cancelled",
    "CompilerMissing",
    "__version__",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return str(runtime().tec_version().decode())
    raise AttributeError(f"module 'tec' has no attribute '{name}'")
