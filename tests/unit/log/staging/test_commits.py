"""Staged batches are appended to all logs or to none, and once."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from octavo.errors import AppendRefused, CorruptFile, ErrorCode, InvalidInput, LogError, UnknownPartition
from octavo.log import DataDirectory, ExpectedTopic, StagedChunk, StagedFile, StagedWriter, StagingArea
from octavo.log.append.validator import Validator
from octavo.log.log import Log
from octavo.log.names import TopicPartition
from octavo.log.staging.planning import Planner
from octavo.log.staging.windows import Window
from octavo.records import BatchBuilder, Codec, end_transaction_marker, read_batches
from octavo.records.layout import TimestampType
from tests.unit.log.logs import TIME_MS, keys, make_batch
from tests.unit.log.staging.staged import ONE, TOPIC, TOPICS, TWO, Task, area_of, batches, commit, found, stage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def staged_files(folder: Path) -> list[Path]:
    return sorted(StagingArea.of(folder).folder.glob("*"))


def test_batches_of_all_tasks_are_appended_in_their_order(folder: Path) -> None:
    done = commit(folder, {ONE: batches(1, 2), TWO: batches(3)}, {ONE: batches(4)})
    assert found(folder) == {ONE: [1, 2, 4], TWO: [3]}
    assert done.offsets == {ONE: range(3), TWO: range(1)}
    assert not done.is_repeated
    assert not staged_files(folder)


def test_chunks_of_a_partition_need_not_be_in_one_piece(folder: Path) -> None:
    area = area_of(folder)
    writer = StagedWriter(area)
    for number in range(6):
        writer.add(TOPIC, number % 2, batches(number)[0])
    file = writer.finish()
    assert file is not None
    assert len(file.chunks) == 6
    with DataDirectory.open(folder) as data:
        data.commit_staged(area, [file], topics=TOPICS)
    assert found(folder) == {ONE: [0, 2, 4], TWO: [1, 3, 5]}


# ---------------------------------------------------------------------------------------------------------------- once


def test_a_repeated_commit_appends_nothing(folder: Path) -> None:
    commit(folder, {ONE: batches(1)}, version=7)
    for version in (7, 3):
        assert commit(folder, {ONE: batches(1)}, version=version).is_repeated
        assert not staged_files(folder)
    assert found(folder) == {ONE: [1], TWO: []}


def test_commits_of_other_applications_later_ones_and_those_without_identity_are_appended(folder: Path) -> None:
    commit(folder, {ONE: batches(1)}, version=7)
    commit(folder, {ONE: batches(2)}, version=8)
    commit(folder, {ONE: batches(3)}, application="another", version=0)
    for number in (4, 5):
        commit(folder, {ONE: batches(number)}, application=None)
    assert found(folder)[ONE] == [1, 2, 3, 4, 5]


def test_an_empty_commit_touches_nothing(folder: Path) -> None:
    with DataDirectory.open(folder) as data:
        assert not data.commit_staged(area_of(folder), [], topics=TOPICS).offsets
        assert not data.topics
    assert StagedWriter(area_of(folder)).finish() is None
    assert not (folder / "octavo-commits").exists()


# -------------------------------------------------------------------------------------------------------------- topics


def test_a_topic_that_is_missing_is_created_with_its_configuration(folder: Path) -> None:
    commit(folder, {ONE: batches(1)})
    with DataDirectory.open(folder) as data:
        assert len(data.topics[TOPIC].partitions) == 2
        assert data.topics[TOPIC].config == TOPICS[TOPIC].config


def test_a_topic_that_nobody_expects_is_not_created(folder: Path) -> None:
    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        with pytest.raises(UnknownPartition):
            data.commit_staged(area, stage(area, {ONE: batches(1)}))
        with pytest.raises(InvalidInput, match="coordinators"):
            data.commit_staged(area, stage(area, {TopicPartition("__consumer_offsets", 0): batches(1)}))
        assert not data.topics


def test_a_topic_that_has_got_another_number_of_partitions_takes_nothing(folder: Path) -> None:
    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        data.create_topic(TOPIC, 3)
        with pytest.raises(LogError, match="has 3 partitions, and the records were divided among 2"):
            data.commit_staged(area, stage(area, {ONE: batches(1)}), topics=TOPICS)
        with pytest.raises(UnknownPartition):
            data.commit_staged(area, stage(area, {ONE: batches(1), TopicPartition(TOPIC, 3): batches(2)}))
        assert data.log(*ONE).end_offset == 0


# ------------------------------------------------------------------------------------------------------------- refused

_NO_KEY = BatchBuilder()
_NO_KEY.append(None, b"value", timestamp_ms=TIME_MS)
_IDEMPOTENT = BatchBuilder(producer_id=5, producer_epoch=0, base_sequence=0)
_IDEMPOTENT.append(b"1", b"value", timestamp_ms=TIME_MS)
_OLD = BatchBuilder(1)
_OLD.append(b"1", b"value", timestamp_ms=TIME_MS)
_ELSEWHERE = BatchBuilder(base_offset=3)
_ELSEWHERE.append(b"1", b"value", timestamp_ms=TIME_MS)
_MARKER = end_transaction_marker(True, timestamp_ms=TIME_MS, producer_id=1, producer_epoch=0, coordinator_epoch=0)
_FINE = make_batch()


@pytest.mark.parametrize(
    ("bad", "config", "code"),
    [
        (_NO_KEY.build(), {"cleanup.policy": "compact"}, ErrorCode.INVALID_RECORD),
        (make_batch(time_ms=TIME_MS - 1001), {"message.timestamp.before.max.ms": "1000"}, ErrorCode.INVALID_TIMESTAMP),
        (make_batch(size=600), {"max.message.bytes": "500"}, ErrorCode.MESSAGE_TOO_LARGE),
        (make_batch(size=5 << 20), {}, ErrorCode.MESSAGE_TOO_LARGE),
        (make_batch(size=1200), {"internal.segment.bytes": "1000"}, ErrorCode.RECORD_LIST_TOO_LARGE),
        (_FINE[:-1] + bytes([_FINE[-1] ^ 1]), {}, ErrorCode.CORRUPT_MESSAGE),
        (_IDEMPOTENT.build(), {}, ErrorCode.INVALID_RECORD),
        (_ELSEWHERE.build(), {}, ErrorCode.INVALID_RECORD),
        (_MARKER, {}, ErrorCode.INVALID_RECORD),
        (_OLD.build(), {}, None),
        (_FINE[:-1], {}, None),
        (b"no batch at all, whatever it says", {}, None),
    ],
)
def test_a_batch_that_is_refused_keeps_all_others_out(
    folder: Path, bad: bytes, config: dict[str, str], code: ErrorCode | None
) -> None:
    area = area_of(folder)
    with DataDirectory.open(folder, clock=lambda: TIME_MS) as data:
        data.create_topic("other")
        data.create_topic(TOPIC, 2, config)
        files = stage(area, {TopicPartition("other", 0): batches(1), ONE: batches(2)}, {ONE: [*batches(3), bad]})
        with pytest.raises((AppendRefused, CorruptFile)) as refused:
            data.commit_staged(area, files)
        if code is None:
            assert isinstance(refused.value, CorruptFile)
        else:
            assert isinstance(refused.value, AppendRefused)
            assert refused.value.code == code
            assert str(ONE) in str(refused.value)
        assert data.log("other", 0).end_offset == data.log(*ONE).end_offset == 0
        data.commit_staged(area, files[:1])  # by the same identity
        assert data.log("other", 0).end_offset == data.log(*ONE).end_offset == 1


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"cleanup.policy": "compact"}, ErrorCode.INVALID_RECORD),
        ({"max.message.bytes": "70"}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"message.timestamp.before.max.ms": "1000"}, ErrorCode.INVALID_TIMESTAMP),
        ({"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"}, None),
    ],
)
def test_the_configuration_is_that_of_the_commit(folder: Path, config: dict[str, str], code: ErrorCode | None) -> None:
    area = area_of(folder)
    with DataDirectory.open(folder, clock=lambda: TIME_MS + 5000) as data:
        data.create_topic(TOPIC, 2)
        files = stage(area, {TWO: batches(1)}, {ONE: [_NO_KEY.build()]})
        data.set_config(TOPIC, config)
        if code is None:
            data.commit_staged(area, files)
            [batch] = read_batches(data.log(*ONE).read(0, 1000).records)
            assert (batch.codec, batch.max_timestamp_ms) == (Codec.ZSTD, TIME_MS + 5000)
        else:
            with pytest.raises(AppendRefused) as refused:
                data.commit_staged(area, files)
            assert refused.value.code == code
        assert {data.log(*partition).end_offset for partition in (ONE, TWO)} == {0 if code else 1}


@pytest.mark.parametrize(
    "chunks",
    [
        (StagedChunk(ONE, 0, 130), StagedChunk(ONE, 0, 130)),
        (StagedChunk(ONE, 0, 130), StagedChunk(TWO, 100, 30)),
        (StagedChunk(ONE, 0, 0),),
        (StagedChunk(ONE, -1, 130),),
        (StagedChunk(ONE, 0, 131),),
        (StagedChunk(ONE, 1, 129),),
        (StagedChunk(ONE, 0, 1 << 40),),
    ],
)
def test_what_a_task_says_of_its_file_is_not_believed(folder: Path, chunks: tuple[StagedChunk, ...]) -> None:
    area = area_of(folder)
    [file] = stage(area, {ONE: batches(1)})
    assert file.chunks == (StagedChunk(ONE, 0, 130),)
    with DataDirectory.open(folder) as data:
        with pytest.raises((InvalidInput, CorruptFile)):
            data.commit_staged(area, [StagedFile(file.name, chunks)], topics=TOPICS)
        for name in ("../data/meta.properties", "meta.properties", file.name[:-1], f"{file.name}/../{file.name}"):
            with pytest.raises(InvalidInput, match="is not the name of a staged file"):
                data.commit_staged(area, [StagedFile(name, file.chunks)], topics=TOPICS)
        with pytest.raises(CorruptFile, match="missing"):
            data.commit_staged(area, [StagedFile(file.name.replace("-0-", "-1-"), file.chunks)], topics=TOPICS)
        assert data.log(*ONE).end_offset == 0


# ----------------------------------------------------------------------------------------------------------- rewritten


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.GZIP])
@pytest.mark.parametrize(
    "config",
    [{}, {"message.timestamp.type": "LogAppendTime"}, {"compression.type": "lz4"}, {"compression.type": "gzip"}],
)
def test_a_topic_gets_its_batches_as_an_append_would_make_them(
    folder: Path, codec: Codec, config: dict[str, str]
) -> None:
    staged = [make_batch(5, first=first, codec=codec) for first in range(0, 40, 5)]
    area = area_of(folder)
    with DataDirectory.open(folder, clock=lambda: TIME_MS) as data:
        for name in (TOPIC, "appended"):
            data.create_topic(name, 1, config)
        for batch in staged:
            data.log("appended", 0).append(batch)
        data.commit_staged(area, stage(area, {ONE: staged[:3]}, {ONE: staged[3:]}))
        committed, appended = (bytes(data.log(name, 0).read(0, 1 << 20).records) for name in (TOPIC, "appended"))
        assert committed == appended
        assert keys(data.log(*ONE)) == list(range(40))
        if "message.timestamp.type" in config:
            assert {batch.timestamp_type for batch in read_batches(committed)} == {TimestampType.LOG_APPEND_TIME}
    assert not staged_files(folder)


# ------------------------------------------------------------------------------------------------------------ segments


@pytest.mark.parametrize("segment_bytes", ["700", "3000", "100000"])
def test_segments_are_those_of_appends_one_by_one(folder: Path, segment_bytes: str) -> None:
    random = Random(segment_bytes)
    staged = [make_batch(first=number, size=random.randrange(500)) for number in range(200)]
    with DataDirectory.open(folder) as data:
        for name in (TOPIC, "appended"):
            data.create_topic(name, 1, {"internal.segment.bytes": segment_bytes})
        for batch in staged:
            data.log("appended", 0).append(batch)
        for version in range(10):
            area = area_of(folder, version=version)
            some = staged[version * 20 : version * 20 + 20]
            data.commit_staged(area, stage(area, {ONE: some[:7]}, {ONE: some[7:]}))
        of_both = [[segment[:2] for segment in data.log(name, 0).segments] for name in (TOPIC, "appended")]
        assert of_both[0] == of_both[1]


@pytest.mark.exhaustive
def test_a_thousand_micro_batches_leave_as_many_segments_as_their_size_gives(folder: Path) -> None:
    """And one identity. Spark opens the directory for each of them; here it is opened for every fiftieth."""
    staged = [make_batch(first=number, size=100 + number % 50) for number in range(1000)]
    topics = {TOPIC: ExpectedTopic(1, {"internal.segment.bytes": "20000"})}
    for first in range(0, 1000, 50):
        with DataDirectory.open(folder) as data:
            for number in range(first, first + 50):
                area = area_of(folder, version=number)
                files = stage(area, {ONE: [staged[number]]}, sync=False)
                data.commit_staged(area, files, topics=topics, sync=False)
            sizes = [segment.size for segment in data.log(*ONE).segments]
    assert sum(sizes) == sum(map(len, staged))
    assert all(20_000 - len(staged[49]) < size <= 20_000 for size in sizes[:-1])
    assert (folder / "octavo-commits").stat().st_size < 100
    assert found(folder) == {ONE: list(range(1000))}
    assert not staged_files(folder)


def test_old_records_roll_by_their_time(folder: Path) -> None:
    staged = [make_batch(first=number, time_ms=TIME_MS + number * 1000) for number in range(60)]
    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        data.create_topic(TOPIC, 1, {"segment.ms": "10000"})
        data.commit_staged(area, stage(area, {ONE: staged}))
        starts = [segment.base_offset for segment in data.log(*ONE).segments]
    assert starts == [0, 11, 22, 33, 44, 55]


def test_much_is_committed_in_windows(folder: Path) -> None:
    """More than a window has, with a batch that is larger than one."""
    config = {"max.message.bytes": str(20 << 20)}
    several = [make_batch(first=number, size=300 << 10) for number in range(30)]
    large = make_batch(first=30, size=5 << 20)
    small = [make_batch(first=number, size=0) for number in range(31, 40)]
    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        data.create_topic(TOPIC, 1, config)
        data.commit_staged(area, stage(area, {ONE: [*several, large, *small]}))
        assert keys(data.log(*ONE)) == list(range(40))


# ------------------------------------------------------------------------------------------------------------- restore


def restored(number: int, offset: int, count: int = 1) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    for each in range(count):
        builder.append(b"%d" % (number + each), b"", timestamp_ms=TIME_MS + number)
    return builder.build()


def commit_with_offsets(data: DataDirectory, folder: Path, *tasks: Task) -> None:
    area = area_of(folder, None)
    data.commit_staged(area, stage(area, *tasks), keep_offsets=True, topics={TOPIC: ExpectedTopic(2)})


def test_offsets_timestamps_and_batches_are_kept(folder: Path) -> None:
    several = [restored(1, 5, 3), restored(4, 8), restored(5, 100, 2)]
    with DataDirectory.open(folder) as data:
        commit_with_offsets(data, folder, {ONE: several[2:]}, {ONE: several[:2]})  # in any order
        log = data.log(*ONE)
        there = [(batch.base_offset, batch.last_offset, bytes(batch.data[17:])) for batch in log.reader()]
        assert there == [(5, 7, several[0][17:]), (8, 8, several[1][17:]), (100, 101, several[2][17:])]
        assert log.append(make_batch()).base_offset == 102


def test_a_log_can_be_restored_that_begins_late_and_has_gaps_between_segments(folder: Path) -> None:
    late, step = 1 << 40, 1 << 30
    config = {"internal.segment.bytes": "200"}
    several = [restored(number, late + number * step) for number in range(1, 6)]
    for task in (several[:2], several[2:]):
        area = area_of(folder, None)
        with DataDirectory.open(folder) as data:
            data.commit_staged(
                area, stage(area, {ONE: task}), keep_offsets=True, topics={TOPIC: ExpectedTopic(2, config)}
            )
    with DataDirectory.open(folder) as data:
        log = data.log(*ONE)
        assert [batch.base_offset for batch in log.reader()] == [late + number * step for number in range(1, 6)]
        assert log.start_offset == late + step
        assert len(log.segments) > 2
        with pytest.raises(AppendRefused, match="offsets are missing"):
            commit_with_offsets(data, folder, {ONE: [restored(9, late << 1)]})


def test_offsets_that_are_taken_or_overlap_are_refused(folder: Path) -> None:
    with DataDirectory.open(folder) as data:
        commit_with_offsets(data, folder, {ONE: [restored(1, 5, 3)]})
        for task in ({ONE: [restored(4, 7)]}, {ONE: [restored(4, 8, 3), restored(5, 10)]}):
            with pytest.raises(AppendRefused, match="is below"):
                commit_with_offsets(data, folder, {TWO: [restored(9, 0)]}, task)
        assert data.log(*TWO).end_offset == 0
        assert keys(data.log(*ONE)) == [1, 2, 3]


def test_the_clusters_metadata_are_no_topic(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    commit(folder, {ONE: batches(0)})
    metadata = TopicPartition("__cluster_metadata", 0)
    area = area_of(folder, "other")
    files = stage(area, {metadata: batches(1)})
    with DataDirectory.open(folder) as data:
        with pytest.raises(InvalidInput, match="controllers alone"):
            data.commit_staged(area, files, topics={metadata.topic: ExpectedTopic(1, {})})
        with pytest.raises(InvalidInput, match="is no topic"):
            data.create_topic(metadata.topic)
    with DataDirectory.open(folder) as data:
        assert list(data.topics) == [TOPIC]


def test_several_gaps_together_may_be_more_than_a_segment_can_span(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    offsets = [0, 2 + 1_900_000_000, 2 + 2_600_000_000]
    given = []
    for number, offset in enumerate(offsets):
        given.append(bytearray(make_batch(first=number)))
        given[-1][:8] = offset.to_bytes(8)
    for version, part in enumerate((given[:1], given[1:])):
        area = area_of(folder, "restore", version)
        files = stage(area, {ONE: [bytes(batch) for batch in part]})
        with DataDirectory.open(folder) as data:
            data.commit_staged(area, files, topics={TOPIC: ExpectedTopic(1, {})}, keep_offsets=True)
    with DataDirectory.open(folder) as data:
        log = data.log(*ONE)
        assert [batch.base_offset for batch in log.reader()] == offsets


def test_few_batches_are_decompressed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise some megabytes of them could become gigabytes."""
    counts = []

    def counting(self: Planner, log: Log, window: Window, validator: Validator, offset: int) -> Window:
        counts.append(len(window.rows))
        return keep(self, log, window, validator, offset)

    keep = Planner._keep
    monkeypatch.setattr(Planner, "_keep", counting)
    area = area_of(tmp_path / "data")
    files = stage(area, {ONE: batches(*range(100))})
    with DataDirectory.open(tmp_path / "data") as data:
        data.commit_staged(area, files, topics={TOPIC: ExpectedTopic(1, {"compression.type": "zstd"})})
        assert keys(data.log(*ONE)) == list(range(100))
    assert max(counts) == 32
