"""Functions of shared libraries in the place of kernels, where they are faster."""

import ctypes
import os
from ctypes import byref, c_int, c_int64, c_void_p
from typing import Any, NamedTuple, Sequence, Tuple, Union

from . import _library as lib

_POWERS = tuple(1 << i for i in range(9))


class Rival(NamedTuple):
    """A function of a shared library (tec/kernel.h) that computes what a kernel computes.

    Both are measured at the extents of the kernel's symbol, on random numbers; of a kernel without one, once. The function then
    runs in the kernel's place where it is at least 3 % faster. One with other results is refused.
    """

    kernel: str
    library: Union[str, "os.PathLike[str]"]
    function: str
    extents: Sequence[int] = _POWERS


class Rivals:
    """The rivals of one module, measured. `faster` has for each at how many of its extents it won."""

    def __init__(self, module: Any, wanted: Sequence[Rival], threads: int) -> None:
        err = lib.ErrorText()
        self._library = module.library
        self._libraries = [ctypes.CDLL(os.path.abspath(os.fspath(one.library))) for one in wanted]
        self.handle = lib.check(self._library.tec_rivals_new(byref(err)), err)
        self.faster: Tuple[int, ...] = tuple(
            self._add(module, one, library, threads) for one, library in zip(wanted, self._libraries)
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.tec_rivals_free(self.handle)

    def _add(self, module: Any, one: Rival, library: ctypes.CDLL, threads: int) -> int:
        err, won = lib.ErrorText(), c_int()
        try:
            function = ctypes.cast(getattr(library, one.function), c_void_p)
        except AttributeError:
            raise lib.InvalidInput(f"{os.fspath(one.library)} has no function '{one.function}'") from None
        extents = (c_int64 * len(one.extents))(*one.extents)
        options = lib.RunOptions(threads=threads)
        added = self._library.tec_rivals_add(
            self.handle,
            module.handle,
            one.kernel.encode(),
            function,
            extents,
            len(one.extents),
            byref(options),
            byref(won),
            byref(err),
        )
        lib.check(added, err)
        return won.value
