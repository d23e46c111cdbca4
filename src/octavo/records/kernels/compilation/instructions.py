"""Replace the functions of `machine` by instructions of the processor, except those for checksums.

Importing this module registers the replacements with Numba. In the checked build, each of them first checks that it
stays within its arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from octavo.records.kernels import machine
from octavo.records.kernels.compilation.options import CHECKED, OPTIONS


@intrinsic
def _memcpy(_context: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    """Call memcpy for `size` bytes, without the checks and the loop of a slice assignment."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        into = context.make_array(signature.args[0])(context, builder, args[0])
        out_of = context.make_array(signature.args[2])(context, builder, args[2])
        cgutils.raw_memcpy(builder, builder.gep(into.data, [args[1]]), builder.gep(out_of.data, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, at, source, start, size), generate


@overload(machine.copy, jit_options=OPTIONS)
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

    overload(function, jit_options=OPTIONS)(copy)


_copy_block(machine.copy8, 8)
_copy_block(machine.copy16, 16)
_copy_block(machine.copy32, 32)


@overload(machine.copy_loosely, jit_options=OPTIONS)
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


@overload(machine.write_le32, jit_options=OPTIONS)
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
    overload(function, jit_options=OPTIONS)(read)


_read_number(machine.read_i16, 16, signed=True)
_read_number(machine.read_i32, 32, signed=True)
_read_number(machine.read_u32, 32, signed=False)
_read_number(machine.read_i64, 64, signed=True)
_read_number(machine.read_u8, 8, signed=False, swapped=False)
_read_number(machine.read_le16, 16, signed=False, swapped=sys.byteorder == "big")
_read_number(machine.read_le32, 32, signed=False, swapped=sys.byteorder == "big")
_read_number(machine.read_le64, 64, signed=True, swapped=sys.byteorder == "big")


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


@overload(machine.prefetch, jit_options=OPTIONS)
def _prefetch(data: Any, at: Any) -> Any:
    def prefetch(data: Any, at: Any) -> Any:
        _prefetch_line(data, numba.int64(at))

    return prefetch


@overload(machine.wrap64, jit_options=OPTIONS)
def _wrap64(number: Any) -> Any:
    def wrap64(number: Any) -> Any:
        return number  # machine integers wrap by themselves

    return wrap64


@overload(machine.rotate_left, jit_options=OPTIONS)
def _rotate_left(number: Any, bits: Any) -> Any:
    def rotate_left(number: Any, bits: Any) -> Any:
        return number << bits | number >> (64 - bits) & (1 << bits) - 1  # the compiler turns this into one instruction

    return rotate_left
