"""The C libraries: where they are, what their functions take, and their errors as exceptions.

`libtec_runtime` lies in this package and needs libc alone. `libtec`, the compiler, is a library of its own that is looked
for only when something is compiled. Structs have the layouts of include/tec/*.h.
"""

import ctypes
import ctypes.util
import os
from ctypes import (
    POINTER,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


class Error(Exception):
    """An operation of tec failed. The text says what was expected and what was found."""


class InvalidInput(Error, ValueError):
    """The caller's mistake: a wrong shape, dtype, name, option, or a damaged file."""


class Unsupported(Error, NotImplementedError):
    """Valid input that tec cannot handle yet."""


class InputOutputError(Error, OSError):
    """A file could not be read or written."""


class OutOfMemory(Error, MemoryError):
    """There was not enough memory."""


class DeviceError(Error, RuntimeError):
    """A device failed."""


class TimedOut(Error, TimeoutError):
    """A time limit passed."""


class InternalError(Error, RuntimeError):
    """A fault of tec itself."""


class Cancelled(Error, RuntimeError):
    """Another thread cancelled the call."""


class CompilerMissing(Error, ImportError):
    """The compiler library `libtec` is not installed."""


# In the order of TEC_STATUS_LIST in tec/base.h, but for those of connections, which come last; 0 is success.
_EXCEPTIONS = [
    Error,
    InvalidInput,
    Unsupported,
    InputOutputError,
    OutOfMemory,
    DeviceError,
    TimedOut,
    InternalError,
    Cancelled,
]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


class ErrorText(ctypes.Structure):
    """tec_error: filled by the first failure."""

    _fields_ = [("status", c_int), ("text", c_char * 500)]


class RunOptions(ctypes.Structure):
    _fields_ = [
        ("pool", c_void_p),
        ("threads", c_int),
        ("profile", c_bool),
        ("keep", c_bool),
        ("check_nan", c_bool),
        ("extern_function", c_void_p),
        ("extern_user", c_void_p),
        ("device", c_void_p),
        ("rivals", c_void_p),
        ("max_steps", c_int64),
        ("deadline", c_double),
        ("stream", c_void_p),
    ]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", DLDataType),
        ("ndim", c_int),
        ("shape", c_int64 * 16),
        ("text", c_char * 160),
    ]


class ParamInfo(ctypes.Structure):
    _fields_ = TensorInfo._fields_ + [("is_output", c_bool), ("is_scalar", c_bool)]


class ProfileRow(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("nodes", c_char_p),
        ("function", c_char_p),
        ("origin", c_char_p),
        ("calls", c_int64),
        ("min_s", c_double),
        ("median_s", c_double),
        ("total_s", c_double),
        ("gflops", c_double),
        ("gbytes", c_double),
        ("share", c_double),
        ("group", c_int),
    ]


class ProgramOptions(ctypes.Structure):
    _fields_ = [
        ("run", RunOptions),
        ("max_steps", c_int64),
        ("max_depth", c_int64),
        ("max_bytes", c_int64),
        ("deadline", c_double),
    ]


class ImportOptions(ctypes.Structure):
    _fields_ = [("n_dims", c_int), ("dim", POINTER(c_char_p)), ("value", POINTER(c_int64))]


class BuildOptions(ctypes.Structure):
    _fields_ = [
        ("target", c_char_p),
        ("threads", c_int),
        ("jobs", c_int),
        ("strict", c_bool),
        ("dispatch", c_char_p),
        ("precision", c_char_p),
        ("dump_dir", c_char_p),
        ("records", c_void_p),
        ("weights_beside", c_bool),
    ]


_ERR = POINTER(ErrorText)
_TENSOR = POINTER(DLTensor)

# name: (result, parameters)
_RUNTIME_FUNCTIONS = {
    "tec_version": (c_char_p, []),
    "tec_device_cache": (c_bool, [c_char_p, c_int64, _ERR]),
    "tec_device_cache_counts": (None, [POINTER(c_int64), POINTER(c_int64)]),
    "tec_device_open": (c_void_p, [c_char_p, _ERR]),
    "tec_device_free": (None, [c_void_p]),
    "tec_array_new": (c_void_p, [DLDataType, c_int, POINTER(c_int64), _ERR]),
    "tec_array_free": (None, [c_void_p]),
    "tec_array_tensor": (_TENSOR, [c_void_p]),
    "tec_array_to_dlpack": (POINTER(DLManagedTensorVersioned), [c_void_p, _ERR]),
    "tec_array_to_dlpack_unversioned": (POINTER(DLManagedTensor), [c_void_p, _ERR]),
    "tec_tensor_is_compact": (c_bool, [_TENSOR]),
    "tec_module_open": (c_void_p, [c_char_p, c_void_p, _ERR]),
    "tec_module_open_bytes": (c_void_p, [c_char_p, c_size_t, c_void_p, _ERR]),
    "tec_module_free": (None, [c_void_p]),
    "tec_module_target": (c_char_p, [c_void_p]),
    "tec_module_n_functions": (c_int, [c_void_p]),
    "tec_module_function_name": (c_char_p, [c_void_p, c_int]),
    "tec_module_n_graphs": (c_int, [c_void_p]),
    "tec_module_graph_name": (c_char_p, [c_void_p, c_int]),
    "tec_function_new": (c_void_p, [c_void_p, c_char_p, POINTER(RunOptions), _ERR]),
    "tec_function_free": (None, [c_void_p]),
    "tec_function_n_params": (c_int, [c_void_p]),
    "tec_function_param_info": (c_bool, [c_void_p, c_int, POINTER(ParamInfo), _ERR]),
    "tec_function_call": (c_bool, [c_void_p, POINTER(_TENSOR), c_int, _ERR]),
    "tec_rivals_new": (c_void_p, [_ERR]),
    "tec_rivals_free": (None, [c_void_p]),
    "tec_rivals_add": (
        c_bool,
        [
            c_void_p,
            c_void_p,
            c_char_p,
            c_void_p,
            POINTER(c_int64),
            c_int,
            POINTER(RunOptions),
            POINTER(c_int),
            _ERR,
        ],
    ),
    "tec_executor_new": (c_void_p, [c_void_p, c_char_p, POINTER(RunOptions), _ERR]),
    "tec_executor_free": (None, [c_void_p]),
    "tec_executor_n_inputs": (c_int, [c_void_p]),
    "tec_executor_n_outputs": (c_int, [c_void_p]),
    "tec_executor_input_info": (c_bool, [c_void_p, c_int, POINTER(TensorInfo), _ERR]),
    "tec_executor_output_info": (c_bool, [c_void_p, c_int, POINTER(TensorInfo), _ERR]),
    "tec_executor_set_input": (c_bool, [c_void_p, c_int, _TENSOR, _ERR]),
    "tec_executor_bind_input": (c_bool, [c_void_p, c_int, _TENSOR, _ERR]),
    "tec_executor_bind_output": (c_bool, [c_void_p, c_int, _TENSOR, _ERR]),
    "tec_executor_prepare": (c_bool, [c_void_p, _ERR]),
    "tec_executor_run": (c_bool, [c_void_p, _ERR]),
    "tec_executor_output": (_TENSOR, [c_void_p, c_int]),
    "tec_executor_n_steps": (c_int, [c_void_p]),
    "tec_executor_profile": (c_bool, [c_void_p, c_int, POINTER(ProfileRow)]),
    "tec_executor_profile_reset": (None, [c_void_p]),
    "tec_program_new": (c_void_p, [c_void_p, c_char_p, POINTER(ProgramOptions), _ERR]),
    "tec_program_free": (None, [c_void_p]),
    "tec_program_n_inputs": (c_int, [c_void_p]),
    "tec_program_n_outputs": (c_int, [c_void_p]),
    "tec_program_input_name": (c_char_p, [c_void_p, c_int]),
    "tec_program_input_text": (c_char_p, [c_void_p, c_int, c_char_p, c_size_t]),
    "tec_program_run": (c_bool, [c_void_p, POINTER(c_void_p), c_int, POINTER(c_void_p), c_int, _ERR]),
    "tec_program_profile": (c_bool, [c_void_p, c_int, POINTER(ProfileRow)]),
    "tec_object_tensor": (c_void_p, [c_void_p, _TENSOR, _ERR]),
    "tec_object_tuple": (c_void_p, [c_void_p, POINTER(c_void_p), c_int, _ERR]),
    "tec_object_data": (c_void_p, [c_void_p, c_char_p, POINTER(c_void_p), c_int, _ERR]),
    "tec_object_free": (None, [c_void_p]),
    "tec_object_dltensor": (_TENSOR, [c_void_p]),
    "tec_object_n_parts": (c_int, [c_void_p]),
    "tec_object_part": (c_void_p, [c_void_p, c_int]),
    "tec_object_constructor": (c_char_p, [c_void_p, c_void_p]),
}

