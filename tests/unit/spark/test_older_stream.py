"""A streaming query on a Spark before 4.2, which does not say where a micro-batch begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import DataLoss, MissingPartitions
from octavo.log import DataDirectory
from octavo.spark.versions import ReadLimit
from tests.unit.spark.test_stream import Offsets, Query
from tests.unit.spark.topics import SMALL, batch, write_topic


class OlderQuery(Query):
    """A query as an older Spark runs it: if it is restarted, an empty range is planned first."""

    def __init__(self, path: Path, offsets: Offsets | None = None, **options: str) -> None:
        super().__init__(path, offsets, **options)
        if offsets is not None:
            assert self.reader.partitions(offsets, offsets) == []

    def end(self, start: Offsets, limit: ReadLimit) -> Offsets:
        return self.reader.latestOffset()


def watermark(folder: Path, offset: int) -> None:
    """Has the directory record a high watermark of the only partition."""
    (folder / "replication-offset-checkpoint").write_text(f"0\n1\nevents 0 {offset}\n")


def test_a_log_is_tailed_over_restarts_also_when_a_topic_comes(tmp_path: Path) -> None:
    options = {"end": "logEnd", "startingOffsets": "earliest"}
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, SMALL)
        query: Query = OlderQuery(tmp_path, None, **options)
        for number in range(20):
            data.log("events", 0).append(batch(number * 5))
            assert query.trigger() == list(range(number * 5, number * 5 + 5))
            if number % 3 == 2:
                query = OlderQuery(tmp_path, query.offsets, **options)
        data.create_topic("more", 1, SMALL)
        data.log("more", 0).append(batch(0))
    assert query.trigger() == [0, 1, 2, 3, 4]
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 100}, "more": {"0": 5}}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_recorded_watermark_that_is_behind_does_not_lead_back(tmp_path: Path, restarted: bool) -> None:
    write_topic(tmp_path, batches=4)
    query = OlderQuery(tmp_path, startingOffsets="earliest")
    assert len(query.trigger()) == 20
    watermark(tmp_path, 7)
    if restarted:
        query = OlderQuery(tmp_path, query.offsets, startingOffsets="earliest")
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 20}}


def test_a_log_that_is_shorter_than_what_was_read_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    with pytest.raises(DataLoss, match=r"^Partition events-0 offset was changed from 20 to 10\. This could be either"):
        OlderQuery(tmp_path, {"events": {"0": 20}}).trigger()
    lenient = OlderQuery(tmp_path, {"events": {"0": 20}}, failOnDataLoss="false")
    assert lenient.trigger() == []
    assert lenient.offsets == {"events": {"0": 10}}


def test_a_new_query_begins_no_later_than_its_first_micro_batch_ends(tmp_path: Path) -> None:
    """An older Spark asks for the end first, and then for the start, which is the end too unless something is said."""
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, SMALL)
        data.log("events", 0).append(batch(0))
        reader = OlderQuery(tmp_path, {}, end="logEnd").reader
        reader = type(reader)(reader._options, reader._schema)  # a new one, which was asked nothing yet
        assert reader.latestOffset() == {"events": {"0": 5}}
        data.log("events", 0).append(batch(5))
        assert reader.initialOffset() == {"events": {"0": 5}}
        assert reader.latestOffset() == {"events": {"0": 10}}


def test_where_a_restarted_query_once_began_does_not_matter(tmp_path: Path) -> None:
    write_topic(tmp_path, partitions=2, batches=1)
    options = {"startingOffsets": '{"events":{"0":0}}'}  # there was one partition then
    assert OlderQuery(tmp_path, {"events": {"0": 3}}, **options).trigger() == [0, 1, 2, 3, 3, 4, 4]
    with pytest.raises(MissingPartitions, match="you must specify all TopicPartitions"):
        OlderQuery(tmp_path, None, **options)
