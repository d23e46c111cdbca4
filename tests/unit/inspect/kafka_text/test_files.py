"""What the command relies on: what is printed before an error, whether damage was met, and that nothing is changed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from octavo.errors import Unreadable
from octavo.inspect.kafka_text import RecordDecoder, TextOptions, print_files
from octavo.records import BatchBuilder

_DEEP = TextOptions(deep_iteration=True)


def _segment(folder: Path, *, base_offset: int = 0, value: bytes = b"value") -> Path:
    builder = BatchBuilder(base_offset=base_offset)
    builder.append(b"key", value, timestamp_ms=1)
    path = folder / f"{base_offset:020}.log"
    path.write_bytes(builder.build())
    return path


def _printed(*files: object, options: TextOptions = _DEEP) -> tuple[str, str, bool]:
    out, err = io.BytesIO(), io.BytesIO()
    is_damaged = print_files([str(file) for file in files], options, out, err)
    return out.getvalue().decode(), err.getvalue().decode(), is_damaged


def test_a_sound_file_is_no_damage(tmp_path: Path) -> None:
    out, err, is_damaged = _printed(_segment(tmp_path))
    assert "isvalid: true" in out
    assert (err, is_damaged) == ("", False)


def test_a_segment_that_begins_later_has_a_gap_which_is_no_damage(tmp_path: Path) -> None:
    path = _segment(tmp_path, base_offset=7)
    _, err, is_damaged = _printed(path)
    assert err == f"Non-consecutive offsets in {path}\n  -1 is followed by 7\n"
    assert not is_damaged


def test_a_wrong_checksum_and_bytes_behind_the_last_batch_are_damage(tmp_path: Path) -> None:
    path = _segment(tmp_path)
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + b"\1")
    assert _printed(path, options=TextOptions())[2]
    path.write_bytes(sound + b"more")
    out, _, is_damaged = _printed(path)
    assert out.endswith(f"Found 4 invalid bytes at the end of {path.name}\n")
    assert is_damaged


def test_a_file_that_cannot_be_opened_raises_after_what_is_printed_before_it(tmp_path: Path) -> None:
    out, err = io.BytesIO(), io.BytesIO()
    missing = tmp_path / "00000000000000000009.log"
    with pytest.raises(Unreadable):
        print_files([str(_segment(tmp_path)), str(missing)], TextOptions(), out, err)
    assert out.getvalue().decode().endswith(f"Dumping {missing}\nLog starting offset: 9\n")
    folder = tmp_path / "00000000000000000008.index"
    folder.mkdir()
    (tmp_path / "00000000000000000008.log").touch()
    with pytest.raises(Unreadable):
        print_files([str(folder)], TextOptions(), out, err)


def test_an_exception_of_kafka_ends_the_run_and_later_files_are_not_printed(tmp_path: Path) -> None:
    broken = tmp_path / "0.log"
    broken.write_bytes(bytes(100))
    out, err, is_damaged = _printed(broken, _segment(tmp_path))
    assert out == f"Dumping {broken}\nLog starting offset: 0\n"
    assert err == (
        'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Found record size 0 smaller '
        f"than minimum record overhead (14) in file {broken}.\n"
    )
    assert is_damaged


def test_a_stream_that_takes_little_at_a_time_gets_everything(tmp_path: Path) -> None:
    class Slow(io.BytesIO):
        def write(self, data: object) -> int:
            return super().write(bytes(data)[:7])  # type: ignore[call-overload]  # memoryviews, which BytesIO takes

    path = _segment(tmp_path, base_offset=3, value=b"x" * 100)
    out, err = Slow(), Slow()
    print_files([str(path)], _DEEP, out, err)
    assert (out.getvalue().decode(), err.getvalue().decode()) == _printed(path)[:2]


def test_indexes_are_only_read(tmp_path: Path) -> None:
    log = _segment(tmp_path)
    index = log.with_suffix(".index")
    index.write_bytes(bytes(13))  # Kafka's tool cuts it to 8 bytes
    _printed(index)
    assert index.read_bytes() == bytes(13)


@pytest.mark.parametrize("options", [TextOptions(decoders=[RecordDecoder.OFFSETS]), TextOptions(key_decoder_class="x")])
def test_what_decodes_records_prints_them(options: TextOptions) -> None:
    assert options.prints_data
    assert options.iterates_deeply


def test_the_first_of_several_decoders_counts() -> None:
    options = TextOptions(decoders=[RecordDecoder.SHARE_GROUP_STATE, RecordDecoder.TRANSACTION_LOG])
    assert options.decoder is RecordDecoder.TRANSACTION_LOG
