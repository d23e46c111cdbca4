"""The judge itself: it agrees with the fact sheet's golden bytes, and it survives bad questions."""

from __future__ import annotations

import pytest

from tests.kafka.judge import BatchSpec, Codec, Fault, Judge, KafkaError, RecordSpec

TIME_MS = 1_700_000_000_000

# From the fact sheet (kafka-log-facts.md, section 16), where they were computed without Kafka.
ONE_RECORD = bytes.fromhex(
    "00000000000000000000003dffffffff02ecc46c110000000000000000018bcfe568000000018bcfe56800ffffffffffff"
    "ffffffffffffffff0000000116000000026b027602026801"
)
COMMIT = bytes.fromhex(
    "0000000000000005000000420000000202ad320ccb0030000000000000018bcfe568000000018bcfe5680000000000000003"
    "e80003ffffffff000000012000000008000000010c00000000000700"
)
EMPTY = bytes.fromhex(
    "000000000000000a000000310000000202b1bc9ec6000000000004ffffffffffffffff0000018bcfe5680000000000000003"
    "e800030000001400000000"
)
V0 = bytes.fromhex("0000000000000000000000101fecd70a0000000000016b0000000176")
V1 = bytes.fromhex("00000000000000000000001839268c3301000000018bcfe56800000000016b0000000176")
CAPTURED = bytes.fromhex(
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffffffffff"
    "ffffffffffffff0000000112000000010631323300"
)


def test_each_judge_is_the_release_that_the_maven_file_names(kafka: Judge, kafka_broker: Judge, kafka39: Judge) -> None:
    for judge in (kafka, kafka_broker, kafka39):
        assert judge.version == judge.release.version
    assert kafka.version.startswith("4.")
    assert kafka_broker.version.startswith("4.")
    assert kafka39.version.startswith("3.9.")


def test_kafka_writes_the_record_of_the_fact_sheet(kafka: Judge, kafka39: Judge) -> None:
    record = RecordSpec(timestamp_ms=TIME_MS, key=b"k", value=b"v", headers=[("h", None)])
    for judge in (kafka, kafka39):
        assert judge.build(BatchSpec(records=[record])) == ONE_RECORD


def test_kafka_reads_the_record_of_the_fact_sheet(kafka: Judge) -> None:
    (batch,) = kafka.read(ONE_RECORD).batches
    (record,) = batch.records
    assert (batch.fault, batch.valid, batch.size, batch.count) == (None, True, 73, 1)
    assert (batch.leader_epoch, batch.producer_id, batch.checksum) == (-1, -1, 0xECC46C11)
    assert (record.offset, record.timestamp_ms, record.key, record.value) == (0, TIME_MS, b"k", b"v")
    assert record.headers == [("h", None)]


def test_kafka_writes_the_commit_marker_of_the_fact_sheet(kafka: Judge) -> None:
    marker = kafka.end_transaction(
        "COMMIT",
        offset=5,
        timestamp_ms=TIME_MS,
        leader_epoch=2,
        producer_id=1000,
        producer_epoch=3,
        coordinator_epoch=7,
    )
    assert marker == COMMIT
    (record,) = kafka.read(COMMIT).records
    assert (record.control_type, record.control) == ("COMMIT", {"coordinatorEpoch": 7})


def test_kafka_writes_the_empty_batch_of_the_fact_sheet(kafka: Judge) -> None:
    empty = kafka.empty(
        base_offset=10,
        last_offset=14,
        timestamp_ms=TIME_MS,
        producer_id=1000,
        producer_epoch=3,
        base_sequence=20,
        leader_epoch=2,
    )
    assert empty == EMPTY
    (batch,) = kafka.read(EMPTY).batches
    assert (batch.count, batch.records, batch.last_offset, batch.last_sequence) == (0, [], 14, 24)


@pytest.mark.parametrize(("magic", "expected"), [(0, V0), (1, V1)])
def test_both_releases_write_the_old_messages_of_the_fact_sheet(
    kafka: Judge, kafka39: Judge, magic: int, expected: bytes
) -> None:
    spec = BatchSpec(magic=magic, records=[RecordSpec(timestamp_ms=TIME_MS, key=b"k", value=b"v")])
    assert kafka39.build(spec) == expected
    assert kafka.build(spec) == expected


def test_kafka_reads_what_a_broker_of_2017_wrote(kafka: Judge) -> None:
    (batch,) = kafka.read(CAPTURED).batches
    (record,) = batch.records
    assert (batch.fault, batch.leader_epoch, record.key, record.value) == (None, 1, None, b"123")


