"""Logs to damage, ways to damage them, and what a salvage has to make of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from octavo.inspect.salvage import PartitionReport
from octavo.log import Log
from octavo.records import BatchBuilder, Codec, read_batches
from tests.crash.storage import FastStorage

TIME_MS: Final = 1_700_000_000_000
PAGE: Final = 512

Batches = dict[int, bytes]  # by base offset


def data_batch(random: Random, records: int, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number in range(records):
        builder.append(b"key %d" % number, random.randbytes(random.randint(0, 300)), timestamp_ms=TIME_MS + number)
    return builder.build()


def make_log(folder: Path, seed: int, count: int = 60, *, first_epoch: int = 0) -> Batches:
    """Make a log of several segments and leader epochs. Returns its batches."""
    random = Random(seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = Log.open(folder, storage=FastStorage())
    log.become_leader(first_epoch)
    for _ in range(count):
        if random.random() < 0.08:
            log.roll()
        if random.random() < 0.05:
            log.become_leader(log.leader_epoch + random.randint(1, 3))
        log.append(data_batch(random, random.randint(1, 6), random.choice(list(Codec))))
    log.close()
    return batches_in(folder)


def make_compacted_log(folder: Path, seed: int, count: int = 60) -> Batches:
    """Make a log with gaps between its batches, as compaction leaves it. Returns its batches."""
    random = Random(seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = Log.open(folder, storage=FastStorage(), may_have_gaps=True)
    epoch, offset = 0, random.choice((0, 500))
    log.begin_at(offset)
    for _ in range(count):
        if random.random() < 0.08:
            log.roll()
        epoch += random.random() < 0.05
        offset += random.choice((0, 0, random.randint(1, 40)))
        builder = BatchBuilder(base_offset=offset, leader_epoch=epoch, codec=random.choice(list(Codec)))
        for _ in range(random.randint(1, 5)):
            builder.append(b"key", random.randbytes(random.randint(0, 300)), timestamp_ms=TIME_MS)
            offset += 1
        log.append_as_follower(builder.build())
    log.close()
    return batches_in(folder)


def batches_in(folder: Path) -> Batches:
    """The batches of all segments, each at its base offset; no two have the same, and no byte is between them."""
    found: Batches = {}
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for batch in read_batches(data):
            assert batch.base_offset not in found
            found[batch.base_offset] = data[batch.position : batch.position + batch.size]
    assert list(found) == sorted(found)
    return found


def is_filler(batch: bytes) -> bool:
    """Whether a batch is empty: it has offsets at the end of a log that are lost, so that nobody uses them again."""
    [found] = read_batches(batch)
    return found.count == 0


def last_offset(batch: bytes) -> int:
    [found] = read_batches(batch)
    return found.last_offset


def flip(random: Random, files: list[Path]) -> None:
    path = random.choice(files)
    data = bytearray(path.read_bytes())
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)


def zero(random: Random, files: list[Path]) -> None:
    path = random.choice(files)
    data = bytearray(path.read_bytes())
    at = random.randrange(0, len(data) + 1, PAGE)
    size = min(random.randint(1, 4) * PAGE, len(data) - at)
    data[at : at + size] = bytes(size)
    path.write_bytes(data)


def cut(random: Random, files: list[Path]) -> None:
    path = random.choice(files)
    data = path.read_bytes()
    path.write_bytes(data[: random.randint(0, len(data))])


def remove(random: Random, files: list[Path]) -> None:
    """Take some bytes out of the middle."""
    path = random.choice(files)
    data = path.read_bytes()
    at = random.randint(0, len(data))
    path.write_bytes(data[:at] + data[at + random.randint(0, 2000) :])


def splice(random: Random, files: list[Path]) -> None:
    """Put bytes of one file into another, or over what is there."""
    source, path = random.choice(files).read_bytes(), random.choice(files)
    data = path.read_bytes()
    begin = random.randint(0, len(source))
    piece = source[begin : begin + random.randint(0, 3000)]
    at = random.randint(0, len(data))
    path.write_bytes(data[:at] + piece + data[at + random.choice((0, len(piece))) :])


def swap_tails(random: Random, files: list[Path]) -> None:
    """Exchange the ends of two files."""
    one, other = random.choice(files), random.choice(files)
    if one != other:
        a, b = one.read_bytes(), other.read_bytes()
        at, to = random.randint(0, len(a)), random.randint(0, len(b))
        one.write_bytes(a[:at] + b[to:])
        other.write_bytes(b[:to] + a[at:])


def append_junk(random: Random, files: list[Path]) -> None:
    path = random.choice(files)
    path.write_bytes(path.read_bytes() + random.choice((bytes(3000), random.randbytes(random.randint(1, 300)))))


DAMAGE: Final[list[Callable[[Random, list[Path]], None]]] = [
    flip, flip, flip, zero, cut, remove, splice, swap_tails, append_junk,
]  # fmt: skip


def damage(folder: Path, seed: int) -> None:
    random = Random(seed)
    files = sorted(folder.glob("*.log"))
    for _ in range(random.randint(1, 4)):
        random.choice(DAMAGE)(random, files)


def check_salvaged(original: Batches, sources: list[Path], target: Path, report: PartitionReport) -> None:
    """Check that the result has every batch whose bytes are intact, nothing else, and that the rest is reported."""
    result = check_kept(original, sources, target)
    assert {offset for offset, batch in result.items() if original.get(offset) != batch} == set(), "others are there"
    lost = {offset for offset in original if offset not in result}
    reported = {offset for offset in original if is_lost(report, offset)}
    if not any(each.offset_behind is None for each in report.damage):
        # Batches that were cut off at the end of the log may have left no trace at all.
        lost -= {offset for offset in lost - reported if offset > max(result, default=-1)}
    assert reported == lost
    assert report.has_lost >= bool(lost)
    assert (report.batches, report.bytes) == (len(result), sum(map(len, result.values())))


def check_kept(original: Batches, sources: list[Path], target: Path) -> Batches:
    """Check that the result has every batch whose bytes are intact. Returns the result."""
    files = [path.read_bytes() for source in sources for path in source.glob("*.log")]
    intact = {offset for offset, batch in original.items() if any(batch in data for data in files)}
    result = {offset: batch for offset, batch in batches_in(target).items() if not is_filler(batch)}
    assert {offset for offset in intact if result.get(offset) != original[offset]} == set(), "they are missing"
    return result


def is_lost(report: PartitionReport, offset: int) -> bool:
    return any(
        lost.first_offset <= offset and (lost.last_offset is None or offset <= lost.last_offset) for lost in report.lost
    )
