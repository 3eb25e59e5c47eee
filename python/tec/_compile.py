"""ONNX models and programs to modules, through the compiler library."""

import ctypes
import os
from ctypes import byref, c_char_p, c_int64
from typing import Any, Mapping, Optional, Union

from . import _library as lib
from ._model import Model, _Module, load
from ._program import Program, load_program

_Path = Union[str, "os.PathLike[str]"]


def _fail(library: ctypes.CDLL, context: int) -> None:
    lib.raise_status(
        library.tec_context_status(context),
        (library.tec_context_error(context) or b"unknown error").decode(errors="replace"),
    )


def _import_options(dims: Mapping[str, int]) -> "lib.ImportOptions":
    names = (c_char_p * len(dims))(*(name.encode() for name in dims))
    values = (c_int64 * len(dims))(*dims.values())
    return lib.ImportOptions(len(dims), names, values)


def _set_limits(library: ctypes.CDLL, context: int, limits: Optional[Mapping[str, int]]) -> None:
    for name, value in (limits or {}).items():
        if not library.tec_context_set_limit(context, name.encode(), value):
            _fail(library, context)


def compile(
    model: _Path,
    output: Optional[_Path] = None,
    *,
    target: Optional[str] = None,
    dims: Optional[Mapping[str, int]] = None,
    threads: int = 0,
    strict: bool = False,
    precision: Optional[str] = None,
    records: Optional[_Path] = None,
    dispatch: Optional[str] = None,
    profile: bool = False,
    limits: Optional[Mapping[str, int]] = None,
) -> Model:
    """Compiles an ONNX model for this machine and loads it.

    output: also keep the module as this file, for `tec.load`; needed to compile for another `target` (as `tec compile --target`).
    dims: values of symbolic dimensions, by name or as "INPUT.AXIS"; others stay symbolic. threads: to schedule for and to run with; 0: all.
    precision: "tf32" or "fast" let kernels of a GPU compute less exactly, as `tec compile --precision`.
    strict: no fused multiply-adds, sums in the order of their schedules (which may have partial sums). records: a record store of `tec tune`, for measured schedules.
    dispatch: "n%8" compiles a version of each product for each remainder of the symbolic dimension n by 8.
    limits: of what is read and made, by name, as `tec help limits` lists them.
    Raises CompilerMissing where the library libtec is not installed.
    """
    library = lib.compiler()
    context = library.tec_context_new()
    store = None
    try:
        _set_limits(library, context, limits)
        graph = library.tec_graph_import(context, os.fsencode(model), byref(_import_options(dims or {})))
        if not graph:
            _fail(library, context)
        if records is not None:
            store = library.tec_records_open(context, os.fsencode(records))
            if not store:
                _fail(library, context)
        options = lib.BuildOptions(
            target=target.encode() if target else None,
            threads=threads,
            strict=strict,
            precision=precision.encode() if precision else None,
            records=store,
            dispatch=dispatch.encode() if dispatch else None,
        )
        if output is not None:
            if not library.tec_graph_build_file(graph, byref(options), os.fsencode(output)):
                _fail(library, context)
            return load(output, threads=threads, profile=profile)
        handle = library.tec_graph_build(graph, byref(options))
        if not handle:
            _fail(library, context)
        return Model(_Module(library, handle, os.fspath(model)), threads=threads, profile=profile)
    finally:
        if store:
            library.tec_records_close(store)
        library.tec_context_free(context)


def compile_program(
    program: _Path,
    params: Optional[_Path] = None,
    output: Optional[_Path] = None,
    *,
    target: Optional[str] = None,
    strict: bool = False,
    precision: Optional[str] = None,
    **options: Any,
) -> Program:
    """Compiles a program (a .tecp file) for this machine and loads it.

    params: the .safetensors file with the program's parameters. output, target, strict, precision: as for `compile`. options: those of
    `load_program`. Raises CompilerMissing where the library libtec is not installed.
    """
    library = lib.compiler()
    context = library.tec_context_new()
    try:
        graph = library.tec_graph_read_program(
            context, os.fsencode(program), None if params is None else os.fsencode(params)
        )
        if not graph:
            _fail(library, context)
        built = lib.BuildOptions(target=target.encode() if target else None, strict=strict, precision=precision.encode() if precision else None)
        if output is not None:
            if not library.tec_graph_build_file(graph, byref(built), os.fsencode(output)):
                _fail(library, context)
            return load_program(output, **options)
        handle = library.tec_graph_build(graph, byref(built))
        if not handle:
            _fail(library, context)
        return Program(_Module(library, handle, os.fspath(program)), **options)
    finally:
        library.tec_context_free(context)
