"""Faults in the small files of a directory that Kafka wrote are found where they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.verify import checkpoints, directory_identity, leftovers, looks, remote_log, topic_ids
from octavo.inspect.verify.surroundings import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from tests.golden.directories import unpack
from tests.unit.inspect.verify.planting import Fault, problems, put, replace, rewrite, rules_of, write

META: Final = "meta.properties"
CLEAN: Final = ".kafka_cleanshutdown"
EVENTS: Final = "events-0"
TOPIC_ID: Final = f"{EVENTS}/partition.metadata"
OTHER_ID: Final = b"AAAAAAAAAAAAAAAAAAAAEw"
REMOTE: Final = "deals-0/remote_log_snapshot"
REMOTE_OFFSETS: Final = "_rlmm_committed_offsets"


def move(old: str, new: str) -> Callable[[Path], object]:
    return lambda directory: (directory / old).rename(directory / new)


def copy(old: str, new: str) -> Callable[[Path], object]:
    return lambda directory: shutil.copy(directory / old, directory / new)


def make_folder(name: str) -> Callable[[Path], object]:
    return lambda directory: (directory / name).mkdir()


def make_pipe_of(name: str) -> Callable[[Path], object]:
    def plant(directory: Path) -> None:
        (directory / name).unlink()
        os.mkfifo(directory / name)

    return plant


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def other_id(directory: Path, *, with_metadata: bool) -> None:
    write(TOPIC_ID, b"version: 0\ntopic_id: " + OTHER_ID)(directory)
    if not with_metadata:
        shutil.rmtree(directory / "__cluster_metadata-0")


CHECKPOINTS: Final = [
    Fault("checkpoint-format", rewrite(RECOVERY_POINTS, put(0, b"1")), RECOVERY_POINTS, 0),
    Fault("checkpoint-format", rewrite(HIGH_WATERMARKS, put(2, b"7")), HIGH_WATERMARKS, 2),
    Fault("checkpoint-format", rewrite(LOG_STARTS, replace(b"events 0 7", b"events 0")), LOG_STARTS, 4),
    Fault("checkpoint-format", rewrite(CLEANER_OFFSETS, put(2, b"x")), CLEANER_OFFSETS, 2),
    Fault(
        "checkpoint-entry", rewrite(RECOVERY_POINTS, replace(b"deals 0 52", b"deals 0 -1")), RECOVERY_POINTS, b"deals"
    ),
    Fault(
        "checkpoint-entry", rewrite(RECOVERY_POINTS, replace(b"deals 0 52", b"a/b/c 0 52")), RECOVERY_POINTS, b"a/b/c"
    ),
    Fault(
        "checkpoint-duplicate",
        rewrite(RECOVERY_POINTS, lambda data: put(2, b"7")(data) + b"deals 0 12\n"),
        RECOVERY_POINTS,
        b"deals 0 12",
        12,
    ),
    Fault(
        "checkpoint-unknown-partition",
        rewrite(CLEANER_OFFSETS, lambda data: put(2, b"3")(data) + b"lost 3 12\n"),
        CLEANER_OFFSETS,
        b"lost",
        12,
    ),
    Fault(
        "checkpoint-unknown-partition", rewrite(LOG_STARTS, replace(b"events 0 7", b"lost 0 7")), LOG_STARTS, b"lost", 7
    ),
    Fault("checkpoint-unknown-partition", lambda at: shutil.rmtree(at / "events-1"), RECOVERY_POINTS, b"events 1", 0),
]
BEYOND_END: Final = [
    Fault(
        "recovery-point-beyond-end",
        rewrite(RECOVERY_POINTS, replace(b"events 0 21", b"events 0 22")),
        RECOVERY_POINTS,
        b"events 0",
        22,
    ),
    Fault(
        "high-watermark-beyond-end",
        rewrite(HIGH_WATERMARKS, replace(b"events 0 21", b"events 0 22")),
        HIGH_WATERMARKS,
        b"events 0",
        22,
    ),
    Fault("log-start-beyond-end", rewrite(LOG_STARTS, replace(b"events 0 7", b"events 0 22")), LOG_STARTS, 4, 22),
    Fault(
        "cleaner-offset-beyond-end",
        rewrite(CLEANER_OFFSETS, replace(b"table 0 40", b"events 0 22")),
        CLEANER_OFFSETS,
        b"events 0",
        22,
    ),
]
IDENTITY: Final = [
    Fault("meta-properties-format", rewrite(META, replace(b"node.id=1", b"node.id=\\u00zz")), META, b"node.id"),
    Fault("meta-properties-version", rewrite(META, replace(b"version=1", b"version=2")), META, b"version"),
    Fault("meta-properties-version", rewrite(META, replace(b"version=1", b"version=one")), META, b"version"),
    Fault("meta-properties-keys", rewrite(META, replace(b"node.id=1", b"nod.id=1")), META, 0),
    Fault("meta-properties-keys", rewrite(META, lambda data: b""), META, 0),
    Fault("meta-properties-node-id", rewrite(META, replace(b"node.id=1", b"node.id=-1")), META, b"node.id"),
    Fault("meta-properties-node-id", rewrite(META, replace(b"node.id=1", b"node.id=3000000000")), META, b"node.id"),
    Fault(
        "meta-properties-directory-id",
        rewrite(META, replace(b"directory.id=", b"directory.id=x")),
        META,
        b"directory.id",
    ),
    Fault("clean-shutdown-content", rewrite(CLEAN, lambda data: data[:-1]), CLEAN, 0),
    Fault("clean-shutdown-content", rewrite(CLEAN, replace(b"brokerEpoch", b"epoch")), CLEAN, 0),
]
TOPIC_IDS: Final = [
    Fault("topic-id-format", rewrite(TOPIC_ID, lambda data: data[:30]), TOPIC_ID, 21),
    Fault("topic-id-format", rewrite(TOPIC_ID, replace(b"version", b"verse")), TOPIC_ID, 0),
    Fault("topic-id-format", rewrite(TOPIC_ID, lambda data: data[:21] + b"A" * 22), TOPIC_ID, 21),
    Fault("topic-id-differs", lambda at: other_id(at, with_metadata=False), "events-1/partition.metadata"),
    Fault("topic-id-metadata", lambda at: other_id(at, with_metadata=True), TOPIC_ID),
    Fault("topic-id-missing", lambda at: (at / TOPIC_ID).unlink(), TOPIC_ID),
    Fault("topic-not-in-metadata", lambda at: shutil.copytree(at / "events-1", at / "tales-1"), "tales-1"),
]
LEFTOVERS: Final = [
    Fault("folder-name", make_folder("backup"), "backup"),
    Fault("folder-name", make_folder("deals-007"), "deals-007"),
    Fault("folder-name", make_folder("deals-delete"), "deals-delete"),
    Fault("not-a-file", make_pipe_of(LOG_STARTS), LOG_STARTS),
    Fault("not-a-file", make_pipe_of(TOPIC_ID), TOPIC_ID),
    Fault("not-a-file", make_folder(f"{EVENTS}/00000000000000000099.log"), f"{EVENTS}/00000000000000000099.log"),
    Fault(
        "not-a-file",
        lambda at: (at / EVENTS / f"{99:020d}.log").symlink_to("nowhere"),
        f"{EVENTS}/{99:020d}.log",
    ),
    Fault("not-a-file", lambda at: link_to_itself(at / EVENTS / f"{99:020d}.log"), f"{EVENTS}/{99:020d}.log"),
    Fault(
        "file-name",
        move(f"{EVENTS}/00000000000000000020.snapshot", f"{EVENTS}/20.snapshot"),
        f"{EVENTS}/20.snapshot",
    ),
    Fault(
        "orphaned-index",
        copy(f"{EVENTS}/00000000000000000018.timeindex", f"{EVENTS}/00000000000000000017.timeindex"),
        f"{EVENTS}/00000000000000000017.timeindex",
        None,
        17,
    ),
    Fault(
        "leftover-swap",
        copy(f"{EVENTS}/00000000000000000018.log", f"{EVENTS}/00000000000000000018.log.swap"),
        f"{EVENTS}/00000000000000000018.log.swap",
        None,
        18,
    ),
]
# Kafka 4 does not write these any more, so they are made by hand as release 3.6 wrote them.
SEGMENTS: Final = bytes(2) + (3).to_bytes(4) + (40).to_bytes(8) + (2).to_bytes(4) + b"\0\0\0\2ab" + b"\0\0\0\1c"
REMOTE_LOG: Final = [
    Fault("remote-log-snapshot-format", write(REMOTE, SEGMENTS[:10]), REMOTE, 10),
    Fault("remote-log-snapshot-format", write(REMOTE, b"\1" + SEGMENTS[1:]), REMOTE, 0),
    Fault("remote-log-snapshot-format", write(REMOTE, SEGMENTS[:-1]), REMOTE, 24),
    Fault("remote-log-snapshot-format", write(REMOTE, SEGMENTS + b"x"), REMOTE, 29),
    Fault("remote-log-offsets-format", write(REMOTE_OFFSETS, b"0\n1\n3 x\n"), REMOTE_OFFSETS, 4),
    Fault("remote-log-offsets-format", write(REMOTE_OFFSETS, b"0\n2\n3 1\n3 2\n"), REMOTE_OFFSETS, 8),
]
FAULTS: Final = [*CHECKPOINTS, *BEYOND_END, *IDENTITY, *TOPIC_IDS, *LEFTOVERS, *REMOTE_LOG]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found_where_it_is(fault: Fault, tmp_path: Path) -> None:
    folder, _, inside = fault.file.partition("/")
    partition = folder if inside else EVENTS
    fault.check(unpack("closed", tmp_path, partition), partition)


def test_every_rule_has_a_fault() -> None:
    modules = (checkpoints, directory_identity, topic_ids, leftovers, remote_log)
    assert rules_of(*modules) == {fault.rule for fault in FAULTS}


def without(directory: Path, files: list[Path]) -> None:
    """Leave out files, and the metadata, which older releases did not have."""
    for path in files:
        path.unlink()
    shutil.rmtree(directory / "__cluster_metadata-0")


SOUND: Final = {
    "empty checkpoints": lambda at: [(at / name).write_bytes(b"") for name in (RECOVERY_POINTS, LOG_STARTS)],
    "a checkpoint that ends after its version": write(CLEANER_OFFSETS, b"0\n"),
    "no checkpoints": lambda at: [(at / name).unlink() for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)],
    "no meta.properties": lambda at: (at / META).unlink(),
    "meta.properties of ZooKeeper's time": write(META, b"#\n#Mon Nov 16 08:21:35 UTC 2020\nversion=0\nbroker.id=3\n"),
    "an empty mark of a clean shutdown": write(CLEAN, b""),
    "no leader epochs": lambda at: (at / EVENTS / "leader-epoch-checkpoint").unlink(),
    "empty leader epochs": write(f"{EVENTS}/leader-epoch-checkpoint", b""),
    "no partition.metadata where there is no metadata log": lambda at: without(at, [at / TOPIC_ID]),
    "no producer snapshots, as the first releases with producers left it": lambda at: without(
        at, [at / TOPIC_ID, *(at / EVENTS).glob("*.snapshot")]
    ),
    "no metadata log": lambda at: shutil.rmtree(at / "__cluster_metadata-0"),
    "a checkpoint that is being written": write(f"{RECOVERY_POINTS}.tmp", b"0\n"),
    "an empty list of remote segments": write(REMOTE, b""),
    "a list of remote segments": write(REMOTE, SEGMENTS),
    "offsets of remote metadata": write(REMOTE_OFFSETS, b"0\n1\n3 44\n"),
    "the cache of remote indexes": make_folder("remote-log-index-cache"),
    "the metadata log of release 2.8": make_folder("@metadata-0"),
    "a replica that moves here": lambda at: shutil.copytree(
        at / "events-1", at / "events-2.0123456789abcdef0123456789abcdef-future"
    ),
    "output of compaction that was interrupted": copy(
        f"{EVENTS}/00000000000000000018.log", f"{EVENTS}/00000000000000000018.log.cleaned"
    ),
    "a deleted segment": copy(f"{EVENTS}/00000000000000000018.log", f"{EVENTS}/00000000000000000018.log.deleted"),
}


@pytest.mark.parametrize("what", SOUND)
def test_what_kafka_leaves_behind_or_makes_anew_is_no_fault(what: str, tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, EVENTS)
    SOUND[what](directory)
    assert problems(directory, EVENTS) == []


UNFINISHED: Final = {
    "output of compaction": copy(f"{EVENTS}/00000000000000000018.log", f"{EVENTS}/00000000000000000018.log.cleaned"),
    "a swap": copy(f"{EVENTS}/00000000000000000018.log", f"{EVENTS}/00000000000000000018.log.swap"),
    "an index of a deleted segment": write(f"{EVENTS}/00000000000000000003.index", bytes(8)),
    "a producer snapshot": write(f"{EVENTS}/00000000000000000022.snapshot", b""),
    "a partition that is not in the checkpoints any more": lambda at: shutil.rmtree(at / "events-1"),
    "an epoch whose first batch is lost": write(f"{EVENTS}/leader-epoch-checkpoint", b"0\n3\n0 7\n2 20\n9 30\n"),
}


@pytest.mark.parametrize("what", UNFINISHED)
def test_what_a_crash_leaves_behind_is_no_fault(what: str, tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, EVENTS)
    UNFINISHED[what](directory)
    (directory / CLEAN).unlink()
    assert problems(directory, EVENTS) == []


@pytest.mark.parametrize("name", ["closed", "crashed"])
def test_a_directory_as_kafka_left_it_has_no_problems(name: str, tmp_path: Path) -> None:
    directory = unpack("closed" if name == "closed" else "crashed", tmp_path)
    folders = [path.name for path in directory.iterdir() if path.is_dir()]
    assert len(folders) == 8
    assert [problem for folder in folders for problem in problems(directory, folder)] == []
