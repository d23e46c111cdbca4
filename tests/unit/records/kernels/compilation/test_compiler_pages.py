"""Memory of the compiler is given back, and the compiler works afterwards."""

from __future__ import annotations

import subprocess
import sys

from octavo.records.kernels.compilation.compiler_pages import Mapping, mappings

SMAPS = """\
7f0000000000-7f0000002000 r-xp 00001000 fe:00 99                         /somewhere/libllvmlite.so
Size:                  8 kB
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
7f0000002000-7f0000003000 r--p 00003000 fe:00 99                         /somewhere/libllvmlite.so
Rss:                   4 kB
Anonymous:             4 kB
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
Rss:                   4 kB
Anonymous:             0 kB
"""

PROGRAM = """
from pathlib import Path
import llvmlite.binding as llvm
from octavo.records.kernels.compilation.compiler_pages import give_back_pages, mappings

def resident():
    lines = Path("/proc/self/smaps").read_text().splitlines()
    size, is_code = 0, False
    for line in lines:
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            is_code = "r-xp" in line and "libllvmlite.so" in line
        elif is_code and line.startswith("Rss:"):
            size += int(line.split()[1])
    return size

def compile_something():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    module = llvm.parse_assembly("define i32 @f() { ret i32 7 }")
    return machine.emit_object(module)

first = compile_something()
before = resident()
given_back = give_back_pages()
after = resident()
assert compile_something() == first
print(before > 4096, given_back > 1 << 20, after * 2 < before)
"""


def test_mappings_are_read_with_what_was_changed_in_them() -> None:
    found = list(mappings(SMAPS.splitlines(keepends=True)))
    assert found == [
        Mapping(0x7F0000000000, 0x7F0000002000, "r-xp", "/somewhere/libllvmlite.so", 0),
        Mapping(0x7F0000002000, 0x7F0000003000, "r--p", "/somewhere/libllvmlite.so", 4),
        Mapping(0x7F0000003000, 0x7F0000004000, "rw-p", "", 0),
    ]
    assert [each.is_as_in_the_file for each in found] == [True, False, False]


def test_code_is_given_back_and_runs_again() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr
