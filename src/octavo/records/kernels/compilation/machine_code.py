"""Turn the object code of a compiled kernel into a function that Python can call, without importing Numba.

Importing Numba takes ten times as long as loading all kernels. What compiled code needs from it at run time is in two
of its extension modules, which can be imported by themselves: one has the C functions that the code calls, the other
makes a built-in function from an address. A process that compiles nothing therefore imports only llvmlite.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from llvmlite import binding

# Settings of Numba that change what it generates.
_SETTINGS: Final = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_OPT")


class MachineCode(NamedTuple):
    """A compiled kernel."""

    object_code: bytes
    entry: str  # the symbol of the function that Python calls: it takes `self` and a tuple of arguments
    environment: str  # the symbol of a pointer that has to be set before the first call
    symbols: tuple[str, ...]  # what the object code needs from Python and from Numba


class _Unloadable(Exception):
    """Raised if machine code cannot be loaded into this process; the text says why."""


def processor() -> str:
    """Describe for which processor kernels are compiled in this process."""
    features = binding.get_host_cpu_features().flatten()
    settings = [os.environ.get(name) for name in _SETTINGS]
    return repr((binding.get_process_triple(), binding.get_host_cpu_name(), features, settings))


@functools.cache
def checks_fast() -> bool:
    """Return whether the processor has a known instruction for CRC-32C.

    Without one, a library is faster than the kernels.
    """
    return platform.machine() in ("x86_64", "AMD64") and bool(binding.get_host_cpu_features().get("sse4.2"))


_loading = threading.Lock()  # LLVM's engine is not made for several threads


def _renew_lock() -> None:
    global _loading
    _loading = threading.Lock()


# A fork waits until nothing is being loaded, so that the child does not inherit a half-linked engine.
os.register_at_fork(
    before=lambda: _loading.acquire(), after_in_parent=lambda: _loading.release(), after_in_child=_renew_lock
)


def load(code: MachineCode, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs `code`, which was compiled from `kernel`."""
    with _loading:
        engine = _engine()
        unknown = [name for name in code.symbols if not binding.address_of_symbol(name)]
        if unknown:  # LLVM would end the process
            raise _Unloadable(f"compiled kernels need {', '.join(unknown)}, which this Python does not have")
        engine.add_object_file(binding.ObjectFileRef.from_data(code.object_code))
        engine.finalize_object()
        made_by = _extension("_dynfunc")
        environment = made_by.Environment({})  # kernels have no constants in it, but must have one
        ctypes.c_void_p.from_address(engine.get_global_value_address(code.environment)).value = id(environment)
        address = engine.get_function_address(code.entry)
        module = sys.modules[kernel.__module__]
        function: Callable[..., Any] = made_by.make_function(
            module, kernel.__name__, kernel.__doc__, address, environment, (environment, engine)
        )
        return function


@functools.cache
def _engine() -> Any:
    """Return LLVM's linker, which knows the symbols that compiled kernels use."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.add_symbol("_Py_NoneStruct", id(None))
    for module in (_extension("_helperlib"), _extension("_dynfunc")):
        for name, address in module.c_helpers.items():
            binding.add_symbol(f"numba_{name}", address)
    for each in vars(builtins).values():
        if isinstance(each, type) and issubclass(each, BaseException):
            binding.add_symbol(f"PyExc_{each.__name__}", id(each))
    triple = binding.get_process_triple()
    target = binding.Target.from_triple(triple).create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(f'target triple = "{triple}"'), target)


@functools.cache
def _extension(name: str) -> ModuleType:
    """Import an extension module of Numba, but not Numba."""
    full_name = f"numba.{name}"
    if full_name in sys.modules:
        return sys.modules[full_name]
    package = find_spec("numba")
    if package is None or package.origin is None:
        raise ImportError("Numba is not installed", name="numba")
    folder = Path(package.origin).parent
    path = next((path for suffix in EXTENSION_SUFFIXES if (path := folder / (name + suffix)).exists()), None)
    if path is None:
        raise ImportError(f"Numba has no {name}", name=full_name)
    loader = ExtensionFileLoader(full_name, str(path))
    spec = spec_from_file_location(full_name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
