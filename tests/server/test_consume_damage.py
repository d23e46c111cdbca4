"""`octavo consume` where a batch of a partition is damaged: it says where, and reads the other partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.log import DataDirectory
from octavo.records import BatchBuilder, read_batches
from octavo.server.serving import serve
from tests.server.commands import Commands
from tests.unit.inspect.verify.planted_batches import field, record_field, right

RECORDS = 3  # in each of four batches of two partitions


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two partitions, closed."""
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("orders", 2, {"retention.ms": "-1"})
        for partition in range(2):
            for number in range(4):
                builder = BatchBuilder()
                for record in range(RECORDS):
                    builder.append(None, b"%d-%d-%d" % (partition, number, record), timestamp_ms=1)
                data.log("orders", partition).append(builder.build())
    return tmp_path / "data"


def damage(directory: Path, change: Callable[[bytes], bytes], *, batch: int = 1, partition: int = 1) -> None:
    [path] = (directory / f"orders-{partition}").glob("*.log")
    data = path.read_bytes()
    found = list(read_batches(data, verify=False))[batch]
    end = found.position + found.size
    path.write_bytes(data[: found.position] + change(data[found.position : end]) + data[end:])


def spoil(batch: bytes) -> bytes:
    return batch[:-5] + b"?" + batch[-4:]


UNREADABLE = right(record_field(1, "length", b"\x7e"))


@pytest.fixture
def consume(directory: Path, tmp_path: Path) -> Callable[..., tuple[int, list[str], list[str]]]:
    """Serve the directory once it is damaged, and run the command."""

    def run(*words: str) -> tuple[int, list[str], list[str]]:
        with serve(directory) as server:
            told = Commands(server.bootstrap_servers, tmp_path)("consume", "orders", *words)
        return told.code, told.out.split(), told.err.splitlines()

    return run


def values(partition: int, *batches: int) -> list[str]:
    return [f"{partition}-{number}-{record}" for number in batches for record in range(RECORDS)]


def test_the_damage_is_told_and_the_other_partitions_are_read(
    directory: Path, consume: Callable[..., tuple[int, list[str], list[str]]]
) -> None:
    """Mend 1.5: it said "at byte 0", stopped all partitions, and ended with 2."""
    damage(directory, spoil)
    code, out, err = consume("-e", "-q")
    assert code == 1
    assert sorted(out) == sorted(values(0, 0, 1, 2, 3) + values(1, 0))
    assert len(err) == 1
    assert err[0].startswith("octavo: partition 1 of orders is damaged at offset 3: checksum is ")
    assert err[0].endswith("; nothing is read from there on")


def test_where_nothing_else_can_come_it_ends_without_being_told_to(
    directory: Path, consume: Callable[..., tuple[int, list[str], list[str]]]
) -> None:
    damage(directory, spoil)
    code, out, _ = consume("-p", "1")
    assert (code, out) == (1, values(1, 0))


@pytest.mark.parametrize(
    ("change", "first"),
    [(spoil, 0), (UNREADABLE, 1), (field("crc", 1), 0)],
    ids=["bytes", "records", "crc"],
)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_resync_goes_on_behind_the_batch(
    change: Callable[[bytes], bytes],
    first: int,
    batch: int,
    directory: Path,
    consume: Callable[..., tuple[int, list[str], list[str]]],
) -> None:
    """Mend 1.5, with --resync."""
    damage(directory, change, batch=batch)
    code, out, err = consume("-e", "-q", "--resync", "-p", "1")
    assert code == 1
    assert [each for each in out if not each.startswith(f"1-{batch}-")] == values(
        1, *(number for number in range(4) if number != batch)
    )
    assert err[0].startswith(f"octavo: partition 1 of orders is damaged at offset {3 * batch + first}: ")
    assert err[0].endswith("; the rest of the batch is left out")


@pytest.mark.parametrize("words", [[], ["--resync"]], ids=["", "resync"])
def test_a_batch_that_the_broker_cannot_read_stops_its_partition_alone(
    words: list[str], directory: Path, consume: Callable[..., tuple[int, list[str], list[str]]]
) -> None:
    damage(directory, field("magic", 3), batch=0)
    code, out, err = consume("-e", "-q", *words)
    assert (code, sorted(out)) == (1, values(0, 0, 1, 2, 3))
    problem = "its broker cannot read the batch; nothing is read from there on"
    assert f"octavo: partition 1 of orders is damaged at offset 0: {problem}" in err


def test_several_damaged_batches_are_left_out_one_by_one(
    directory: Path, consume: Callable[..., tuple[int, list[str], list[str]]]
) -> None:
    for batch in (1, 2):
        damage(directory, spoil, batch=batch)
    damage(directory, spoil, batch=0, partition=0)
    code, out, err = consume("-e", "-q", "--resync")
    assert (code, sorted(out)) == (1, sorted(values(0, 1, 2, 3) + values(1, 0, 3)))
    assert len({line.split(":")[1] for line in err}) == len(err)
