"""Repairs of the files of a data directory itself, and of its metadata, are followed literally; then Kafka serves it.

The directory is `closed`, which a broker of Kafka has filled. Faults in different files share a start of Kafka. Two
partitions have other damage, which must be untouched afterwards. What another node or a person has to tell is taken
from the sound directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.verify import Problem, all_rules, check_directory, check_partition, looks
from octavo.log import Isolation, Log
from tests.golden.directories import unpack
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.serving import read_by_octavo
from tests.planted import nothing_to_do, of_directories, partitions
from tests.unit.inspect.verify.planting import Fault


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


# Following repairs. Each is given the damaged and the sound directory, the file, and what was found there.


def restore(directory: Path, sound: Path, file: str, _found: str) -> None:
    """Write what was there, which the sentence describes, or which another node has."""
    remove(directory, sound, file, "")
    copy = shutil.copytree if (sound / file).is_dir() else shutil.copy
    copy(sound / file, directory / file)


def remove_line(directory: Path, _sound: Path, file: str, found: str) -> None:
    """Remove the last line that is meant, and lower the count in the second line by one."""
    path = directory / file
    version, count, *lines = path.read_text().splitlines()
    name = found.partition(",")[0]
    topic, _, number = name.rpartition("-")
    meant = [at for at, line in enumerate(lines) if line == name or line.startswith(f"{topic} {number} ")]
    if not meant:  # an offset, of the one partition that has it
        meant = [at for at, line in enumerate(lines) if line.split()[-1] == name]
    del lines[meant[-1]]
    path.write_text("\n".join([version, str(int(count) - 1), *lines, ""]))


def remove(directory: Path, _sound: Path, file: str, _found: str) -> None:
    path = directory / file
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def delete_snapshot(directory: Path, sound: Path, file: str, _found: str) -> None:
    """Delete it if there is an older one, and copy one from another node otherwise."""
    others = list((directory / file).parent.glob("*.checkpoint"))
    if file.startswith("__cluster_metadata-0/") and len(others) > 1:
        (directory / file).unlink()
    else:
        restore(directory, sound, file, "")


def copy_newest_snapshot(directory: Path, sound: Path, _file: str, _found: str) -> None:
    newest = max((sound / "__cluster_metadata-0").glob("*.checkpoint"))
    shutil.copy(newest, directory / "__cluster_metadata-0")


def nothing(*_: object) -> None:
    return


Follow = Callable[[Path, Path, str, str], None]
FOLLOWED: Final[dict[str, Follow]] = {
    "checkpoint-format": restore,
    "checkpoint-entry": remove_line,
    "checkpoint-duplicate": remove_line,
    "checkpoint-unknown-partition": remove_line,
    "recovery-point-beyond-end": nothing,
    "high-watermark-beyond-end": nothing,
    "cleaner-offset-beyond-end": remove_line,
    "log-start-beyond-end": remove_line,
    "meta-properties-format": restore,
    "meta-properties-version": restore,
    "meta-properties-keys": restore,
    "meta-properties-node-id": restore,
    "meta-properties-directory-id": restore,
    "clean-shutdown-content": nothing,
    "topic-id-format": restore,
    "topic-id-metadata": restore,
    "topic-id-missing": restore,
    "topic-not-in-metadata": remove,
    "folder-name": remove,
    "not-a-file": remove,
    "kraft-snapshot-name": remove,
    "kraft-snapshot-batch": delete_snapshot,
    "kraft-snapshot-header": delete_snapshot,
    "kraft-snapshot-footer": delete_snapshot,
    "kraft-snapshot-offsets": delete_snapshot,
    "kraft-snapshot-record": delete_snapshot,
    "kraft-snapshot-epoch": delete_snapshot,
    "kraft-snapshot-beyond-end": nothing,
    "kraft-snapshot-missing": copy_newest_snapshot,
    "quorum-state-format": remove,
    "quorum-state-epoch": remove,
    "remote-log-offsets-format": remove,
}

# What only another node of a running cluster can give back, so that no lone broker can show it.
NEEDS_A_CLUSTER: Final = {"metadata-record", "topic-id-differs"}
SERVED: Final = ("events", 0)
DELETED_BEFORE: Final = 7  # by its log start offset
BESIDE: Final = (f"table-0/{0:020d}.log", f"deals-0/{48:020d}.log")


def rounds() -> list[list[Fault]]:
    """Return the faults in rounds, none of which touches a file twice."""
    found: list[list[Fault]] = []
    for fault in of_directories():
        if fault.rule not in NEEDS_A_CLUSTER:
            place = "metadata" if fault.rule.startswith("kraft-") else fault.file
            for group in found:
                if place not in {"metadata" if each.rule.startswith("kraft-") else each.file for each in group}:
                    group.append(fault)
                    break
            else:
                found.append([fault])
    return found


def path_below(directory: Path, problem: Problem, folder: str) -> str:
    """Return the path of a problem's file below the directory."""
    return problem.file[3:] if problem.file.startswith("../") else f"{folder}{problem.file}"


