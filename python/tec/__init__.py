"""Run modules of the tensor-expression compiler tec, and make them from ONNX models.

import numpy as np, tec

model = tec.load("digits.tec")
outputs = model(np.zeros((8, 1, 8, 8), np.float32))        # by position, or by name: model(input=...)
scores = outputs["output"]                                 # a NumPy array

model = tec.compile("digits.onnx")                         # needs the compiler library libtec
"""

from ._arrays import Tensor
from ._compile import compile
from ._library import (
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
    runtime,
)
from ._model import Function, Model, ParamSpec, Profile, ProfileRow, TensorSpec, load, load_function

__all__ = [
    "load",
    "load_function",
    "compile",
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
