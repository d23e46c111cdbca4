"""One case of the fuzzer: read an input in all the ways there are, which have to agree.

The input lies between guard pages, as does what Octavo allocates; only typed errors may come out of reading it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from octavo.errors import FormatError, InvalidInput
from octavo.records import Codec, convert, from_arrow, read_batches, read_control, to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS
from tests.corruption.guard import ARENA, Guarded
from tests.corruption.outcome import Outcome, Row, read_both, read_columns
from tests.corruption.resynced import account
from tests.corruption.worker import Case
from tests.soak.inputs import Input, Inputs

_guarded: Final = Guarded(1 << 18)


def cases(seed: int, first: int, seconds: float) -> Iterator[Case]:
    """Cases from `first` on, as many as there are in `seconds`; only that one where there are none."""
    inputs = Inputs(seed)
    until = time.monotonic() + seconds
    number = first
    while True:
        made = inputs.make(number)
        yield f"number {number}", partial(check, made.data, made.sound, made)
        number += 1
        if time.monotonic() >= until:
            break


def check(data: bytes, sound: bool, made: Input) -> None:
    """Read `data` in all the ways there are."""
    dice = made.random
    at_end = dice.random() < 0.7
    ARENA.at_end = dice.random() < 0.7
    buffer = _guarded.put(data, at_end=at_end)
    limit = dice.choice((1 << 20, 1 << 20, 1 << 20, 300, 5000))
    verify = dice.random() < 0.5
    chunks: dict[str, Any] = {}
    if dice.random() < 0.4:
        chunks = {"max_rows": dice.choice((1, 2, 7)), "max_bytes": dice.choice((1, 50, 1000))}
    whole = read_both(buffer, verify=verify, limit=limit, **chunks)
    if sound and limit == 1 << 20:
        assert whole.failure is None, whole.failure
        assert whole.torn_tail is None
        ranges(buffer, whole, dice.choice(whole.rows), chunks)
    some_columns(buffer, whole, dice.sample(ALL_COLUMNS, dice.randint(1, 4)), verify=verify, limit=limit, **chunks)
    if dice.random() < 0.2:
        start = dice.choice([0, dice.randrange(len(buffer) + 1), *(row.position for row in whole.rows)])
        read_both(buffer, start=start, end=dice.randint(start, len(buffer)), verify=verify, limit=limit, **chunks)
    if dice.random() < 0.5:
        in_other_ways(buffer, limit)
    if dice.random() < 0.3:
        account(read_batches(buffer, resync=True, max_decompressed=limit), len(buffer))
    if dice.random() < 0.2:
        converted(
            buffer,
            whole if sound and limit == 1 << 20 else None,
            dice.choice((None, 0, 1, 2)),
            dice.choice((None, *Codec)),
            limit,
        )
    if dice.random() < 0.3:
        written_again(buffer, whole, verify=verify, limit=limit, **chunks)


def some_columns(buffer: memoryview, whole: Outcome, names: list[str], limit: int, **arguments: Any) -> None:
    """Fewer columns: the same rows and the same end."""
    rows, failure = 0, None
    reader = to_arrow(buffer, columns=names, max_decompressed=limit, **arguments)
    try:
        for chunk in reader:
            rows += chunk.num_rows
            ARENA.clear()
    except FormatError as error:
        failure = (type(error), error.args)
    ARENA.clear()
    assert (rows, failure) == (len(whole.rows), whole.failure), f"{names}: {rows} rows, then {failure}"


def ranges(buffer: memoryview, whole: Outcome, middle: Row, chunks: dict[str, Any]) -> None:
    """Only some offsets, only some timestamps: what is left of the whole."""
    first, last = middle.offset - 3, min(middle.offset + 40, 2**63 - 1)
    some = read_columns(buffer, offsets=(first, last), **chunks)
    right = [row for row in whole.rows if first <= row.offset < last]
    assert some == Outcome(right), f"{len(some.rows)} rows of {first} to {last}, not {len(right)}"
    first, last = middle.timestamp_ms, middle.timestamp_ms + 10
    some = read_columns(buffer, timestamps=(first, last), **chunks)
    right = [row for row in whole.rows if first <= row.timestamp_ms < last]
    assert some == Outcome(right), f"{len(some.rows)} rows of {first} to {last} ms, not {len(right)}"


def in_other_ways(buffer: memoryview, limit: int) -> None:
    """What a batch says of itself, and what control records say: typed errors or nothing."""
    with contextlib.suppress(FormatError):
        for batch in read_batches(buffer, verify=False, max_decompressed=limit):
            assert repr(batch)
            assert batch.next_offset is not None
            assert batch.is_valid in (True, False)
            with contextlib.suppress(FormatError):
                assert batch.base_offset is not None
            if batch.is_control:
                with contextlib.suppress(FormatError):
                    for record in batch:
                        read_control(record)


def converted(buffer: memoryview, whole: Outcome | None, magic: int | None, codec: Codec | None, limit: int) -> None:
    """In another format it has the same keys and values, or a typed error says why not."""
    try:
        data, _ = convert(buffer, magic=magic, codec=codec, max_decompressed=limit)
    except (FormatError, InvalidInput):
        return
    finally:
        ARENA.clear()
    again = read_both(data)
    if whole is not None:  # else what needs no conversion is kept with its damage
        assert again.failure is None, again.failure
        right = [(row.key, row.value) for row in whole.rows]
        assert [(row.key, row.value) for row in again.rows] == right, f"in magic {magic} and {codec} it reads otherwise"


def written_again(buffer: memoryview, whole: Outcome, limit: int, **arguments: Any) -> None:
    """What could be read can be written, or is refused for a reason, and then reads the same."""
    names = ("offset", "timestampMs", "key", "value", "headers")
    right = [(row.offset, row.timestamp_ms, row.key, row.value, row.headers) for row in whole.rows]
    got = []
    try:
        for chunk in to_arrow(buffer, columns=names, max_decompressed=limit, **arguments):
            again = from_arrow(chunk)
            ARENA.clear()
            got += [(row.offset, row.timestamp_ms, row.key, row.value, row.headers) for row in read_columns(again).rows]
    except (FormatError, InvalidInput):
        right = right[: len(got)]
    assert got == right, "written again it reads otherwise"


def replayed(path: str) -> Iterator[Case]:
    """One input from a file, as often as there are choices to make about it."""
    inputs = Inputs(0)
    data = Path(path).read_bytes()
    for number in range(200):
        yield f"{path}, number {number}", partial(check, data, False, inputs.make(number))