def all_problems(directory: Path) -> list[Problem]:
    """Return the problems of the directory and of the partitions that are looked at, with paths below it."""
    found = [*check_directory(directory)]
    for name in ("events-0", "events-1", "__cluster_metadata-0"):
        if (directory / name).is_dir():
            inside = check_partition(directory / name)
            found += [replace(each, file=path_below(directory, each, f"{name}/")) for each in inside]
    return found


def serve_directory(faults: list[Fault], work: Path, new_broker: NewBroker, judge: Judge) -> None:
    """Plant faults of a round, follow the repairs, start Kafka, and compare what it serves."""
    sound, directory = unpack("closed", work / "sound"), unpack("closed", work / "damaged")
    expected = Log.open(shutil.copytree(sound / "events-0", work / "read" / "events-0"))
    records = [each for each in read_by_octavo(expected, Isolation.LOG_END).records if each.offset >= DELETED_BEFORE]
    expected.close()
    for fault in faults:
        fault.plant(directory)
    for name in BESIDE:
        data = (directory / name).read_bytes()
        (directory / name).write_bytes(data[:70] + b"?" + data[71:])
    beside = {name: (directory / name).read_bytes() for name in BESIDE}
    planted = all_problems(directory)
    assert {fault.rule for fault in faults} <= {each.rule.name for each in planted}
    planted.sort(key=lambda each: not each.rule.name.startswith("kraft-"))  # the metadata say what the topics are
    for problem in planted:
        if problem in all_problems(directory):
            follow = restore if problem.instead else FOLLOWED[problem.rule.name]
            follow(directory, sound, problem.file, problem.found)
    broker = new_broker(directory)
    broker.start()
    served = JavaClients(judge, broker).read(*SERVED, committed=False).records
    broker.stop()
    assert [each for each in served if each.offset >= DELETED_BEFORE] == records
    assert {name: (directory / name).read_bytes() for name in BESIDE} == beside
    assert [each for each in all_problems(directory) if not nothing_to_do(each)] == []


def test_one_repair_of_each_file_of_a_directory_is_followed_and_kafka_serves(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    """Mend 1.3 (b) and (c), for files of the directory itself."""
    serve_directory(rounds()[0], tmp_path, new_broker, kafka_broker)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(1, len(rounds())))
def test_every_repair_of_a_directory_is_followed_and_kafka_serves(
    number: int, tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    """Mend 1.3, for every fault that is planted in files of a directory itself."""
    serve_directory(rounds()[number], tmp_path, new_broker, kafka_broker)


def test_every_rule_has_its_repair_followed() -> None:
    in_partitions, in_directories = {each.rule for each in partitions()}, set(FOLLOWED)
    elsewhere = {rule for rule in (each.name for each in all_rules()) if rule.startswith("replica-")}
    large = {"segment-size", "segment-emptied", "batch-size", "batch-gap"}
    known = in_partitions | in_directories | NEEDS_A_CLUSTER | elsewhere | large
    assert {rule.name for rule in all_rules()} == known
    followed = {each.rule for group in rounds() for each in group}
    assert followed <= in_directories
