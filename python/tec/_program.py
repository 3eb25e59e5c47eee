"""Programs of a module file: models with lists, trees and control flow of their own."""

import ctypes
import threading
from ctypes import byref, c_size_t, c_void_p, create_string_buffer
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _arrays as arrays
from . import _library as lib
from ._model import _encode, _Module, _open, _Source, _text
from ._rivals import Rival, Rivals


class Data:
    """A value of a data type: a constructor of the program and its fields. `Data("Node", left, right)`."""

    __slots__ = ("constructor", "fields")

    def __init__(self, constructor: str, *fields: Any) -> None:
        self.constructor = constructor
        self.fields = fields

    def __repr__(self) -> str:
        """The fields of data values are left out: a list may be long."""
        shown = ("..." if isinstance(f, Data) else repr(f) for f in self.fields)
        return f"Data({', '.join([repr(self.constructor), *shown])})"

    def __getitem__(self, i: int) -> Any:
        return self.fields[i]

    def __len__(self) -> int:
        return len(self.fields)


def make_list(items: Iterable[Any], cons: str = "Cons", nil: str = "Nil") -> Data:
    """A list of the type `Nil | Cons(T, List)` with these items."""
    made = Data(nil)
    for item in reversed(list(items)):
        made = Data(cons, item, made)
    return made


def read_list(value: Data) -> Iterator[Any]:
    """The items of a list of such a type, the first one first."""
    while len(value) == 2:
        yield value[0]
        value = value[1]


class ProgramRow(NamedTuple):
    """The measurements of one kernel, or of all instructions of one name. group: "kernel", "shape kernel", "memory" or "control"."""

    name: str
    origin: str
    group: str
    calls: int
    min_s: float
    median_s: float
    total_s: float
    share: float
    gflops: float
    gbytes: float


_GROUPS = ("kernel", "shape kernel", "memory", "control")


