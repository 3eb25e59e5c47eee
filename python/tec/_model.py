"""Models and functions of a module file."""

import ctypes
import os
import threading
from contextlib import contextmanager
from ctypes import POINTER, byref
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _arrays as arrays
from . import _library as lib
from ._rivals import Rival, Rivals

_Path = Union[str, "os.PathLike[str]"]
_Source = Union[str, "os.PathLike[str]", bytes]  # the path of a module file, or the file's bytes


class TensorSpec(NamedTuple):
    """What an input or output looks like."""

    name: str
    dtype: str
    shape: Tuple[Optional[int], ...]  # None: depends on the inputs' shapes
    text: str  # "f32[batch, 1, 8, 8]": extents that depend on symbols are shown as expressions


class ParamSpec(NamedTuple):
    """What a parameter of a function looks like."""

    name: str
    dtype: str
    shape: Tuple[Optional[int], ...]  # None: depends on a symbol
    text: str  # "f32[n, 4]"
    is_output: bool
    is_scalar: bool  # an array of no dimensions


class ProfileRow(NamedTuple):
    """The measurements of one step. Times are in seconds; gflops and gbytes are 10^9 a second, 0 where unknown."""

    name: str
    nodes: str
    function: str
    origin: str
    calls: int
    min_s: float
    median_s: float
    total_s: float
    gflops: float
    gbytes: float
    share: float


class Profile(List[ProfileRow]):
    """The rows of a profile, in the order of execution; prints as a table."""

    def __str__(self) -> str:
        lines = [
            f"{'step':<32} {'calls':>7} {'median ms':>10} {'total ms':>10} {'share':>6} {'GFLOP/s':>8} {'GB/s':>7}  origin"
        ]
        for r in self:
            lines.append(
                f"{r.name[:32]:<32} {r.calls:>7} {1e3 * r.median_s:>10.4f} {1e3 * r.total_s:>10.3f} {100 * r.share:>5.1f}% "
                f"{r.gflops:>8.1f} {r.gbytes:>7.1f}  {r.origin}"
            )
        return "\n".join(lines)


class _Module:
    """An open module; closed with its last user."""

    def __init__(self, library: ctypes.CDLL, handle: int, name: str) -> None:
        self.library = library
        self.handle = handle
        self.name = name

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.tec_module_free(self.handle)


