"""Compile one kernel to machine code, with all that it calls.

A kernel is compiled for one fixed signature. `keeping` saves the result. Numba's own cache is bound to the path of the
sources, and notices changes in the file of the kernel but not in the files of the functions that it calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from numba.extending import register_jitable

import octavo.records.kernels.compilation.checksum_instructions  # registers what `machine` becomes, as does the next
import octavo.records.kernels.compilation.instructions  # noqa: F401 - nothing of it is used here
from octavo.records.kernels import (
    checksum,
    decode,
    encode,
    encode_input,
    encode_messages,
    index,
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
from octavo.records.kernels.compilation.compiler import generate
from octavo.records.kernels.compilation.compiler import prepare as prepare
from octavo.records.kernels.compilation.machine_code import MachineCode
from octavo.records.kernels.compilation.options import OPTIONS
from octavo.records.kernels.compilation.signatures import SIGNATURES
from octavo.records.kernels.inflation import copy as inflate_copy
from octavo.records.kernels.inflation import inflate
from octavo.records.kernels.inflation import lz4 as inflate_lz4
from octavo.records.kernels.inflation import snappy as inflate_snappy
from octavo.records.kernels.printing import lines as print_lines
from octavo.records.kernels.printing import scalars as print_scalars
from octavo.records.kernels.printing import text as print_text
from octavo.records.kernels.shredding import avro as shred_avro
from octavo.records.kernels.shredding import json as shred_json
from octavo.records.kernels.shredding import scalars as shred_scalars
from octavo.records.kernels.shredding import skip as shred_skip
from octavo.records.kernels.shredding import tree as shred_tree
from octavo.records.kernels.verification import control as verify_control
from octavo.records.kernels.verification import examine as verify_examine
from octavo.records.kernels.verification import headers as verify_headers
from octavo.records.kernels.verification import messages as verify_messages
from octavo.records.kernels.verification import numbers as verify_numbers
from octavo.records.kernels.verification import records as verify_records

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
        shred_tree.put,
        shred_scalars.skip_space,
        shred_scalars.read_number,
        shred_scalars.read_string,
        shred_json.is_named,
        shred_json.put_scalar,
        print_lines.put_fragment,
        print_scalars.put_digits,
        print_text.put_utf8,
        verify_numbers.take_int,
        verify_numbers.take_long,
        verify_records.check_record,
    }
)


def _register(module: ModuleType) -> None:
    """Make the functions of `module` callable from kernels."""
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            register_jitable(**OPTIONS)(function)


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
_OF_SHREDDING = (shred_tree, shred_scalars, shred_skip, shred_json, shred_avro)
_OF_PRINTING = (print_scalars, print_lines, print_text)
_OF_VERIFICATION = (
    verify_numbers,
    verify_records,
    verify_control,
    verify_headers,
    verify_messages,
    verify_examine,
)
for _module in (*_OF_INFLATE, *_OF_RECORDS, *_OF_COMPACTION, *_OF_SHREDDING, *_OF_PRINTING, *_OF_VERIFICATION):
    _register(_module)


def compile_kernel(kernel: Callable[..., Any]) -> MachineCode:
    """Compile `kernel` for its signature."""
    return generate(kernel, SIGNATURES[kernel], OPTIONS, _INLINED)