class _Instance:
    """One instance of a program. One thread uses it at a time."""

    def __init__(self, program: "Program") -> None:
        err = lib.ErrorText()
        self.library = program._module.library
        self.module = program._module
        self.handle = lib.check(
            self.library.tec_program_new(
                program._module.handle, program._function, byref(program._options), byref(err)
            ),
            err,
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.tec_program_free(self.handle)

    # ---- values in ----

    def _compose(self, value: Any, fields: List[int]) -> int:
        err, handles = lib.ErrorText(), (c_void_p * len(fields))(*fields)
        if isinstance(value, Data):
            made = self.library.tec_object_data(
                self.handle, value.constructor.encode(), handles, len(fields), byref(err)
            )
        else:
            made = self.library.tec_object_tuple(self.handle, handles, len(fields), byref(err))
        return int(lib.check(made, err))

    def _tensor(self, value: Any) -> int:
        err, view = lib.ErrorText(), arrays.view(value)
        return int(
            lib.check(self.library.tec_object_tensor(self.handle, byref(view.tensor), byref(err)), err)
        )

    def make(self, value: Any) -> int:
        """An object that the caller frees. Without recursion: a list may be long."""
        done: List[int] = []
        todo: List[Tuple[Any, bool]] = [(value, False)]
        try:
            while todo:
                value, ready = todo.pop()
                parts = (
                    value.fields
                    if isinstance(value, Data)
                    else value if isinstance(value, tuple) else None
                )
                if parts is None:
                    done.append(self._tensor(value))
                elif not ready:
                    todo.append((value, True))
                    todo.extend((part, False) for part in reversed(parts))
                else:
                    fields = done[len(done) - len(parts) :]
                    made = self._compose(value, fields)
                    del done[len(done) - len(parts) :]
                    self.free(fields)
                    done.append(made)
        except BaseException:
            self.free(done)
            raise
        return done[0]

    def free(self, handles: Iterable[Optional[int]]) -> None:
        for handle in handles:
            self.library.tec_object_free(handle)

    # ---- values out ----

    def _array(self, handle: int) -> "Optional[np.ndarray[Any, Any]]":
        view = self.library.tec_object_dltensor(handle)
        if not view:
            return None
        t = view.contents
        copy = arrays.Tensor(self.library, t.dtype, tuple(t.shape[k] for k in range(t.ndim)))
        size = copy.numpy().nbytes
        if size:
            ctypes.memmove(copy.view().tensor.data, t.data, size)
        return copy.numpy()

    def read(self, handle: int) -> Any:
        """The value of an object as arrays, tuples and Data."""
        done: List[Any] = []
        todo: List[Tuple[int, bool]] = [(handle, False)]
        while todo:
            handle, ready = todo.pop()
            array = None if ready else self._array(handle)
            n = self.library.tec_object_n_parts(handle)
            if array is not None:
                done.append(array)
            elif not ready:
                todo.append((handle, True))
                todo.extend((self.library.tec_object_part(handle, i), False) for i in reversed(range(n)))
            else:
                parts = done[len(done) - n :]
                del done[len(done) - n :]
                name = self.library.tec_object_constructor(self.handle, handle)
                done.append(Data(_text(name), *parts) if name else tuple(parts))
        return done[0]

    def run(self, values: List[Any], n_out: int) -> List[Any]:
        err, given = lib.ErrorText(), (c_void_p * len(values))()
        out = (c_void_p * n_out)()
        try:
            for i, value in enumerate(values):
                given[i] = self.make(value)
            lib.check(
                self.library.tec_program_run(self.handle, given, len(values), out, n_out, byref(err)), err
            )
            return [self.read(handle) for handle in out if handle]
        finally:
            self.free(given)
            self.free(out)


class Program:
    """A function of a program. Call it with one value for each input; any number of threads may do so at once.

    Values are NumPy arrays (or numbers, or whatever speaks DLPack), tuples of values, and `Data`.
    """

    def __init__(
        self,
        module: _Module,
        function: Optional[str] = None,
        *,
        threads: int = 0,
        max_steps: int = 0,
        max_depth: int = 0,
        max_bytes: int = 0,
        deadline: float = 0,
        profile: bool = False,
        rivals: Sequence[Rival] = (),
    ) -> None:
        self._module = module
        self._function = _encode(function)
        self.rivals = Rivals(module, rivals, threads)
        self._options = lib.ProgramOptions(
            lib.RunOptions(threads=threads, profile=profile, rivals=self.rivals.handle),
            max_steps,
            max_depth,
            max_bytes,
            deadline,
        )
        self._lock = threading.Lock()
        self._all = [_Instance(self)]
        self._idle = list(self._all)
        library, handle = module.library, self._all[0].handle
        self.inputs: Tuple[Tuple[str, str], ...] = tuple(
            (_text(library.tec_program_input_name(handle, i)), self._type(i))
            for i in range(library.tec_program_n_inputs(handle))
        )
        self._n_outputs = int(library.tec_program_n_outputs(handle))

    def _type(self, i: int) -> str:
        buffer = create_string_buffer(300)
        self._module.library.tec_program_input_text(self._all[0].handle, i, buffer, c_size_t(300))
        return _text(buffer.value)

    def __repr__(self) -> str:
        return f"tec.Program({', '.join(f'{name}: {type}' for name, type in self.inputs)})"

    def _take(self) -> _Instance:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        made = _Instance(self)
        with self._lock:
            self._all.append(made)
        return made

    def _values(self, args: Tuple[Any, ...], named: "dict[str, Any]") -> List[Any]:
        names = [name for name, _ in self.inputs]
        unknown = [name for name in named if name not in names[len(args) :]]
        if unknown or len(args) + len(named) != len(names):
            raise lib.InvalidInput(
                f"expected the inputs {', '.join(names)}; found {len(args)} by position"
                + "".join(f", '{name}'" for name in named)
            )
        return [*args, *(named[name] for name in names[len(args) :])]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs the program on values, by position or by name: its result, or a tuple of its results."""
        values, instance = self._values(args, named), self._take()
        try:
            results = instance.run(values, self._n_outputs)
        finally:
            with self._lock:
                self._idle.append(instance)
        return results[0] if len(results) == 1 else tuple(results)

    def profile(self) -> List[ProgramRow]:
        """What ran since loading, of a program that was loaded with profile=True; of several threads the busiest."""
        if not self._options.run.profile:
            raise lib.InvalidInput("this program is not measured: load it with profile=True")
        with self._lock:
            return max((self._rows(i) for i in self._all), key=lambda rows: sum(r.calls for r in rows))

    def _rows(self, instance: _Instance) -> List[ProgramRow]:
        rows, r = [], lib.ProfileRow()
        while instance.library.tec_program_profile(instance.handle, len(rows), byref(r)):
            rows.append(
                ProgramRow(
                    _text(r.name),
                    _text(r.origin),
                    _GROUPS[r.group],
                    r.calls,
                    r.min_s,
                    r.median_s,
                    r.total_s,
                    r.share,
                    r.gflops,
                    r.gbytes,
                )
            )
        return rows


def load_program(path: _Source, function: Optional[str] = None, **options: Any) -> Program:
    """Opens the program of a module file that `tec compile` wrote, or of the file's bytes.

    function: which function runs (main). options: threads, profile, and limits of a run: max_steps, max_depth, max_bytes
    (0: three quarters of the machine's memory; -1: no limit), deadline.
    """
    return Program(_open(path), function, **options)