class _Device:
    """A device that stays open as long as what runs on it."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        err = lib.ErrorText()
        self.library = library
        self.handle = lib.check(library.tec_device_open(name.encode(), err), err)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.tec_device_free(self.handle)


def _open(source: _Source) -> _Module:
    library, err = lib.runtime(), lib.ErrorText()
    if isinstance(source, bytes):
        opened = library.tec_module_open_bytes(source, len(source), None, err)
        return _Module(library, lib.check(opened, err), "module in memory")
    name = os.fspath(source)
    return _Module(library, lib.check(library.tec_module_open(os.fsencode(name), None, err), err), name)


def _text(value: Optional[bytes]) -> str:
    return value.decode(errors="replace") if value else ""


def _encode(name: Optional[str]) -> Optional[bytes]:
    return None if name is None else name.encode()


class _Executor:
    """One executor of a graph. One thread uses it at a time."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.library = model._module.library
        err = lib.ErrorText()
        self.handle = lib.check(
            self.library.tec_executor_new(model._module.handle, model._graph, byref(model._options), err), err
        )
        self.shapes: Optional[Tuple[Tuple[int, ...], ...]] = None  # of the inputs of the last prepare
        self.output_shapes: List[Tuple[int, ...]] = []

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.tec_executor_free(self.handle)

    def _call(self, name: str, *args: Any) -> None:
        err = lib.ErrorText()
        lib.check(getattr(self.library, name)(self.handle, *args, byref(err)), err)

    def _give_input(self, i: int, view: arrays.View) -> None:
        """Lets the executor read the caller's memory; copies only what is not compact, or not aligned."""
        tensor, err = view.tensor, lib.ErrorText()
        if self.library.tec_tensor_is_compact(byref(tensor)):
            if self.library.tec_executor_bind_input(self.handle, i, byref(tensor), byref(err)):
                return
            self._call("tec_executor_bind_input", i, None)
        self._call("tec_executor_set_input", i, byref(tensor))

    def _prepare(self, shapes: Tuple[Tuple[int, ...], ...], n_outputs: int) -> None:
        """Works out the shapes of the outputs, where those of the inputs have changed."""
        if shapes == self.shapes:
            return
        self.shapes = None
        for i in range(n_outputs):
            self._call("tec_executor_bind_output", i, None)
        self._call("tec_executor_prepare")
        outputs = [self.library.tec_executor_output(self.handle, i).contents for i in range(n_outputs)]
        self.output_shapes = [tuple(t.shape[k] for k in range(t.ndim)) for t in outputs]
        self.shapes = shapes

    def run(
        self, inputs: List[arrays.View], given: Mapping[int, arrays.View]
    ) -> List[Optional[arrays.Tensor]]:
        """Runs on the inputs. Outputs that are not given are allocated."""
        n = len(self.model.outputs)
        for i, view in enumerate(inputs):
            self._give_input(i, view)
        self._prepare(tuple(tuple(v.tensor.shape[k] for k in range(v.tensor.ndim)) for v in inputs), n)
        made: List[Optional[arrays.Tensor]] = [None] * n
        for i in range(n):
            if i in given:
                view = given[i]
            else:
                tensor = arrays.Tensor(self.library, self.model._output_dtypes[i], self.output_shapes[i])
                made[i], view = tensor, tensor.view()
            self._call("tec_executor_bind_output", i, byref(view.tensor))
        self._call("tec_executor_run")
        return made

    def profile(self) -> Profile:
        rows, row = Profile(), lib.ProfileRow()
        for i in range(self.library.tec_executor_n_steps(self.handle)):
            if self.library.tec_executor_profile(self.handle, i, byref(row)):
                rows.append(
                    ProfileRow(
                        _text(row.name),
                        _text(row.nodes),
                        _text(row.function),
                        _text(row.origin),
                        row.calls,
                        row.min_s,
                        row.median_s,
                        row.total_s,
                        row.gflops,
                        row.gbytes,
                        row.share,
                    )
                )
        return rows


