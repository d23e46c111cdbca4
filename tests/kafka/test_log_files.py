"""The small files of a data directory, as Apache Kafka has them."""

from __future__ import annotations

import random
import uuid
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from octavo.errors import Corrupt
from octavo.log.files import clean_shutdown, partition_metadata
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.files.meta_properties import MetaProperties, read_meta_properties, write_meta_properties, write_uuid
from octavo.log.files.properties import read_properties, write_properties
from octavo.log.files.text_checkpoint import EpochEntry, read_epochs, read_offsets, write_epochs, write_offsets
from octavo.log.names import (
    TopicPartition,
)
from octavo.log.storage import DISK
from octavo.records.layout import MAX_INT32, MAX_INT64
from tests.kafka.judge import Judge
from tests.kafka.log_questions import ask, ask_one


def test_kafka_reads_the_offsets_that_octavo_wrote(kafka_broker: Judge, tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("events", 0): 0, TopicPartition("a-b", 7): MAX_INT64, TopicPartition("x" * 249, 1): 5}
    write_offsets(DISK, {path: offsets})
    expected = {str(partition): offset for partition, offset in offsets.items()}
    assert ask_one(kafka_broker, "offsets", path=str(path)) == expected


def test_octavo_reads_the_offsets_that_kafka_wrote(kafka_broker: Judge, tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    ask_one(kafka_broker, "offsets", path=str(path), write=[["events", 3, 12], ["a-b", 0, MAX_INT64]])
    offsets = {TopicPartition("events", 3): 12, TopicPartition("a-b", 0): MAX_INT64}
    assert read_offsets(DISK, path) == offsets
    theirs = path.read_bytes()
    write_offsets(DISK, {path: offsets})
    assert sorted(path.read_bytes().splitlines()) == sorted(theirs.splitlines())
    assert len(path.read_bytes()) == len(theirs)


def test_checkpoints_are_refused_where_kafka_refuses_them(kafka_broker: Judge, tmp_path: Path) -> None:
    texts = [b"", b"\n", b"0", b"0\n", b"0\n0", b"0\n0\n", b"0\n1\n", b"1\n0\n", b"0\n1\na 0 5", b"0\r\n1\r\na 0 5\r\n"]
    texts += [
        b"0\r1\ra 0 5\r",
        b"0\n1\na 0 5\n\n",
        b"0\n1\n a 0 5\n",
        b"0\n1\na 0 5 \n",
        b"0\n1\na  0\t5\n",
        b"0\n2\na 0 5\n",
    ]
    texts += [
        b"0\n1\na 0 5 6\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 5\n",
        b"0\n1\na 0 9223372036854775808\n",
        b" 0\n0\n",
        b"0\n-1\n",
    ]
    texts += [
        b"0\n1\na 0 1_0\n",
        b"0\n1\n\xff 0 5\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n2\na 0 5\na 0 6\n",
        b"0\n1\na\x0b0\x0c5\n",
    ]
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    answers = ask(kafka_broker, "offsets", [{"path": str(path)} for path in paths])
    for path, text, answer in zip(paths, texts, answers, strict=True):
        try:
            offsets = {str(partition): offset for partition, offset in read_offsets(DISK, path).items()}
        except Corrupt:
            # One whose last line has no end may be cut in its number, and still be a number to Kafka.
            assert answer.error is not None or not text.endswith((b"\n", b"\r")), (text, answer)
        else:
            assert answer.value == offsets, (text, answer)


def test_leader_epochs_go_both_ways(kafka_broker: Judge, tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    entries = [EpochEntry(0, 0), EpochEntry(3, 17), EpochEntry(MAX_INT32, MAX_INT64)]
    write_epochs(DISK, path, entries)
    ours = path.read_bytes()
    assert ask_one(kafka_broker, "epochs", path=str(path)) == [[*entry] for entry in entries]
    ask_one(kafka_broker, "epochs", path=str(path), write=[[*entry] for entry in entries])
    assert path.read_bytes() == ours
    assert read_epochs(DISK, path) == entries


def step(random_: random.Random) -> list[Any]:
    name = random_.choice(["assign", "assign", "assign", "truncate_from_end", "truncate_from_start", "end_offset_for"])
    name = random_.choice([name, name, name, "epoch_for_offset", "latest"]) if random_.random() < 0.98 else "clear"
    epoch, offset = random_.randrange(12), random_.randrange(60)
    match name:
        case "assign":
            return [name, epoch, offset]
        case "end_offset_for":
            return [name, epoch - 1, 100]
        case "latest" | "clear":
            return [name]
    return [name, offset - 1]


def take(epochs: LeaderEpochs, name: str, *numbers: int) -> Any:
    if name == "latest":
        return [] if epochs.latest is None else [[*epochs.latest]]
    answer = getattr(epochs, name)(*numbers)
    if name == "epoch_for_offset":
        return -1 if answer is None else answer
    return [*answer] if name == "end_offset_for" else ""


def test_leader_epochs_are_kept_as_kafka_keeps_them(kafka_broker: Judge, tmp_path: Path) -> None:
    random_ = random.Random(3)
    runs = [[step(random_) for _ in range(40)] for _ in range(80)]
    folders = [tmp_path / str(number) for number in range(len(runs))]
    for folder in folders:
        folder.mkdir()
    items = [{"path": str(folder / "kafka"), "steps": run} for folder, run in zip(folders, runs, strict=True)]
    for folder, run, answer in zip(folders, runs, ask(kafka_broker, "epochCache", items), strict=True):
        epochs = LeaderEpochs(DISK, folder / "octavo")
        for asked, (answered, entries) in zip(run, answer.value, strict=True):
            assert take(epochs, *asked) == answered, asked
            assert [[*entry] for entry in epochs.entries] == entries, asked
            again = LeaderEpochs(DISK, folder / "octavo", read_only=True)
            assert again.entries == epochs.entries, "what was changed is written"


def test_identities_go_both_ways(kafka_broker: Judge, tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    directory_id = uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF)
    ours = MetaProperties(cluster_id="a=b:c #1", node_id=7, directory_id=directory_id)
    write_meta_properties(DISK, tmp_path, ours)
    text = f"MetaProperties(version=1, clusterId=a=b:c #1, nodeId=7, directoryId={write_uuid(directory_id)})"
    assert ask_one(kafka_broker, "metaProperties", path=str(path)) == text
    our_lines = path.read_bytes().splitlines()

    ask_one(kafka_broker, "metaProperties", path=str(path), write=ours.to_properties())
    assert read_meta_properties(DISK, tmp_path) == ours
    their_lines = path.read_bytes().splitlines()
    assert our_lines[0] == their_lines[0]
    assert len(our_lines[1].split()) == len(their_lines[1].split())  # a date
    assert sorted(our_lines[2:]) == sorted(their_lines[2:])

    old = MetaProperties(version=0, node_id=1)
    write_meta_properties(DISK, tmp_path, old)
    assert ask_one(kafka_broker, "metaProperties", path=str(path)) == "MetaProperties(version=0, nodeId=1)"
    assert read_meta_properties(DISK, tmp_path) == old


def test_identities_are_refused_where_kafka_refuses_them(kafka_broker: Judge, tmp_path: Path) -> None:
    texts = ["", "version=1", "version=1\ncluster.id=x", "version=1\nnode.id=1", "version=1\nnode.id=1\ncluster.id=x"]
    texts += [
        "version=2\nnode.id=1\ncluster.id=x",
        "version=x",
        "version= 1 \nnode.id=1\ncluster.id=x",
        "version=0\nbroker.id=x",
    ]
    texts += [
        "version=1\nnode.id=+1\ncluster.id=x",
        "version=1\nnode.id=1 \ncluster.id=x",
        "version=1\nnode.id=-1\ncluster.id=x",
    ]
    texts += [
        "broker.id=3\ndirectory.id=x",
        "version=1\nnode.id=2147483648\ncluster.id=x",
        "version=0\nnode.id=5",
        "version=-0",
    ]
    for text in texts:
        (tmp_path / "meta.properties").write_text(text)
        [answer] = ask(kafka_broker, "metaProperties", [{"path": str(tmp_path / "meta.properties")}])
        try:
            found = read_meta_properties(DISK, tmp_path)
        except Corrupt:
            assert answer.error is not None, text
        else:
            assert found is not None
            assert answer.error is None, text
            assert ("nodeId" in answer.value) == (found.node_id is not None), text


def random_properties(random_: random.Random) -> bytes:
    longer = [b"\\u0041", b"\\\n", b"\\\r\n  ", b"\\n", b"\xe9", b"\n"]
    pieces = [*(bytes([byte]) for byte in b"ab=: \t\f\\\r\n#!u0"), *longer]
    return b"".join(random_.choice(pieces) for _ in range(random_.randrange(25)))


def test_properties_are_read_as_java_reads_them(kafka_broker: Judge) -> None:
    random_ = random.Random(5)
    files = [random_properties(random_) for _ in range(20_000)]
    questions = [b64encode(file).decode() for file in files]
    refused = 0
    for file, answer in zip(files, ask(kafka_broker, "properties", questions), strict=True):
        try:
            assert read_properties(file) == answer.value, file
        except Corrupt:
            assert answer.error == "java.lang.IllegalArgumentException", file
            refused += 1
    assert 0 < refused < len(files) / 2


def test_properties_are_written_as_java_writes_them(kafka_broker: Judge) -> None:
    random_ = random.Random(7)
    letters = "ab =:#!\\\t\n\r\f\x00\x7f\x80é€\U0001f600"

    def word() -> str:
        return "".join(random_.choice(letters) for _ in range(random_.randrange(8)))

    cases = [{word(): word() for _ in range(3)} for _ in range(1000)]
    for case, answer in zip(cases, ask(kafka_broker, "store", cases), strict=True):
        theirs = b64decode(answer.value)
        ours = write_properties(case)
        assert sorted(ours.splitlines()) == sorted(theirs.splitlines()[1:]), case  # without the date
        assert read_properties(ours) == read_properties(theirs) == case


def test_topic_ids_go_both_ways(kafka_broker: Judge, tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    topic_id = uuid.uuid4()
    partition_metadata.write_topic_id(DISK, tmp_path, topic_id)
    ours = path.read_bytes()
    assert ask_one(kafka_broker, "topicId", path=str(path)) == write_uuid(topic_id)
    path.unlink()
    ask_one(kafka_broker, "topicId", path=str(path), write=write_uuid(topic_id))
    assert path.read_bytes() == ours
    assert partition_metadata.read_topic_id(DISK, tmp_path) == topic_id


def test_the_mark_of_a_clean_shutdown_goes_both_ways(kafka_broker: Judge, tmp_path: Path) -> None:
    clean_shutdown.write_mark(DISK, tmp_path, 42)
    ours = (tmp_path / ".kafka_cleanshutdown").read_bytes()
    assert ask_one(kafka_broker, "brokerEpoch", folder=str(tmp_path)) == 42
    assert clean_shutdown.remove_mark(DISK, tmp_path)
    assert ask_one(kafka_broker, "brokerEpoch", folder=str(tmp_path)) is None
    ask_one(kafka_broker, "brokerEpoch", folder=str(tmp_path), write=42)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == ours
    assert clean_shutdown.was_clean(tmp_path)
    assert clean_shutdown.read_broker_epoch(DISK, tmp_path) == 42
