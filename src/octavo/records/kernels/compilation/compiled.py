"""Compile the kernels to machine code. Only this module, `compiler` and `folding` import Numba.

A kernel is compiled for one fixed signature. `keeping` saves the result. Numba's own cache is bound to the path of the
sources, and notices changes in the file of the kernel but not in the files of the functions that it calls.

Nothing checks the types of arguments when a kernel is called, except in the checked build, and only there are arrays
read-only that kernels may not write to: Numba would compile what takes such an array once more for other arrays.

The option `_nrt` is off, because no kernel allocates. If it were on, Numba would count references to
arrays at every function call, which takes four times as long as the work itself.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from octavo.records.kernels import (
    checksum,
    decode,
    encode,
    encode_input,
    encode_messages,
    index,
    machine,
    message,
    partition,
    record,
    scan,
    skim,
    validate,
    varint,
)
from octavo.records.kernels.compaction import fill as compaction_fill
from octavo.records.kernels.compaction import filter as compaction_filter
from octavo.records.kernels.compaction import hash as compaction_hash
from octavo.records.kernels.compaction import map as compaction_map
from octavo.records.kernels.compaction import read as compaction_read
from octavo.records.kernels.compaction import write as compaction_write
from octavo.records.kernels.compilation.compiler import generate, prepare
from octavo.records.kernels.compilation.folding import BLOCK, VECTOR, fold_crc32c
from octavo.records.kernels.compilation.machine_code import MachineCode, checks_fast
from octavo.records.kernels.inflation import copy as inflate_copy
from octavo.records.kernels.inflation import inflate
from octavo.records.kernels.inflation import lz4 as inflate_lz4
from octavo.records.kernels.inflation import snappy as inflate_snappy

CHECKED: Final = os.environ.get("OCTAVO_KERNELS") == "checked"
_OPTIONS: Final = {
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "boundscheck": CHECKED,
}

_INT = types.int64
_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=CHECKED)
_INT32_IN = types.Array(types.int32, 1, "C", readonly=CHECKED)
_INT64_IN = types.Array(types.int64, 1, "C", readonly=CHECKED)
_BYTES = types.uint8[::1]
_INT32 = types.int32[::1]
_INT64 = types.int64[::1]
_TABLE = types.int64[:, ::1]


@intrinsic
def _memcpy(_context: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    """Call memcpy for `size` bytes, without the checks and the loop of a slice assignment."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        into = context.make_array(signature.args[0])(context, builder, args[0])
        out_of = context.make_array(signature.args[2])(context, builder, args[2])
        cgutils.raw_memcpy(builder, builder.gep(into.data, [args[1]]), builder.gep(out_of.data, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, at, source, start, size), generate


@overload(machine.copy, jit_options=_OPTIONS)
def _copy(target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    # Numba requires that the function an overload returns has the very same parameters, annotations included.
    def copy(target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
        _memcpy(target, numba.int64(at), source, numba.int64(start), numba.int64(size))

    def checked_copy(target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
        if size < 0 or at < 0 or at + size > len(target) or start < 0 or start + size > len(source):
            raise IndexError("a kernel would copy outside its arrays")
        _memcpy(target, numba.int64(at), source, numba.int64(start), numba.int64(size))

    return checked_copy if CHECKED else copy


def _copy_block(function: Callable[..., Any], size: int) -> None:
    """Compile `function` of `machine` to one load and one store of `size` bytes."""

    @intrinsic
    def move(_context: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            kind = ir.VectorType(ir.IntType(8), size).as_pointer()
            into = context.make_array(signature.args[0])(context, builder, args[0])
            out_of = context.make_array(signature.args[2])(context, builder, args[2])
            block = builder.load(builder.bitcast(builder.gep(out_of.data, [args[3]]), kind), align=1)
            builder.store(block, builder.bitcast(builder.gep(into.data, [args[1]]), kind), align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    def copy(target: Any, at: Any, source: Any, start: Any) -> Any:
        def block(target: Any, at: Any, source: Any, start: Any) -> Any:
            move(target, numba.int64(at), source, numba.int64(start))

        def checked_block(target: Any, at: Any, source: Any, start: Any) -> Any:
            if at < 0 or at + size > len(target) or start < 0 or start + size > len(source):
                raise IndexError("a kernel would copy outside its arrays")
            move(target, numba.int64(at), source, numba.int64(start))

        return checked_block if CHECKED else block

    overload(function, jit_options=_OPTIONS)(copy)


_copy_block(machine.copy8, 8)
_copy_block(machine.copy16, 16)
_copy_block(machine.copy32, 32)


@overload(machine.copy_loosely, jit_options=_OPTIONS)
def _copy_loosely(target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    # Whole blocks: a call of memcpy, or a branch for every possible size, takes longer than copying too much.
    def copy_loosely(target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
        if size > machine.SLACK or start > len(source) - machine.SLACK:
            machine.copy(target, at, source, start, size)
            return
        machine.copy16(target, at, source, start)
        if size > 16:
            machine.copy16(target, at + 16, source, start + 16)
            for block in range(32, machine.SLACK, 32):
                machine.copy32(target, at + block, source, start + block)

    return copy_loosely


@intrinsic
def _store_le32(_context: Any, target: Any, at: Any, number: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        kind = ir.IntType(32)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        half = builder.trunc(args[2], kind)
        half = half if sys.byteorder == "little" else builder.bswap(half)
        builder.store(half, builder.bitcast(builder.gep(array.data, [args[1]]), kind.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.int64), generate


@overload(machine.write_le32, jit_options=_OPTIONS)
def _write_le32(target: Any, position: Any, number: Any) -> Any:
    def write_le32(target: Any, position: Any, number: Any) -> Any:
        _store_le32(target, numba.int64(position), numba.int64(number))

    def checked_write_le32(target: Any, position: Any, number: Any) -> Any:
        if position < 0 or position + 4 > len(target):
            raise IndexError("a kernel would write outside its array")
        _store_le32(target, numba.int64(position), numba.int64(number))

    return checked_write_le32 if CHECKED else write_le32


def _read_number(function: Callable[..., Any], bits: int, *, signed: bool, swapped: bool = True) -> None:
    """Compile `function` of `machine` to one load and, if `swapped`, a byte swap."""

    @intrinsic
    def load(_context: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            array = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.bitcast(builder.gep(array.data, [args[1]]), kind.as_pointer())
            number = builder.load(pointer, align=1)
            number = builder.bswap(number) if swapped else number
            if bits == 64:
                return number
            return (builder.sext if signed else builder.zext)(number, ir.IntType(64))

        return types.int64(data, types.int64), generate

    def read(data: Any, position: Any) -> Any:
        def number(data: Any, position: Any) -> Any:
            return load(data, numba.int64(position))

        def checked_number(data: Any, position: Any) -> Any:
            if position < 0 or position + size > len(data):
                raise IndexError("a kernel would read outside its array")
            return load(data, numba.int64(position))

        return checked_number if CHECKED else number

    size = bits // 8
    overload(function, jit_options=_OPTIONS)(read)


_read_number(machine.read_i16, 16, signed=True)
_read_number(machine.read_i32, 32, signed=True)
_read_number(machine.read_u32, 32, signed=False)
_read_number(machine.read_i64, 64, signed=True)
_read_number(machine.read_u8, 8, signed=False, swapped=False)
_read_number(machine.read_le16, 16, signed=False, swapped=sys.byteorder == "big")
_read_number(machine.read_le32, 32, signed=False, swapped=sys.byteorder == "big")
_read_number(machine.read_le64, 64, signed=True, swapped=sys.byteorder == "big")


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


@overload(machine.crc32c_step, jit_options=_OPTIONS)
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


@overload(machine.crc32c_folded, jit_options=_OPTIONS)
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


@intrinsic
def _prefetch_line(_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        array = context.make_array(signature.args[0])(context, builder, args[0])
        to_read, keep, of_data = number(0), number(3), number(1)
        place = builder.bitcast(builder.gep(array.data, [args[1]]), pointer)
        builder.call(hint, [place, to_read, keep, of_data])
        return context.get_dummy_value()

    return types.void(data, types.int64), generate


@overload(machine.prefetch, jit_options=_OPTIONS)
def _prefetch(data: Any, at: Any) -> Any:
    def prefetch(data: Any, at: Any) -> Any:
        _prefetch_line(data, numba.int64(at))

    return prefetch


@overload(machine.wrap64, jit_options=_OPTIONS)
def _wrap64(number: Any) -> Any:
    def wrap64(number: Any) -> Any:
        return number  # machine integers wrap by themselves

    return wrap64


@overload(machine.rotate_left, jit_options=_OPTIONS)
def _rotate_left(number: Any, bits: Any) -> Any:
    def rotate_left(number: Any, bits: Any) -> Any:
        return number << bits | number >> (64 - bits) & (1 << bits) - 1  # the compiler turns this into one instruction

    return rotate_left


# Functions that run for every field or record. By default, the compiler would not inline them, which doubles the time.
_INLINED: Final[frozenset[Any]] = frozenset(
    {
        varint.read_varint,
        varint.read_varlong,
        varint.zigzag,
        varint.varint_size,
        varint.write_varint,
        checksum.after_zeros,
        record.walk_record,
        record.nullable_size,
        record.write_nullable,
        record.record_body_size,
        record.write_record_start,
        decode.outside,
        decode.has_room,
        decode.put_bytes,
        decode.put_row,
        encode_input.natural,
        encode_input.timestamp_ms,
        encode_input.length_at,
        encode_input.place_of,
        encode.put_short,
        encode.put_plain_records,
        skim.quick_record,
        skim.quick_zigzags,
        inflate_copy.copy_match,
        inflate_copy.copy_literals,
        inflate_lz4.lz4_size,
        compaction_hash.sip_round,
        compaction_hash.last_word,
        compaction_hash.sip_hash,
        compaction_map.slot_of,
        compaction_map.fetch_slot,
        compaction_map.find_offset,
        compaction_map.put_offset,
        compaction_read.put_key,
        compaction_write.copy_record,
        compaction_filter.stays,
    }
)


@register_jitable(**_OPTIONS)
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


@overload(machine.crc32, jit_options=_OPTIONS)
def _crc32(tables: Any, data: Any, start: Any, end: Any) -> Any:
    def slicing(tables: Any, data: Any, start: Any, end: Any) -> Any:
        return _slicing(tables, data, start, end, 0xFFFFFFFF) ^ 0xFFFFFFFF

    return slicing


@overload(machine.crc32c_of, jit_options=_OPTIONS)
def _crc32c_of(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
    def by_instruction(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
        return checksum.crc32c(tables, data, start, end, before)

    def slicing(tables: Any, data: Any, start: Any, end: Any, before: Any) -> Any:
        return _slicing(tables.castagnoli, data, start, end, before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    return by_instruction if checks_fast() else slicing


def _register(module: ModuleType) -> None:
    """Make the functions of `module` callable from kernels."""
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            register_jitable(**_OPTIONS)(function)


_OF_INFLATE = (inflate_copy, inflate_lz4, inflate_snappy, inflate)
_OF_RECORDS = (
    varint,
    scan,
    checksum,
    record,
    message,
    index,
    decode,
    encode_input,
    encode_messages,
    encode,
    skim,
    partition,
    validate,
)
_OF_COMPACTION = (
    compaction_hash,
    compaction_map,
    compaction_read,
    compaction_write,
    compaction_fill,
    compaction_filter,
)
for _module in (*_OF_INFLATE, *_OF_RECORDS, *_OF_COMPACTION):
    _register(_module)

_TABLES = types.NamedUniTuple(_INT64, len(checksum.Tables._fields), checksum.Tables)
_WANTED = types.NamedUniTuple(_INT, len(decode.Wanted._fields), decode.Wanted)
_BYTE_COLUMN = (_INT32, _BYTES, _BYTES)
_SINK = types.NamedTuple(
    (_INT64, _INT64, _INT64, _INT64, *_BYTE_COLUMN, *_BYTE_COLUMN, _INT32, _INT32, _BYTES, *_BYTE_COLUMN), decode.Sink
)
_BYTE_ROWS = types.NamedTuple((_INT32_IN, _INT, _BYTES_IN, _INT, _BYTES_IN), encode_input.ByteColumn)
_ROWS = types.NamedTuple(
    (_INT64_IN, _INT64_IN, _BYTE_ROWS, _BYTE_ROWS, _INT32_IN, _BYTE_ROWS, _BYTE_ROWS), encode_input.Rows
)

_SIGNATURES: Final[dict[Callable[..., Any], Any]] = {
    scan.scan: types.UniTuple(_INT, 4)(_BYTES_IN, _INT, _INT, _TABLE, _INT, _INT, _INT, _INT, _INT),
    decode.decode: types.boolean(_TABLES, _BYTES_IN, _BYTES_IN, _TABLE, _INT, _INT64, _WANTED, _SINK),
    encode.encode: _INT(_TABLES, _ROWS, _INT, _TABLE, _INT, _INT, _INT, _INT, _BYTES, _TABLE),
    inflate.inflate: types.UniTuple(_INT, 3)(_BYTES_IN, _TABLE, _INT64_IN, _INT, _INT, _BYTES, _INT, _INT, _INT),
    checksum.verify: _INT(_TABLES, _BYTES_IN, _TABLE),
    partition.partition: types.void(_BYTES_IN, _INT32_IN, _INT32_IN, _INT, _INT32),
    index.index_batches: _INT(_TABLE, _INT, _INT, _INT, _INT, _INT64, _TABLE, _TABLE, _TABLE),
    validate.validate: types.UniTuple(_INT, 10)(
        _INT64_IN, _BYTES_IN, _INT, _BYTES_IN, _INT, _INT64_IN, _INT, _INT, _INT, _INT, _BYTES, _TABLE
    ),
    compaction_fill.fill: types.UniTuple(_INT, 3)(
        _BYTES_IN, _BYTES_IN, _TABLE, _INT64_IN, _INT, _INT, _INT64_IN, _INT64, _INT64, _TABLE
    ),
    compaction_filter.filter_batches: types.UniTuple(_INT, 3)(
        _TABLES,
        _BYTES_IN,
        _BYTES_IN,
        _TABLE,
        _INT64_IN,
        _INT,
        _INT,
        _INT64_IN,
        _INT64_IN,
        _INT64,
        _BYTES,
        _TABLE,
        _TABLE,
    ),
}


__all__ = ["compile_kernel", "prepare", "type_mismatch"]


def compile_kernel(kernel: Callable[..., Any]) -> MachineCode:
    """Compile `kernel` for its signature."""
    return generate(kernel, _SIGNATURES[kernel], _OPTIONS, _INLINED)


def type_mismatch(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> str | None:
    """Say which of the arguments for `kernel` does not have the declared type, or None."""
    declared = _SIGNATURES[kernel].args
    if len(arguments) != len(declared):
        return f"{kernel.__qualname__} takes {len(declared)} arguments, not {len(arguments)}"
    for number, (kind, argument) in enumerate(zip(declared, arguments, strict=True)):
        found = numba.typeof(argument)
        if not _fits(found, kind):
            return f"argument {number} of {kernel.__qualname__} is {found}, not {kind}"
    return None


def _fits(found: Any, kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return len(found) == len(kind) and all(map(_fits, found, kind))
    if isinstance(kind, types.Array):
        return bool(found == kind or (not kind.mutable and found == kind.copy(readonly=False)))
    return isinstance(found, types.Integer | types.Boolean)
