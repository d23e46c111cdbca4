"""`octavo verify` finds every changed byte that a checksum covers, and survives all others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from octavo.inspect.verify import Problem
from octavo.inspect.verify.examiner import Examiner
from octavo.inspect.verify.tail import Tail
from octavo.log.storage import DISK
from tests.golden.files import load
from tests.unit.inspect.verify.planted_batches import at_offset, with_checksum

# Outside of the checksum of a batch of magic 2: base offset and leader epoch, which may be others and still make sense.
UNCOVERED = {*range(8), *range(12, 16)}


def examine(path: Path, data: bytes) -> tuple[list[Problem], Tail | None]:
    path.write_bytes(data)
    examiner = Examiner()
    file = DISK.open(path)
    found = [problem for step in examiner.examine(file, "log", len(data)) for problem in step.problems]
    file.close()
    return found, examiner.tail


def log_of(name: str) -> bytes:
    batch = load(name).data
    return at_offset(0, batch) + at_offset(100, batch) + at_offset(200, batch)


@pytest.mark.parametrize("name", ["v2-none-headers", "v2-lz4"])
def test_every_flipped_byte_is_found_at_its_batch(name: str, tmp_path: Path) -> None:
    data = log_of(name)
    size = len(data) // 3
    for at in range(size):
        changed = bytearray(data)
        changed[size + at] ^= 0x10
        found, tail = examine(tmp_path / "log", bytes(changed))
        if at not in UNCOVERED:
            assert [problem.position for problem in found] == [size], at
            assert tail is None
        else:
            assert all(problem.position in (size, 2 * size) for problem in found)


@pytest.mark.parametrize("name", ["v2-none", "v1-none", "v1-gzip", "v0-snappy"])
def test_every_cut_is_a_tail(name: str, tmp_path: Path) -> None:
    data = load(name).data
    sizes = {batch.size for batch in load(name).batches}
    for end in range(1, len(data)):
        found, tail = examine(tmp_path / "log", data[:end])
        assert found == []
        assert (tail is None) == (len(sizes) == 1 and end % min(sizes) == 0)


def mutants(seed: int) -> Iterator[bytes]:
    """Batches of all formats with some bytes changed, most of them with right checksums."""
    random = Random(seed)
    names = ["v2-none", "v2-none-headers", "v2-zstd-headers", "v2-gaps", "abort", "leader-change", "v1-gzip", "v0-none"]
    for _ in range(60):
        batch = bytearray(load(random.choice(names)).data)
        for _ in range(random.choice((1, 1, 2, 8))):
            batch[random.randrange(17, len(batch))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
        yield bytes(batch) if random.randrange(8) == 0 else with_checksum(bytes(batch))


@pytest.mark.parametrize("seed", range(3))
def test_compiled_kernels_find_the_same_as_interpreted_ones(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(at_offset(1000 * number, batch) for number, batch in enumerate(mutants(seed)))
    told = []
    for mode in ("interpreted", "compiled"):
        monkeypatch.setenv("OCTAVO_KERNELS", mode)
        found, tail = examine(tmp_path / "log", data)
        assert len(found) > 20
        told.append(([(problem, problem.found) for problem in found], tail))
    assert told[0] == told[1]
