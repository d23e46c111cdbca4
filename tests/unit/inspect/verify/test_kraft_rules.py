"""Faults in the metadata log, its snapshots and the state of the quorum that Kafka wrote are found where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.verify import kraft, looks
from tests.golden.directories import unpack
from tests.unit.inspect.verify.planting import (
    Fault,
    batches_of,
    problems,
    put,
    replace,
    rewrite,
    rules_of,
    with_batch_crc,
    write,
)

METADATA: Final = "__cluster_metadata-0"
LOG: Final = f"{METADATA}/00000000000000000000.log"
STATE: Final = f"{METADATA}/quorum-state"
BOOTSTRAP: Final = "bootstrap.checkpoint"


SNAPSHOT: Final = f"{METADATA}/*.checkpoint"  # the newest; its name differs each time that the directory is made


def newest(directory: Path) -> Path:
    return max(directory.glob(SNAPSHOT))


def in_snapshot(change: Callable[[list[bytes]], object]) -> Callable[[Path], object]:
    """Return a plant that changes the batches of the newest snapshot: header, records, footer."""

    def plant(directory: Path) -> None:
        path = newest(directory)
        batches = batches_of(path.read_bytes())
        assert len(batches) == 3
        change(batches)
        path.write_bytes(b"".join(batches))

    return plant


def rename(change: Callable[[str], str]) -> Callable[[Path], object]:
    """Return a plant that renames the newest snapshot."""
    return lambda directory: newest(directory).rename(newest(directory).with_name(change(newest(directory).name)))


def spoil_record(batches: list[bytes]) -> None:
    """Change the version of the frame of the first record."""
    batches[1] = with_batch_crc(replace(b"\1\x0c\0\x11metadata.version", b"\7\x0c\0\x11metadata.version")(batches[1]))


def spoil_log(data: bytes) -> bytes:
    """Change the type of the first record that does nothing."""
    batches = batches_of(data)
    batches[3] = with_batch_crc(replace(b"\x08\1\x14\0\0", b"\x08\1\x7e\0\0")(batches[3]))
    return b"".join(batches)


def cut_log(directory: Path) -> None:
    """Have the log begin at offset 12, without a snapshot of what was before."""
    folder = directory / METADATA
    data = (directory / LOG).read_bytes()
    for path in (*folder.glob("*.checkpoint"), *folder.glob("00000000000000000000.*")):
        path.unlink()
    (folder / "00000000000000000012.log").write_bytes(b"".join(batches_of(data)[3:]))
    for ending in ("index", "timeindex"):
        (folder / f"00000000000000000012.{ending}").touch()


FAULTS: Final = [
    Fault("kraft-snapshot-name", rename(lambda name: name[1:]), f"{METADATA}/0000000000000000???-*.checkpoint"),
    Fault("kraft-snapshot-name", rename(lambda name: "zzz.checkpoint"), SNAPSHOT),
    Fault("kraft-snapshot-batch", in_snapshot(lambda all_: all_.__setitem__(1, put(70, b"??")(all_[1]))), SNAPSHOT, 83),
    Fault("kraft-snapshot-batch", rewrite(BOOTSTRAP, put(100, b"?")), BOOTSTRAP, 83),
    Fault("kraft-snapshot-header", in_snapshot(lambda all_: all_.pop(0)), SNAPSHOT, 0, 1),
    Fault("kraft-snapshot-header", write(BOOTSTRAP, b""), BOOTSTRAP, 0, None, frozenset({"kraft-snapshot-footer"})),
    Fault("kraft-snapshot-footer", in_snapshot(lambda all_: all_.pop(2)), SNAPSHOT, 83, 37),
    Fault("kraft-snapshot-footer", rewrite(BOOTSTRAP, lambda data: data[:-1]), BOOTSTRAP, 336),
    Fault(
        "kraft-snapshot-offsets",
        in_snapshot(lambda all_: all_.pop(1)),
        SNAPSHOT,
        83,
        38,
        frozenset({"topic-not-in-metadata"}),
    ),
    Fault("kraft-snapshot-record", in_snapshot(spoil_record), SNAPSHOT, 83, 1),
    Fault("kraft-snapshot-beyond-end", rename(lambda name: "00000000000000009999" + name[20:]), SNAPSHOT, None, 9999),
    Fault("kraft-snapshot-epoch", rename(lambda name: name[:21] + "0000000007.checkpoint"), SNAPSHOT, None, -1),
    Fault("kraft-snapshot-missing", cut_log, f"{METADATA}/00000000000000000012.log", None, 12),
    Fault("metadata-record", rewrite(LOG, spoil_log), LOG, 718, 12),
    Fault("quorum-state-format", rewrite(STATE, lambda data: data[:-1]), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"data_version":0', b'"data_version":9')), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"leaderEpoch":2', b'"leaderEpoch":-2')), STATE, 0),
    Fault("quorum-state-format", write(STATE, b""), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"clusterId"', b'"klusterId"')), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"appliedOffset":0,', b"")), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"voterId":1', b'"voterId":"one"')), STATE, 0),
    Fault("quorum-state-format", rewrite(STATE, replace(b'"data_version":0', b'"data_version":1')), STATE, 0),
    Fault("quorum-state-epoch", rewrite(STATE, replace(b'"leaderEpoch":2', b'"leaderEpoch":1')), STATE, 0),
]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found_where_it_is(fault: Fault, tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, METADATA)
    if fault.offset == -1:  # the offset of the newest snapshot
        fault = fault._replace(offset=int(newest(directory).name[:20]))
    fault.check(directory, METADATA)


def test_every_rule_has_a_fault() -> None:
    assert rules_of(kraft) == {fault.rule for fault in FAULTS}


def test_snapshots_that_are_being_written_or_deleted_and_an_unsaved_state_are_no_faults(tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, METADATA)
    oldest = min(directory.glob(SNAPSHOT))
    oldest.rename(oldest.with_name(f"{oldest.name}.deleted"))
    (directory / METADATA / f"{newest(directory).name[:31]}-4711.checkpoint.part").write_bytes(b"half")
    (directory / STATE).rename(directory / f"{STATE}.tmp")
    assert problems(directory, METADATA) == []
