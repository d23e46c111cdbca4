"""The frames of Kafka's first protocol."""

from __future__ import annotations

import pytest

from octavo.errors import BadLength, FormatError, InvalidInput, Truncated
from octavo.log.message_set_send import (
    MessageSetSend,
    read_message_set_send,
    read_multi,
    write_head,
    write_message_set_send,
    write_multi,
)


def plain(result: MessageSetSend) -> tuple[int, bytes]:
    return result.error_code, bytes(result.records)


def test_a_length_counts_the_error_code_and_the_messages() -> None:
    frame = b"".join(write_message_set_send(0, b"abc"))
    assert frame == b"\0\0\0\5" + b"\0\0" + b"abc"
    assert plain(read_message_set_send(frame)) == (0, b"abc")
    assert write_head(-1, 0) == b"\0\0\0\2\xff\xff"
    assert plain(read_message_set_send(write_head(-1, 0))) == (-1, b"")


def test_a_frame_of_frames_counts_all_of_them() -> None:
    frame = b"".join(write_multi([(0, b"abc"), (1, b""), (0, b"d")]))
    assert frame == b"\0\0\0\x18" + b"\0\0" + b"\0\0\0\5\0\0abc" + b"\0\0\0\2\0\1" + b"\0\0\0\3\0\0d"
    error_code, results = read_multi(frame)
    assert (error_code, [*map(plain, results)]) == (0, [(0, b"abc"), (1, b""), (0, b"d")])
    assert read_multi(b"".join(write_multi([], 3))) == (3, ())


def test_nothing_is_copied() -> None:
    records = bytearray(b"abc")
    assert write_message_set_send(0, records)[1] is records
    frame = bytearray(b"".join(write_multi([(0, records)])))
    [result] = read_multi(frame).results
    frame[-1] = ord("x")
    assert plain(result) == (0, b"abx")


@pytest.mark.parametrize("read", [read_message_set_send, read_multi])
def test_a_frame_that_is_cut_or_goes_on_is_refused(read: type) -> None:
    frame = b"".join(write_multi([(0, b"abc"), (1, b"d")]))
    for size in range(len(frame)):
        with pytest.raises(Truncated):
            read(frame[:size])
    with pytest.raises(BadLength, match="1 bytes follow"):
        read(frame + b"x")


@pytest.mark.parametrize("length", [1, 0, -1, -(2**31)])
def test_an_impossible_length_is_refused(length: int) -> None:
    frame = length.to_bytes(4, "big", signed=True) + bytes(10)
    for read in (read_message_set_send, read_multi):
        with pytest.raises(BadLength):
            read(frame)


def test_no_inner_frame_reaches_out_of_its_outer_one() -> None:
    frame = bytearray(b"".join(write_multi([(0, b"abc"), (1, b"d")])))
    for position in range(6, len(frame)):
        for value in (0, 1, 0x7F, 0xFF):
            lie = bytes(frame[:position]) + bytes([value]) + bytes(frame[position + 1 :])
            try:
                results = read_multi(lie).results
            except FormatError as error:
                assert 6 <= error.position < len(lie)  # noqa: PT017 (it may as well be good)
            else:
                assert sum(6 + len(result.records) for result in results) == len(lie) - 6


def test_what_does_not_fit_is_refused() -> None:
    assert len(write_head(0, 2**31 - 3)) == 6
    for code, size in ((0, 2**31 - 2), (0, -1), (1 << 15, 0), (-(1 << 15) - 1, 0)):
        with pytest.raises(InvalidInput):
            write_head(code, size)
