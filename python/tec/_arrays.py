"""Arrays in and out, without copies: NumPy arrays, and whatever speaks DLPack (PyTorch, JAX, CuPy on the host, ...)."""

import ctypes
from ctypes import POINTER, c_char_p, c_int64, c_void_p, cast, py_object, pythonapi
from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _library as lib

_CPU, _CUDA = 1, 2  # kDLCPU, kDLCUDA
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}

pythonapi.PyCapsule_New.restype = py_object
pythonapi.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
pythonapi.PyCapsule_IsValid.argtypes = [py_object, c_char_p]
pythonapi.PyCapsule_GetPointer.restype = c_void_p
pythonapi.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]

# A capsule that nobody took is destroyed while its reference count is zero, so the destructor may see its address alone: a
# py_object argument would count references up and down again, and destroy it twice.
_address_of_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(
    ("PyCapsule_IsValid", pythonapi)
)
_address_of_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
    ("PyCapsule_GetPointer", pythonapi)
)
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


def _give_capsule_back(capsule: int) -> None:
    for name, struct in (
        (b"dltensor", lib.DLManagedTensor),
        (b"dltensor_versioned", lib.DLManagedTensorVersioned),
    ):
        if _address_of_capsule_is_valid(capsule, name):
            address = _address_of_capsule_pointer(capsule, name)
            _Deleter(struct.from_address(address).deleter)(address)


_drop_capsule = ctypes.PYFUNCTYPE(None, c_void_p)(_give_capsule_back)


def dtype_name(dtype: "lib.DLDataType") -> str:
    """NumPy's name of an element type: "float32"; "bfloat16" and others that NumPy lacks are named alike."""
    if dtype.code == 6:
        return "bool"
    name = _NAMES.get(dtype.code, f"code{dtype.code}_")
    return f"{name}{dtype.bits}"


def _dl_dtype(dtype: Any) -> "lib.DLDataType":
    if str(dtype) == "bfloat16":
        return lib.DLDataType(4, 16, 1)
    if dtype.kind not in _CODES or dtype.byteorder not in "=|<":
        raise lib.InvalidInput(
            f"expected integers, floats or booleans in this machine's byte order, found {dtype}"
        )
    return lib.DLDataType(_CODES[dtype.kind], 8 * dtype.itemsize, 1)


class View:
    """A DLTensor over somebody's memory, and all that has to live as long."""

    def __init__(self, tensor: "lib.DLTensor", keep: Any) -> None:
        self.tensor = tensor
        self.keep = keep


def _view_of_numpy(array: "np.ndarray[Any, Any]") -> View:
    shape = (c_int64 * array.ndim)(*array.shape)
    strides = None
    if not array.flags.c_contiguous:
        if any(s % array.itemsize for s in array.strides):
            array = np.ascontiguousarray(array)
        else:
            strides = (c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    tensor = lib.DLTensor(
        array.ctypes.data,
        lib.DLDevice(_CPU, 0),
        array.ndim,
        _dl_dtype(array.dtype),
        cast(shape, POINTER(c_int64)),
        cast(strides, POINTER(c_int64)) if strides else None,
        0,
    )
    return View(tensor, (array, shape, strides))


def _stream_for(array: Any, stream: Optional[int]) -> Dict[str, int]:
    """What `__dlpack__` is told of the stream that will read the array: on CUDA that of the model, or else the default stream."""
    device = getattr(array, "__dlpack_device__", None)
    if device is None or device()[0] != _CUDA:
        return {}
    return {"stream": stream or 1}


def _view_of_dlpack(array: Any, stream: Optional[int]) -> View:
    told = _stream_for(array, stream)
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **told)
    except TypeError:
        capsule = array.__dlpack__(**told)
    for name, struct in (
        (b"dltensor_versioned", lib.DLManagedTensorVersioned),
        (b"dltensor", lib.DLManagedTensor),
    ):
        if pythonapi.PyCapsule_IsValid(capsule, name):
            managed = struct.from_address(pythonapi.PyCapsule_GetPointer(capsule, name))
            return View(managed.dl_tensor, (array, capsule))
    raise lib.InvalidInput(f"{type(array).__name__}.__dlpack__ gave no DLPack capsule")


