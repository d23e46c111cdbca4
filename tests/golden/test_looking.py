"""What `explain` and `report` say about whole directories that Apache Kafka wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.inspect import ByteMap, explain_file
from octavo.inspect.kinds import Kind, kind_of
from octavo.inspect.pages.explain_page import explain_page
from octavo.inspect.pages.report_page import report_page
from octavo.inspect.report.gathering import find_partitions, gather
from octavo.records import read_batches
from tests.golden.directories import Name, unpack

NOTHING = (Kind.LOCK, Kind.CLEAN_SHUTDOWN, Kind.UNKNOWN)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker of 4.3 wrote: every kind of file and record."""
    return unpack("dumped", tmp_path_factory.mktemp("looking"))


def assert_explained(found: ByteMap, data: bytes) -> None:
    """Every byte is in one field, every field has a meaning, and nothing is wrong."""
    assert found.problems == []
    leaves = [field for field in found.fields if not field.is_group and not field.inflated]
    assert b"".join(field.data for field in leaves) == data
    assert [field for field in found.fields if not field.meaning] == []


def test_every_batch_that_kafka_wrote_is_explained(directory: Path) -> None:
    count = 0
    for path in sorted(directory.rglob("*")):
        if not path.is_file() or not kind_of(path).has_batches:
            continue
        for batch in read_batches(path.read_bytes()):
            found = explain_file(path, position=batch.position)
            assert_explained(found, bytes(batch.data))
            assert found.position == batch.position
            count += 1
    assert count > 100


def test_every_other_file_that_kafka_wrote_is_explained(directory: Path) -> None:
    kinds = set()
    for path in sorted(directory.rglob("*")):
        kind = kind_of(path)
        if path.is_file() and not kind.has_batches and kind not in NOTHING:
            assert_explained(explain_file(path), path.read_bytes())
            kinds.add(kind)
    assert len(kinds) >= 7


def test_a_page_is_made_of_each_kind_of_file(directory: Path) -> None:
    kinds = {kind_of(path): path for path in sorted(directory.rglob("*")) if path.is_file()}
    for kind, path in kinds.items():
        if kind not in NOTHING:
            assert explain_page(explain_file(path)).count("treeitem") > 0 or path.stat().st_size == 0


def test_the_numbers_of_the_report_are_those_of_the_batches(directory: Path) -> None:
    summary = gather(directory, find_partitions(directory), verify=False)
    assert len(summary.partitions) > 10
    for each in summary.partitions:
        assert each.failure is None
        batches = [
            batch
            for path in sorted((directory / each.folder).glob("*.log"))
            for batch in read_batches(path.read_bytes())
        ]
        assert each.batches == len(batches)
        assert each.records == sum(len(list(batch)) for batch in batches)
        assert each.codec_bytes.total() == sum(batch.size for batch in batches)
        assert each.end_offset == (batches[-1].last_offset + 1 if batches else each.start_offset)
    assert "rolled" in report_page(summary, "")


@pytest.mark.parametrize("name", ["closed", "crashed"])
def test_a_sound_directory_is_reported_sound(name: Name, tmp_path: Path) -> None:
    folder = unpack(name, tmp_path)
    summary = gather(folder, find_partitions(folder), verify=True)
    assert [each.failure for each in summary.partitions if each.failure] == []
    assert summary.problems == []
    assert "no rule is broken" in report_page(summary, "")
