"""The golden files are what Kafka writes and says today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.golden import files
from tests.golden.cases import Case, cases
from tests.golden.make import make
from tests.kafka.judge import Judge, ReadBatch


def test_every_case_has_its_file_and_every_file_its_case() -> None:
    assert files.names() == sorted(case.name for case in cases())


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_kafka_writes_the_same_again(case: Case, kafka: Judge, kafka39: Judge) -> None:
    golden = files.load(case.name)
    again = make(case, kafka, kafka39)
    assert golden.written_by == again.written_by
    assert [_without_codec(batch) for batch in again.batches] == [_without_codec(b) for b in golden.batches]
    if all(batch.codec == "none" for batch in golden.batches):
        assert again.data == golden.data  # compressed bytes depend on the JDK


@pytest.mark.parametrize("name", files.names())
def test_kafka_reads_what_is_told(name: str, kafka: Judge) -> None:
    golden = files.load(name)
    assert kafka.read(golden.data).batches == golden.batches


def test_the_golden_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in files.FOLDER.iterdir()) < 200_000


def _without_codec(batch: ReadBatch) -> ReadBatch:
    return batch if batch.codec == "none" else replace(batch, checksum=0, size=0)
