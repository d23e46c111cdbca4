"""Every repair that `octavo verify` prints is followed literally, and then Apache Kafka serves the directory.

Many partitions, each with a fault that `tests.planted` plants, are in one directory, so that their repairs share a
start of Kafka. Two other partitions have other damage, which must be untouched afterwards: a repair that has Kafka
recover more than it names cuts them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from octavo.inspect.salvage import salvage
from octavo.inspect.verify import Problem, all_rules, check_directory, check_partition, looks, repairs
from octavo.log import DataDirectory, Isolation, Log, Producer
from octavo.log.metadata import handover
from octavo.records import read_batches
from tests.crash.storage import FastStorage
from tests.kafka.answers import KafkaError
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.releases import Name
from tests.kafka.serving import Seen, read_by_octavo
from tests.planted import PlantedPartition, copy_into, nothing_to_do, partitions

DELETED: Final = {"cleanup.policy": "delete", "retention.ms": "-1"}
BYSTANDERS: Final = ("damaged", "torn")
MANY: Final = 475  # sound records behind a damaged batch


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


class Case(NamedTuple):
    """A partition with a fault, where it is served from."""

    planted: PlantedPartition
    folder: Path
    replica: Path  # the same without the fault, as another node has it

    @property
    def topic(self) -> str:
        return str(self.folder.name).rpartition("-")[0]


# Following repairs. Each is given the case and the file that the problem names, and does what the sentence says.


def salvage_it(case: Case, _file: str) -> None:
    target = case.folder.parent.parent / f"salvaged-{case.topic}-0"
    salvage([case.folder], target, storage=FastStorage())
    shutil.rmtree(case.folder)
    target.rename(case.folder)


def copy_replica(case: Case, _file: str) -> None:
    copy_into(case.replica, case.folder)


def delete_indexes(case: Case, file: str) -> None:
    delete(case.folder, f"{file[:20]}.index", f"{file[:20]}.timeindex")


def delete_all_indexes(case: Case, file: str) -> None:
    delete_indexes(case, file)
    delete(case.folder, f"{file[:20]}.txnindex")


def delete_epochs(case: Case, file: str) -> None:
    delete(case.folder, file, "*.index", "*.timeindex")


def delete_snapshot(case: Case, file: str) -> None:
    earlier = [path for path in case.folder.glob("*.snapshot") if path.name < file]
    delete(case.folder, file)
    if not earlier:
        delete(case.folder, "*.index", "*.timeindex")


def delete_every_index(case: Case, _file: str) -> None:
    delete(case.folder, "*.index", "*.timeindex")


def delete_named(case: Case, file: str) -> None:
    delete(case.folder, file)


def move_away(case: Case, file: str) -> None:
    away = case.folder.parent.parent / "away"
    away.mkdir(exist_ok=True)
    (case.folder / file).rename(away / file)


def name_after_first_batch(case: Case, file: str) -> None:
    if file.endswith(".log"):
        first = next(iter(read_batches((case.folder / file).read_bytes()))).base_offset
        (case.folder / file).rename(case.folder / f"{first:020d}.log")
    else:
        move_away(case, file)


def delete(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()


FOLLOWED: Final[dict[str, Callable[[Case, str], None]]] = {
    repairs.SALVAGE: salvage_it,
    repairs.SALVAGE_MESSAGES: salvage_it,
    repairs.NAME_ANEW: salvage_it,
    repairs.BESIDE_DAMAGE: salvage_it,
    repairs.RESTORE: copy_replica,
    repairs.REBUILD_INDEXES: delete_indexes,
    repairs.REBUILD_TRANSACTIONS: delete_all_indexes,
    repairs.CUT_TAIL: delete_indexes,
    repairs.COLLECT_EPOCHS: delete_epochs,
    repairs.READ_PRODUCERS: delete_snapshot,
    repairs.READ_ALL_PRODUCERS: delete_every_index,
    "Restore the end of the log from another replica; otherwise delete the snapshot, as Kafka does.": delete_named,
    "Restore the end of the log from another replica; otherwise nothing, for Kafka drops the entry.": lambda *_: None,
    "Restore the segment from another replica; otherwise nothing, for Kafka deletes the index.": lambda *_: None,
    "Delete the file.": delete_named,
    "Move it away.": move_away,
    "Name a `.log` after the offset of its first batch, and move any other file away.": name_after_first_batch,
}


def problems(folder: Path) -> list[Problem]:
    return [each for each in check_partition(folder) if not each.file.startswith("../")]


def follow(case: Case) -> None:
    """Do what is advised for each problem of a partition, the planted one first, until nothing is left to be done."""
    found = problems(case.folder)
    assert case.planted.rule in {each.rule.name for each in found}, found
    found.sort(key=lambda each: each.rule.name != case.planted.rule)
    for problem in found:
        is_there = problem in problems(case.folder)
        if is_there and not nothing_to_do(problem):
            FOLLOWED[problem.repair](case, problem.file)


class Known(NamedTuple):
    """What a partition must still give to readers."""

    intact: list[Seen]  # of batches that the damage has left as they are
    aborted: set[int]  # offsets that readers of committed data must not see


def known(case: Case) -> Known:
    """Compare the damaged partition with its replica."""
    data = b"".join(path.read_bytes() for path in case.folder.glob("*.log*") if path.is_file())
    sound = case.folder.parent.parent / "read" / f"{case.topic}-0"
    shutil.copytree(case.replica, sound)
    log = Log.open(sound, may_have_gaps=True)
    try:
        intact: set[int] = set()
        for path in sorted(sound.glob("*.log")):
            bytes_ = path.read_bytes()
            for batch in read_batches(bytes_):
                if bytes_[batch.position : batch.position + batch.size] in data:
                    intact.update(range(batch.base_offset, batch.last_offset + 1))
        everything = read_by_octavo(log, Isolation.LOG_END).records
        committed = {each.offset for each in read_by_octavo(log, Isolation.READ_COMMITTED).records}
        stable = log.last_stable_offset
    finally:
        log.close()
    aborted = {each.offset for each in everything if each.offset not in committed and each.offset < stable}
    return Known([each for each in everything if each.offset in intact], aborted)


class Prepared(NamedTuple):
    """A directory after all repairs."""

    cases: list[Case]
    expected: dict[str, Known]  # by topic
    bystanders: dict[Path, bytes]


def prepare(planted: Iterable[PlantedPartition], work: Path, directory: Path) -> Prepared:
    """Make a directory with damaged partitions, and follow the repairs of all but two of them."""
    cases = [make_case(each, work, directory) for each in planted]
    with DataDirectory.open(directory) as data:
        for topic in [*(case.topic for case in cases), *BYSTANDERS]:
            data.create_topic(topic, 1, DELETED)
        with Producer(data) as producer:
            for topic in BYSTANDERS:
                for number in range(MANY + 25):
                    producer.send(topic, b"%d" % number, partition=0)
                    if number % 25 == 0:
                        producer.flush()
    for case in cases:
        copy_into(case.replica, case.folder)
    handover([directory])
    expected = {}
    for case in cases:
        copy_into(case.planted.make(work / "damaged" / case.topic), case.folder)
        expected[case.topic] = known(case)
    bystanders = [damage(directory / f"{topic}-0", topic) for topic in BYSTANDERS]
    for case in cases:
        follow(case)
    return Prepared(cases, expected, {path: path.read_bytes() for path in bystanders})


def serve(planted: Iterable[PlantedPartition], work: Path, broker: Broker, judge: Judge) -> None:
    """Follow the repairs of all partitions, start Kafka, and compare what it serves."""
    directory = broker.folders[0]
    cases, expected, bystanders = prepare(planted, work, directory)
    broker.start()
    clients = JavaClients(judge, broker)
    failed: list[tuple[str, str, Seen | int | str]] = []
    for case in cases:
        intact, aborted = expected[case.topic]
        try:
            served = clients.read(case.topic, 0, committed=False).records
        except KafkaError as error:
            failed.append((case.topic, "cannot be read", str(error)))
            continue
        failed += [(case.topic, "is missing", each) for each in intact if each not in served]
        committed = [each.offset for each in clients.read(case.topic, 0).records]
        failed += [(case.topic, "is aborted, but seen", each) for each in committed if each in aborted]
    broker.stop()
    assert failed == []
    assert {path: path.read_bytes() for path in bystanders} == bystanders
    left = [(case.topic, each) for case in cases for each in problems(case.folder) if not nothing_to_do(each)]
    assert left == []
    assert list(check_directory(directory)) == []


def make_case(planted: PlantedPartition, work: Path, directory: Path) -> Case:
    return Case(planted, directory / f"{planted.name}-0", planted.make(work / "sound" / planted.name, damaged=False))


def damage(folder: Path, how: str) -> Path:
    """Damage the first batch of the active segment, or have it end inside a batch."""
    path = max(folder.glob("*.log"))
    data = bytearray(path.read_bytes())
    if how == "damaged":
        data[70] ^= 1
    else:
        del data[-10:]
    path.write_bytes(data)
    return path


def one_of_each_kind() -> list[PlantedPartition]:
    """Return a fault for each sentence that is printed."""
    repair = {rule.name: rule.repair for rule in all_rules()}
    return list({repair[each.rule]: each for each in reversed(partitions())}.values())


def test_one_repair_of_each_kind_is_followed_and_kafka_serves(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    """Mend 1.3: advice destroyed what was intact, or did not repair anything."""
    serve(one_of_each_kind(), tmp_path, new_broker(tmp_path / "data"), kafka_broker)


@pytest.mark.exhaustive
def test_every_repair_of_a_partition_is_followed_and_kafka_serves(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    """Mend 1.3, for every fault that is planted."""
    serve(partitions(), tmp_path, new_broker(tmp_path / "data"), kafka_broker)


@pytest.mark.soak(20)
@pytest.mark.parametrize("release", ["legacy", "4.0", "4.1", "4.2"])
def test_every_repair_of_a_partition_is_followed_and_other_releases_serve(
    release: Name, tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    """Mend 1.3, with the other releases of Kafka."""
    broker = new_broker(tmp_path / "data", release=release)
    if release == "legacy":  # the metadata of a directory that Octavo makes are of 4.0
        broker.format()
    serve(partitions(), tmp_path, broker, kafka_broker)