def test_varints_of_the_fact_sheet(kafka: Judge) -> None:
    ints = {
        0: "00",
        -1: "01",
        1: "02",
        63: "7e",
        -64: "7f",
        64: "8001",
        300: "d804",
        2**31 - 1: "feffffff0f",
        -(2**31): "ffffffff0f",
    }
    longs = {2**63 - 1: "feffffffffffffffff01", -(2**63): "ffffffffffffffffff01"}
    for table, long in ((ints, False), (longs, True)):
        encoded = [bytes.fromhex(text) for text in table.values()]
        assert kafka.write_varints(list(table), long=long) == encoded
        expected = [(value, len(data)) for value, data in zip(table, encoded, strict=True)]
        for stream in (False, True):
            assert kafka.read_varints(encoded, long=long, stream=stream) == expected


def test_a_varint_that_never_ends_is_a_fault(kafka: Judge) -> None:
    (answer,) = kafka.read_varints([b"\xff" * 6])
    assert isinstance(answer, Fault)
    assert answer.name == "IllegalArgumentException"


def test_sequences_of_the_fact_sheet(kafka: Judge) -> None:
    up = [up for up, _ in kafka.sequence([(2147483647, 1), (2147483646, 3)])]
    down = [down for _, down in kafka.sequence([(0, 1), (2, 5)])]
    assert (up, down) == ([0, 1], [2147483647, 2147483645])


def test_lz4_of_magic_0_has_the_wrong_header_checksum(kafka: Judge) -> None:
    assert kafka.compress([b"x"], "lz4", magic=2)[0].startswith(bytes.fromhex("04224d18604082"))
    assert kafka.compress([b"x"], "lz4", magic=0)[0].startswith(bytes.fromhex("04224d1860401a"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_streams_come_back(kafka: Judge, codec: Codec) -> None:
    contents = [b"x", b"repeat " * 20_000, bytes(range(256)) * 300]
    assert kafka.decompress(kafka.compress(contents, codec), codec) == contents


def test_partitions_of_keys(kafka: Judge) -> None:
    # The hashes that Kafka's own UtilsTest pins.
    keys = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    answers = kafka.murmur2(keys, partitions=10)
    assert [value for value, _ in answers] == list(keys.values())
    assert [partition for _, partition in answers] == [(value & 0x7FFFFFFF) % 10 for value in keys.values()]


def test_java_replaces_what_is_not_utf8(kafka: Judge) -> None:
    assert kafka.utf8([b"caf\xc3\xa9", b"\xff", b"\xed\xa0\x80"]) == ["café", "\ufffd", "\ufffd"]


def test_a_wrong_checksum_is_a_fault_of_its_batch(kafka: Judge) -> None:
    damaged = bytearray(ONE_RECORD)
    damaged[-5] ^= 1
    reading = kafka.read(bytes(damaged) + COMMIT)
    first, second = reading.batches
    assert first.fault is not None
    assert first.fault.name == "CorruptRecordException"
    assert not first.valid
    assert second.fault is None
    assert reading.fault == first.fault
    assert kafka.read(damaged, check=False).fault is None


def test_a_length_that_cannot_be_stops_the_walk(kafka: Judge) -> None:
    reading = kafka.read(ONE_RECORD + bytes(40))
    assert (len(reading.batches), reading.size) == (1, len(ONE_RECORD))
    assert reading.stopped is not None
    assert reading.stopped.name == "CorruptRecordException"


def test_a_torn_tail_is_no_fault(kafka: Judge) -> None:
    reading = kafka.read(ONE_RECORD + COMMIT[:-1])
    assert (reading.fault, reading.size) == (None, len(ONE_RECORD))


def test_old_kafka_converts_down_and_both_convert_up(kafka39: Judge, kafka_broker: Judge) -> None:
    down = kafka39.down_convert(ONE_RECORD, magic=1)
    assert down == V1
    for judge in (kafka39, kafka_broker):
        up = judge.validate(V0 + V0, codec="zstd", first_offset=70, leader_epoch=4)
        (batch,) = judge.read(up.data).batches
        assert (batch.magic, batch.codec, batch.base_offset, batch.count) == (2, "zstd", 70, 2)
        assert (batch.max_timestamp_ms, batch.leader_epoch, batch.fault) == (-1, 4, None)


def test_a_refusal_is_an_error_and_the_judge_goes_on(kafka: Judge) -> None:
    with pytest.raises(KafkaError, match="ZStandard compression is not supported for magic 1"):
        kafka.build(BatchSpec(magic=1, codec="zstd", records=[RecordSpec()]))
    with pytest.raises(KafkaError, match="op is none of"):
        kafka.ask("nonsense")
    with pytest.raises(KafkaError, match="ask the broker"):
        kafka.validate(V0)
    assert kafka.build(BatchSpec()) == b""


def test_thousands_of_batches_go_through_one_judge(kafka: Judge) -> None:
    record = RecordSpec(timestamp_ms=TIME_MS, key=b"k", value=b"v", headers=[("h", None)])
    built = kafka.build_many(BatchSpec(records=[record], base_offset=i) for i in range(5000))
    readings = kafka.read_many(built)
    assert [reading.batches[0].base_offset for reading in readings] == list(range(5000))
