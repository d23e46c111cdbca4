"""Generate machine code with Numba for one kernel and everything that it calls.

Numba generates machine code for every function that is compiled, so that Python could call it. Here only kernels are
called. Functions that they call are linked into them, and optimized there. So Numba is given a target of its own, in
which only kernels are optimized and become machine code; this halves the work of LLVM. Other users of Numba in the
same process are not affected.

A function is compiled once for each set of options. So whether it is to be inlined is no option, but an attribute that
is added when the function is declared.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba import _dynfunc
from numba.core import codegen, compiler, cpu, sigutils, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from octavo.records.kernels.compilation.machine_code import MachineCode


class _Library(codegen.AOTCodeLibrary):
    """The code of one function, and of those that it calls."""

    is_kernel = False

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        if self.is_kernel:
            super()._optimize_final_module()


class _Codegen(codegen.JITCPUCodegen):
    """Numba's generator for this processor; it runs nothing that it generates."""

    _library_class = _Library

    def _add_module(self, module: Any) -> None:
        pass


class _Target(cpu.CPUContext):
    """Numba's target for this processor, with that generator."""

    def init(self) -> None:
        super().init()
        self._internal_codegen = _Codegen("octavo")
        self.inlined: frozenset[tuple[str, str]] = frozenset()

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        if (fndesc.modname, fndesc.qualname) in self.inlined:
            fndesc.inline = True
        return super().declare_function(module, fndesc)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """Return a placeholder for a function that only kernels call; Numba wants one for each."""
        library._ensure_finalized()
        return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", 1, env, (library,))


def generate(
    kernel: Callable[..., Any], signature: Any, options: dict[str, Any], inlined: frozenset[Callable[..., Any]]
) -> MachineCode:
    """Compile `kernel` for one signature."""
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {"nopython": True, **options})
    flags.no_compile = True
    arguments, result = sigutils.normalize_signature(signature)
    with global_compiler_lock, _own_target() as target, _no_collection():
        target.inlined = frozenset((each.__module__, each.__qualname__) for each in inlined)
        library = target.codegen().create_library(kernel.__qualname__)
        library.is_kernel = True
        compiled = compiler.compile_extra(
            cpu_target.typing_context, target, kernel, arguments, result, flags, {}, library=library
        )
        library.finalize()
        assert not library.has_dynamic_globals, "kernels get all that they use as arguments"
        assert not compiled.environment.consts, "kernels get all that they use as arguments"
        module = library._final_module
        used = {
            each.name for group in (module.functions, module.global_variables) for each in group if each.is_declaration
        }
        return MachineCode(
            target.codegen()._tm.emit_object(module),
            compiled.fndesc.llvm_cpython_wrapper_name,
            compiled.fndesc.env_name,
            tuple(sorted(name for name in used if not name.startswith("llvm."))),
        )


def prepare() -> None:
    """Do what takes time and is the same for all kernels."""
    with global_compiler_lock, _own_target():
        pass


@cache
def _target() -> tuple[Any, _Target]:
    types = typing.Context()
    return types, _Target(types, "cpu")


@contextmanager
def _own_target() -> Iterator[_Target]:
    """Have everything that Numba compiles meanwhile be compiled for `_Target`."""
    types, target = _target()
    before = dict(vars(cpu_target))
    vars(cpu_target).update(_toplevel_typing_context=types, _toplevel_target_context=target)
    try:
        types.refresh()
        target.refresh()
        yield target
    finally:
        vars(cpu_target).clear()
        vars(cpu_target).update(before)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Do not look for garbage meanwhile: a tenth of the time goes to that, and next to nothing is found."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
