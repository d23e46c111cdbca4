"""Names of files say their kind, and whatever is no regular file is refused with a sentence."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from octavo.errors import Unreadable
from octavo.inspect.kinds import FileName, Kind, is_partition_folder, kind_of, open_regular, topic_and_partition
from tests.permissions import run_obeying_permissions


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("00000000000000000042.log", (Kind.SEGMENT, 42, None, "")),
        ("00000000000000000042.index", (Kind.OFFSET_INDEX, 42, None, "")),
        ("00000000000000000042.timeindex", (Kind.TIME_INDEX, 42, None, "")),
        ("00000000000000000042.txnindex", (Kind.TRANSACTION_INDEX, 42, None, "")),
        ("00000000000000000042.snapshot", (Kind.PRODUCER_SNAPSHOT, 42, None, "")),
        ("00000000000000000042.log.deleted", (Kind.SEGMENT, 42, None, ".deleted")),
        ("00000000000000000042.timeindex.cleaned", (Kind.TIME_INDEX, 42, None, ".cleaned")),
        ("00000000000000000042.index.swap.deleted", (Kind.OFFSET_INDEX, 42, None, ".swap.deleted")),
        ("42.log", (Kind.SEGMENT, None, None, "")),
        ("00000000000000000042-0000000007.checkpoint", (Kind.METADATA_SNAPSHOT, 42, 7, "")),
        ("00000000000000000042-0000000007.checkpoint.deleted", (Kind.METADATA_SNAPSHOT, 42, 7, ".deleted")),
        ("00000000000000000042-0000000007-815.checkpoint.part", (Kind.METADATA_SNAPSHOT, 42, 7, ".part")),
        ("bootstrap.checkpoint", (Kind.METADATA_SNAPSHOT, None, None, "")),
        ("leader-epoch-checkpoint", (Kind.LEADER_EPOCHS, None, None, "")),
        ("leader-epoch-checkpoint.tmp", (Kind.LEADER_EPOCHS, None, None, ".tmp")),
        ("replication-offset-checkpoint", (Kind.OFFSET_CHECKPOINT, None, None, "")),
        ("partition.metadata", (Kind.PARTITION_METADATA, None, None, "")),
        ("meta.properties", (Kind.META_PROPERTIES, None, None, "")),
        ("quorum-state", (Kind.QUORUM_STATE, None, None, "")),
        (".kafka_cleanshutdown", (Kind.CLEAN_SHUTDOWN, None, None, "")),
        (".lock", (Kind.LOCK, None, None, "")),
        ("octavo-commits", (Kind.COMMIT_JOURNAL, None, None, "")),
        ("segment.bin", (Kind.UNKNOWN, None, None, "")),
        (".deleted", (Kind.UNKNOWN, None, None, "")),
    ],
)
def test_the_name_says_the_kind(name: str, said: tuple[Kind, int | None, int | None, str]) -> None:
    assert FileName.parse(name) == said
    assert kind_of(Path("/data/orders-0") / name) is said[0]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/data/orders-0/00000000000000000000.log", ("orders", 0)),
        ("/data/a-b.c_d-12/00000000000000000000.log", ("a-b.c_d", 12)),
        ("/data/orders-0/00000000000000000000.index", (None, None)),
        ("/data/orders/00000000000000000000.log", (None, None)),
        ("/data/orders-x/00000000000000000000.log", (None, None)),
        ("/data/-0/00000000000000000000.log", (None, None)),
        ("/data/orders-007/00000000000000000000.log", (None, None)),  # as everywhere else: Kafka writes orders-7
        ("/data/..-0/00000000000000000000.log", (None, None)),
        ("/data/orders-0.8f5c0c1e-delete/00000000000000000000.log", (None, None)),
    ],
)
def test_topic_and_partition_come_from_the_folder(path: str, told: tuple[str | None, int | None]) -> None:
    assert topic_and_partition(Path(path)) == told


@pytest.mark.parametrize(
    ("name", "is_one"), [("orders-0", True), ("orders-0.8f5c0c1e-delete", True), ("orders", False), ("data", False)]
)
def test_a_partition_is_known_by_the_name_of_its_folder(name: str, is_one: bool) -> None:
    assert is_partition_folder(Path("/data") / name) == is_one


def test_a_regular_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"abc")
    assert open_regular(path).read_at(10, 1) == b"bc"
    (tmp_path / "link.log").symlink_to(path)
    assert open_regular(tmp_path / "link.log").size() == 3


def refusal(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        open_regular(path)
    assert str(caught.value) == f"{path}: cannot be read: {caught.value.reason}"
    assert isinstance(caught.value, OSError)
    return caught.value.reason


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "loop.log").symlink_to(tmp_path / "loop.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.log"))
    assert refusal(tmp_path) == "it is a directory"
    assert refusal(tmp_path / "pipe.log") == "it is no ordinary file"
    assert refusal(tmp_path / "socket.log") == "it is no ordinary file"
    assert refusal(Path("/dev/zero")) == "it is no ordinary file"
    assert refusal(tmp_path / "missing.log") == "No such file or directory"
    assert refusal(tmp_path / "loop.log") == "Too many levels of symbolic links"
    assert refusal(tmp_path / ("x" * 300)) == "File name too long"
    assert refusal(tmp_path / "a\0b") == "there is a null character in the path"
    assert refusal(tmp_path / "a\ud800b").endswith("surrogates not allowed")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"abc")
    path.chmod(0)
    program = (
        f"from pathlib import Path; from octavo.inspect.kinds import open_regular; open_regular(Path({str(path)!r}))"
    )
    done = run_obeying_permissions([sys.executable, "-c", program])
    assert done.stderr.endswith(f"octavo.errors.Unreadable: {path}: cannot be read: Permission denied\n")