class Model:
    """A model of a module file. Call it with arrays.

    Any number of threads may call one model: each call uses an executor of its own while it runs, and other Python threads
    run meanwhile. Executors share the weights and the thread pool.
    """

    def __init__(
        self,
        module: _Module,
        graph: Optional[str] = None,
        *,
        threads: int = 0,
        profile: bool = False,
        check_nan: bool = False,
        rivals: Sequence[Rival] = (),
        max_steps: int = 0,
        deadline: float = 0,
        device: Optional[str] = None,
        stream: Optional[int] = None,
    ) -> None:
        if threads < 0:
            raise lib.InvalidInput(f"threads: expected 0 (all) or a positive number, found {threads}")
        self._module = module
        self._device = None if device is None else _Device(module.library, device)
        self._stream = stream
        self._graph = _encode(graph)
        self.rivals = Rivals(module, rivals, threads)
        self._options = lib.RunOptions(
            threads=threads,
            profile=profile,
            check_nan=check_nan,
            rivals=self.rivals.handle,
            max_steps=max_steps,
            deadline=deadline,
            device=self._device.handle if self._device else None,
            stream=stream,
        )
        self._lock = threading.Lock()
        self._all: List[_Executor] = []
        first = _Executor(self)
        self._all.append(first)
        self._free = [first]
        n_inputs = module.library.tec_executor_n_inputs(first.handle)
        n_outputs = module.library.tec_executor_n_outputs(first.handle)
        self.inputs: Tuple[TensorSpec, ...] = tuple(
            self._spec(first, "tec_executor_input_info", i)[0] for i in range(n_inputs)
        )
        described = [self._spec(first, "tec_executor_output_info", i) for i in range(n_outputs)]
        self.outputs: Tuple[TensorSpec, ...] = tuple(spec for spec, _ in described)
        self._output_dtypes = [dtype for _, dtype in described]

    @staticmethod
    def _spec(executor: _Executor, function: str, i: int) -> Tuple[TensorSpec, "lib.DLDataType"]:
        info = lib.TensorInfo()
        executor._call(function, i, byref(info))
        shape = tuple(None if info.shape[k] < 0 else info.shape[k] for k in range(info.ndim))
        dtype = lib.DLDataType(info.dtype.code, info.dtype.bits, info.dtype.lanes)
        return TensorSpec(_text(info.name), arrays.dtype_name(dtype), shape, _text(info.text)), dtype

    @property
    def target(self) -> str:
        """What the module was compiled for."""
        return _text(self._module.library.tec_module_target(self._module.handle))

    def __repr__(self) -> str:
        def listed(specs: Tuple[TensorSpec, ...]) -> str:
            return ", ".join(f"{s.name}: {s.text}" for s in specs)

        return f"tec.Model({self._module.name!r}: ({listed(self.inputs)}) -> ({listed(self.outputs)}))"

    @contextmanager
    def _executor(self) -> Iterator[_Executor]:
        with self._lock:
            executor = self._free.pop() if self._free else None
        if executor is None:
            executor = _Executor(self)
            with self._lock:
                self._all.append(executor)
        try:
            yield executor
        finally:
            with self._lock:
                self._free.append(executor)

    def _arguments(self, args: Tuple[Any, ...], named: Mapping[str, Any]) -> List[Any]:
        names = [spec.name for spec in self.inputs]
        if len(args) > len(names):
            raise lib.InvalidInput(
                f"expected at most {len(names)} inputs ({', '.join(names)}), found {len(args)}"
            )
        found: Dict[str, Any] = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise lib.InvalidInput(f"no input is called '{name}'; there are {', '.join(names)}")
            if name in found:
                raise lib.InvalidInput(f"input '{name}' is given twice")
            found[name] = value
        missing = [name for name in names if name not in found]
        if missing:
            raise lib.InvalidInput(
                f"missing input '{missing[0]}': {self.inputs[names.index(missing[0])].text}"
            )
        return [found[name] for name in names]

    def _given_outputs(self, outputs: Mapping[str, Any]) -> Dict[int, arrays.View]:
        names = [spec.name for spec in self.outputs]
        for name in outputs:
            if name not in names:
                raise lib.InvalidInput(f"no output is called '{name}'; there are {', '.join(names)}")
        return {names.index(name): arrays.view(value, writable=True) for name, value in outputs.items()}

    def run(self, inputs: Mapping[str, Any], outputs: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Runs the model on `inputs`, by name. What `outputs` names is written into these arrays, without a copy; the others are
        `tec.Tensor`s. Gives all outputs by name. Inputs are read where they are, unless their strides are not compact.
        """
        if not isinstance(inputs, Mapping):
            names = ", ".join(f"'{spec.name}': ..." for spec in self.inputs)
            raise lib.InvalidInput(
                f"expected the inputs by name, as {{{names}}}, found a {type(inputs).__name__}"
            )
        views = [arrays.view(value, stream=self._stream) for value in self._arguments((), inputs)]
        given = self._given_outputs(outputs or {})
        with self._executor() as executor:
            made = executor.run(views, given)
        return {
            spec.name: (outputs or {}).get(spec.name) if i in given else made[i]
            for i, spec in enumerate(self.outputs)
        }

    def __call__(self, *args: Any, **named: Any) -> Dict[str, "np.ndarray[Any, Any]"]:
        """Runs the model on arrays, by position or by name, and gives its outputs by name as NumPy arrays of their own."""
        values = self._arguments(args, named)
        results = self.run({spec.name: value for spec, value in zip(self.inputs, values)})
        return {name: tensor.numpy() for name, tensor in results.items()}

    def profile(self) -> Profile:
        """The time of each step since loading or `reset_profile`; of a model that was loaded with profile=True. Calls of several
        threads at once are measured by executors of their own, of which this gives the busiest."""
        if not self._options.profile:
            raise lib.InvalidInput("this model is not measured: load it with profile=True")
        with self._lock:
            return max((e.profile() for e in self._all), key=lambda p: sum(r.calls for r in p))

    def reset_profile(self) -> None:
        with self._lock:
            for executor in self._all:
                executor.library.tec_executor_profile_reset(executor.handle)


class Function:
    """One function of a module file: a kernel. Call it with one array for each parameter, outputs included."""

    def __init__(
        self,
        module: _Module,
        name: Optional[str] = None,
        *,
        threads: int = 0,
        rivals: Sequence[Rival] = (),
    ) -> None:
        err = lib.ErrorText()
        self.rivals = Rivals(module, rivals, threads)
        self._module = module
        self._lock = threading.Lock()
        self._handle = None
        library = module.library
        options = lib.RunOptions(threads=threads, rivals=self.rivals.handle)
        self._handle = lib.check(
            library.tec_function_new(module.handle, _encode(name), byref(options), byref(err)), err
        )
        self.specs: Tuple[ParamSpec, ...] = tuple(
            self._spec(i) for i in range(library.tec_function_n_params(self._handle))
        )
        self.params: Tuple[str, ...] = tuple(f"{spec.name}: {spec.text}" for spec in self.specs)

    def _spec(self, i: int) -> ParamSpec:
        err, info = lib.ErrorText(), lib.ParamInfo()
        lib.check(self._module.library.tec_function_param_info(self._handle, i, byref(info), byref(err)), err)
        shape = tuple(None if n < 0 else n for n in info.shape[: info.ndim])
        name, dtype, text = _text(info.name), arrays.dtype_name(info.dtype), _text(info.text)
        return ParamSpec(name, dtype, shape, text, info.is_output, info.is_scalar)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._module.library.tec_function_free(self._handle)

    def __repr__(self) -> str:
        return f"tec.Function({', '.join(self.params)})"

    def __call__(self, *args: Any) -> None:
        """Calls it on NumPy or DLPack arrays, which it reads and writes where they are."""
        views = [arrays.view(a) for a in args]
        pointers = (POINTER(lib.DLTensor) * len(views))(*(ctypes.pointer(v.tensor) for v in views))
        err = lib.ErrorText()
        with self._lock:
            lib.check(
                self._module.library.tec_function_call(self._handle, pointers, len(views), byref(err)), err
            )


def load(
    path: _Source,
    graph: Optional[str] = None,
    *,
    threads: int = 0,
    profile: bool = False,
    check_nan: bool = False,
    rivals: Sequence[Rival] = (),
    max_steps: int = 0,
    deadline: float = 0,
    device: Optional[str] = None,
    stream: Optional[int] = None,
) -> Model:
    """Opens a module file that `tec compile` or `tec.compile` wrote; `path` may be the file's bytes instead.

    graph: which model of the module; None where there is only one. threads: at most so many of the process's pool; 0: all.
    profile: measure each step, for Model.profile. check_nan: fail at the first step that writes a NaN.
    rivals: functions of libraries in the place of kernels where they are faster; Model.rivals.faster says how often.
    deadline: seconds for one run. max_steps: iterations of loops around launches on a device in one run. 0: no limit.
    device: which device runs the steps that were compiled for its kind, "cuda:1"; None: the first of the kind.
    stream: a CUDA stream or OpenCL queue of that device, as a number (`torch.cuda.Stream().cuda_stream`; 1: CUDA's default
    stream): launches and copies go there. Inputs that lie on a CUDA device are read in it, so their owner waits for nothing.
    """
    return Model(
        _open(path),
        graph,
        threads=threads,
        profile=profile,
        check_nan=check_nan,
        rivals=rivals,
        max_steps=max_steps,
        deadline=deadline,
        device=device,
        stream=stream,
    )


def load_function(
    path: _Source, name: Optional[str] = None, *, threads: int = 0, rivals: Sequence[Rival] = ()
) -> Function:
    """Opens one function of a module file that `tec te -o` wrote, or of its bytes.

    name: None where there is only one. rivals: as for `load`.
    """
    return Function(_open(path), name, threads=threads, rivals=rivals)
