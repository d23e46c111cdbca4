"""Compute the CRC-32C of long data by folding, with vector instructions that multiply polynomials.

The bytes before a position can be replaced by others further on that leave the same remainder: each 64 bits of them,
multiplied by a constant that depends on the distance. So a few vectors take up all data, block by block, and the
checksum of what is left in the last vector is the checksum of everything. (V. Gopal et al., "Fast CRC Computation for
Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.) It needs the wide form of that instruction: the narrow
one is slower than the processor's instruction for CRC-32C.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

_POLYNOMIAL: Final = 0x11EDC6F41  # CRC-32C, the highest power first
_WAYS: Final = 4  # vectors at once: a multiplication does not have to wait for the one before it


def _vector_bits() -> int:
    """Return the size of the largest vectors whose polynomials the processor multiplies, or 0 if there are none."""
    features = (get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES).split(",")
    if "+vpclmulqdq" not in features or "+sse4.2" not in features:
        return 0
    return 512 if "+avx512f" in features else 256 if "+avx2" in features else 0


BITS: Final = _vector_bits()
VECTOR: Final = BITS // 8  # bytes
BLOCK: Final = _WAYS * VECTOR

_I64: Final = ir.IntType(64)
_I32: Final = ir.IntType(32)
_I8: Final = ir.IntType(8)


def _power(exponent: int) -> int:
    """Return x to the power of `exponent`, modulo the polynomial, in the order of bits that the checksum uses."""
    remainder = 1
    for _ in range(exponent):
        remainder <<= 1
        if remainder >> 32:
            remainder ^= _POLYNOMIAL
    return int(f"{remainder:032b}"[::-1], 2) << 1


class _Folding:
    """Generates the instructions."""

    def __init__(self, builder: ir.IRBuilder, data: Any) -> None:
        self._builder = builder
        self._data = data
        self._lanes = BITS // 64
        self.vector = ir.VectorType(_I64, self._lanes)
        kind = ir.FunctionType(self.vector, [self.vector, self.vector, _I8])
        self._multiply = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.pclmulqdq.{BITS}")
        kind = ir.FunctionType(_I64, [_I64, _I64])
        self._crc = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64")

    def distance(self, bits: int) -> Any:
        """Return the constants that move a vector by so many bits."""
        return ir.Constant(self.vector, [_power(bits + 32), _power(bits - 32)] * (self._lanes // 2))

    def load(self, at: Any) -> Any:
        pointer = self._builder.bitcast(self._builder.gep(self._data, [at]), self.vector.as_pointer())
        return self._builder.load(pointer, align=1)

    def folded(self, before: Any, distance: Any, after: Any) -> Any:
        """Return a vector that stands for `after` and for `before`, which is so far in front of it."""
        low = self._builder.call(self._multiply, [before, distance, _I8(0x00)])
        high = self._builder.call(self._multiply, [before, distance, _I8(0x11)])
        return self._builder.xor(self._builder.xor(low, high), after)

    def first(self, value: Any) -> Any:
        """Return a vector that puts the register of the checksum into the first bytes."""
        return self._builder.insert_element(ir.Constant(self.vector, [0] * self._lanes), value, _I32(0))

    def checksum(self, vector: Any) -> Any:
        value = _I64(0)
        for lane in range(self._lanes):
            value = self._builder.call(self._crc, [value, self._builder.extract_element(vector, _I32(lane))])
        return value


@intrinsic
def fold_crc32c(_context: Any, value: Any, data: Any, at: Any, blocks: Any, vectors: Any) -> Any:
    """Advance the register of a CRC-32C over `blocks` blocks, at least one, and then over `vectors` single vectors."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        value, array, at, blocks, vectors = args
        start = builder.gep(context.make_array(signature.args[1])(context, builder, array).data, [at])
        fold = _Folding(builder, start)
        slots = [cgutils.alloca_once(builder, fold.vector) for _ in range(_WAYS)]
        for way, slot in enumerate(slots):
            vector = fold.load(_I64(way * VECTOR))
            builder.store(vector if way else builder.xor(vector, fold.first(value)), slot)
        far, near = fold.distance(_WAYS * BITS), fold.distance(BITS)
        with cgutils.for_range(builder, builder.sub(blocks, _I64(1))) as loop:
            block_at = builder.mul(builder.add(loop.index, _I64(1)), _I64(BLOCK))
            for way, slot in enumerate(slots):
                after = fold.load(builder.add(block_at, _I64(way * VECTOR)))
                builder.store(fold.folded(builder.load(slot), far, after), slot)
        last = slots[-1]
        vector = builder.load(slots[0])
        for slot in slots[1:]:
            vector = fold.folded(vector, near, builder.load(slot))
        builder.store(vector, last)
        rest_at = builder.mul(blocks, _I64(BLOCK))
        with cgutils.for_range(builder, vectors) as loop:
            after = fold.load(builder.add(rest_at, builder.mul(loop.index, _I64(VECTOR))))
            builder.store(fold.folded(builder.load(last), near, after), last)
        return fold.checksum(builder.load(last))

    return types.int64(types.int64, data, types.int64, types.int64, types.int64), generate
