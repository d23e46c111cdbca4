"""Replace the functions of `machine` for checksums by instructions of the processor, or by tables if it has none.

Importing this module registers the replacements with Numba.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from octavo.records.kernels import checksum, machine
from octavo.records.kernels.compilation.folding import BLOCK, VECTOR, fold_crc32c
from octavo.records.kernels.compilation.machine_code import checks_fast
from octavo.records.kernels.compilation.options import CHECKED, OPTIONS


@intrinsic
def _crc32_instruction(_context: Any, value: Any, data: Any, at: Any) -> Any:
    """Apply the CRC instruction of SSE 4.2 to the eight bytes at `at`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        long = ir.IntType(64)
        array = context.make_array(signature.args[1])(context, builder, args[1])
        word = builder.load(builder.bitcast(builder.gep(array.data, [args[2]]), long.as_pointer()), align=1)
        name = "llvm.x86.sse42.crc32.64.64"
        kind = ir.FunctionType(long, [long, long])
        instruction = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(instruction, [args[0], word])

    return types.int64(types.int64, data, types.int64), generate


@overload(machine.crc32c_step, jit_options=OPTIONS)
def _crc32c_step(value: Any, data: Any, at: Any) -> Any:
    def instruction(value: Any, data: Any, at: Any) -> Any:
        return _crc32_instruction(numba.int64(value), data, numba.int64(at))

    def checked_instruction(value: Any, data: Any, at: Any) -> Any:
        if at < 0 or at + 8 > len(data):
            raise IndexError("a kernel would read outside its array")
        return _crc32_instruction(numba.int64(value), data, numba.int64(at))

    def bit_by_bit(value: Any, data: Any, at: Any) -> Any:  # correct but slow; `checks_fast` is then False
        for byte in range(at, at + 8):
            value ^= data[byte] & 0xFF
            for _ in range(8):
                value = (value >> 1) ^ (checksum.CASTAGNOLI if value & 1 else 0)
        return value

    if not checks_fast():
        return bit_by_bit
    return checked_instruction if CHECKED else instruction


@overload(machine.crc32c_folded, jit_options=OPTIONS)
def _crc32c_folded(value: Any, data: Any, at: Any, end: Any) -> Any:
    def none(value: Any, data: Any, at: Any, end: Any) -> Any:
        return at, value

    def folded(value: Any, data: Any, at: Any, end: Any) -> Any:
        if CHECKED and (at < 0 or end > len(data)):
            raise IndexError("a kernel would read outside its array")
        blocks = (end - at) // BLOCK
        if blocks <= 0:
            return at, value
        vectors = (end - at - blocks * BLOCK) // VECTOR
        return at + blocks * BLOCK + vectors * VECTOR, fold_crc32c(value, data, at, blocks, vectors)

    return folded if BLOCK else none


@register_jitable(**OPTIONS)
def _slicing(tables: Any, data: Any, start: Any, end: Any, value: Any) -> Any:
    """Advance the register of a CRC by eight bytes per step, with the tables of `slicing_tables`."""
    at = start
    while at + 8 <= end:
        low = (
            value
            ^ (data[at] & 0xFF)
            ^ ((data[at + 1] & 0xFF) << 8)
            ^ ((data[at + 2] & 0xFF) << 16)
            ^ ((data[at + 3] & 0xFF) << 24)
        )
        value = (
            tables[7 * 256 + (low & 0xFF)]
            ^ tables[6 * 256 + ((low >> 8) & 0xFF)]
            ^ tables[5 * 256 + ((low >> 16) & 0xFF)]
            ^ tables[4 * 256 + (low >> 24)]
            ^ tables[3 * 256 + data[at + 4]]
            ^ tables[2 * 256 + data[at + 5]]
            ^ tables[1 * 256 + data[at + 6]]
            ^ tables[data[at + 7]]
        )
        at += 8
    while at < end:
        value = tables[(value ^ data[at]) & 0xFF] ^ (value >> 8)
        at += 1
    return value


@overload(machine.crc32, jit_options=OPTIONS)
def _crc32(tables: Any, data: Any, start: Any, end: Any) -> Any:
    def slicing(tables: Any, data: Any, start: Any, end: Any) -> Any:
        return _slicing(tables, data, start, end, 0xFFFFFFFF) ^ 0xFFFFFFFF

    return slicing


@overload(machine.crc32c_of, jit_options=OPTIONS)
def _crc32c_of(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
    def by_instruction(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
        return checksum.crc32c(tables, data, start, end, before)

    def slicing(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
        return _slicing(tables.castagnoli, data, start, end, before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    return by_instruction if checks_fast() else slicing