_COMPILER_FUNCTIONS = {
    "tec_context_new": (c_void_p, []),
    "tec_context_free": (None, [c_void_p]),
    "tec_context_status": (c_int, [c_void_p]),
    "tec_context_error": (c_char_p, [c_void_p]),
    "tec_context_set_limit": (c_bool, [c_void_p, c_char_p, c_int64]),
    "tec_graph_import": (c_void_p, [c_void_p, c_char_p, POINTER(ImportOptions)]),
    "tec_graph_read_program": (c_void_p, [c_void_p, c_char_p, c_char_p]),
    "tec_graph_build": (c_void_p, [c_void_p, POINTER(BuildOptions)]),
    "tec_graph_build_file": (c_bool, [c_void_p, POINTER(BuildOptions), c_char_p]),
    "tec_records_open": (c_void_p, [c_void_p, c_char_p]),
    "tec_records_close": (None, [c_void_p]),
}

_loaded: Dict[str, ctypes.CDLL] = {}
# What device_cache was asked for. Each library has a runtime of its own, so each is told, those loaded later too.
_cache: Optional[Tuple[Optional[bytes], int]] = None


def _tell_cache(library: ctypes.CDLL, folder: Optional[bytes], most_bytes: int) -> None:
    err = ErrorText()
    check(library.tec_device_cache(folder, most_bytes, ctypes.byref(err)), err)


class CacheCounts(NamedTuple):
    """Programs of device code: loaded from the folder, and compiled by drivers."""

    loaded: int
    compiled: int


def device_cache(folder: Optional[Union[str, "os.PathLike[str]"]], most_bytes: int = 256 << 20) -> None:
    """Keeps what OpenCL drivers compile when a module is loaded in `folder`, up to `most_bytes`, for later loads and processes.

    None: keeps nothing, as before the first call. `user_cache_folder()` is the folder of `tec run`. Holds for all that is loaded
    afterwards. A damaged or foreign entry is compiled again; those used longest ago make room.
    """
    global _cache
    wanted = (None if folder is None else os.fsencode(folder), most_bytes)
    for library in [runtime(), *(l for name, l in _loaded.items() if name != "runtime")]:
        _tell_cache(library, *wanted)
    _cache = wanted


def device_cache_counts() -> CacheCounts:
    """How many programs of device code this process took from the folder of `device_cache`, and how many drivers compiled."""
    sums = [0, 0]
    for library in _loaded.values():
        loaded, compiled = c_int64(), c_int64()
        library.tec_device_cache_counts(ctypes.byref(loaded), ctypes.byref(compiled))
        sums = [sums[0] + loaded.value, sums[1] + compiled.value]
    return CacheCounts(*sums)


def user_cache_folder() -> str:
    """Where `tec run` keeps device code: $XDG_CACHE_HOME/tec or ~/.cache/tec."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(named if named.startswith("/") else os.path.expanduser("~/.cache"), "tec")


def _load(path: str, functions: Dict[str, Any]) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    for name, (result, parameters) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    if _cache is not None:
        _tell_cache(library, *_cache)
    return library


def runtime() -> ctypes.CDLL:
    """`libtec_runtime`: the library of this package, or the file that TEC_RUNTIME_LIBRARY names."""
    if "runtime" not in _loaded:
        beside = os.path.join(os.path.dirname(__file__), "libtec_runtime.so")
        _loaded["runtime"] = _load(os.environ.get("TEC_RUNTIME_LIBRARY", beside), _RUNTIME_FUNCTIONS)
    return _loaded["runtime"]


def _compiler_places() -> List[str]:
    named = os.environ.get("TEC_LIBRARY")
    return [named] if named else [p for p in (ctypes.util.find_library("tec"), "libtec.so.0") if p]


def compiler() -> ctypes.CDLL:
    """`libtec`: the file that TEC_LIBRARY names, or the one that the system's linker finds."""
    reason: Optional[OSError] = None
    if "compiler" in _loaded:
        return _loaded["compiler"]
    for place in _compiler_places():
        try:
            library = _load(place, {**_RUNTIME_FUNCTIONS, **_COMPILER_FUNCTIONS})
        except OSError as failure:
            reason = failure
            continue
        _loaded["compiler"] = library
        return library
    raise CompilerMissing(
        "tec.compile needs the compiler library libtec, which this package does not contain"
        + (f" ({reason})" if reason else "")
        + ". Install tec (`cmake --install build/release`, then `ldconfig`), or set TEC_LIBRARY to the path of libtec.so."
    )


def raise_status(status: int, text: str) -> None:
    """Raises the exception of a status of tec/base.h."""
    raise (_EXCEPTIONS[status] if 0 < status < len(_EXCEPTIONS) else Error)(text)


def check(done: Any, err: ErrorText) -> Any:
    """Hands on a result that is true; raises what `err` says otherwise."""
    if not done:
        raise_status(err.status, err.text.decode(errors="replace"))
    return done