def view(array: Any, writable: bool = False, stream: Optional[int] = None) -> View:
    """The memory of `array` as a DLTensor: of a NumPy array, of an object with __dlpack__, or of what NumPy makes an array of.

    stream: the CUDA stream in which an array on a device will be read; its owner makes that stream wait for what fills the array.
    """
    if isinstance(array, np.ndarray):
        if writable and not array.flags.writeable:
            raise lib.InvalidInput("expected a writable array for an output, found a read-only one")
        return _view_of_numpy(array)
    if hasattr(array, "__dlpack__"):
        return _view_of_dlpack(array, stream)
    if writable:
        raise lib.InvalidInput(f"expected an array for an output, found {type(array).__name__}")
    return _view_of_numpy(np.asarray(array))


class Tensor:
    """An array that tec allocated. NumPy (`np.asarray`, `Tensor.numpy`) and DLPack (`torch.from_dlpack`) see its memory without a
    copy, and keep it alive."""

    def __init__(self, library: ctypes.CDLL, dtype: "lib.DLDataType", shape: Tuple[int, ...]) -> None:
        err = lib.ErrorText()
        self._library = library
        self._array = lib.check(
            library.tec_array_new(dtype, len(shape), (c_int64 * len(shape))(*shape), err), err
        )
        self._tensor = library.tec_array_tensor(self._array)
        self.shape = tuple(shape)
        self.dtype = dtype_name(dtype)

    def __del__(self) -> None:
        if getattr(self, "_array", None):
            self._library.tec_array_free(self._array)

    def __repr__(self) -> str:
        return f"tec.Tensor({self.dtype}, shape={self.shape})"

    def view(self) -> View:
        return View(self._tensor.contents, self)

    def _interface(self, typestr: str) -> Dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self._tensor.contents.data or 0, False),
            "version": 3,
        }

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        try:
            return self._interface(np.dtype(self.dtype).str)
        except TypeError:
            raise AttributeError(f"NumPy has no {self.dtype}; use DLPack") from None

    def numpy(self) -> "np.ndarray[Any, Any]":
        """A NumPy array over the same memory. NumPy has no bfloat16: that needs the package `ml_dtypes`."""
        if self.dtype != "bfloat16":
            return np.asarray(self)
        try:
            import ml_dtypes
        except ImportError:
            raise lib.Unsupported(
                "NumPy has no bfloat16: install ml_dtypes, or use DLPack (torch.from_dlpack)"
            ) from None
        return np.asarray(_Bits(self)).view(ml_dtypes.bfloat16)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _CPU, 0

    def __dlpack__(
        self,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Any = None,
        copy: Optional[bool] = None,
    ) -> Any:
        if stream is not None or (dl_device is not None and tuple(dl_device) != (_CPU, 0)):
            raise BufferError("this array lies in main memory, which has no streams")
        if copy:
            raise BufferError("tec hands out its memory and makes no copy; copy the result instead")
        err = lib.ErrorText()
        if max_version is not None and max_version[0] >= 1:
            managed = lib.check(self._library.tec_array_to_dlpack(self._array, err), err)
            return pythonapi.PyCapsule_New(
                cast(managed, c_void_p), b"dltensor_versioned", cast(_drop_capsule, c_void_p)
            )
        managed = lib.check(self._library.tec_array_to_dlpack_unversioned(self._array, err), err)
        return pythonapi.PyCapsule_New(cast(managed, c_void_p), b"dltensor", cast(_drop_capsule, c_void_p))


class _Bits:
    """The memory of a Tensor of 16-bit elements, seen by NumPy as unsigned integers."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.__array_interface__ = tensor._interface("<u2")
