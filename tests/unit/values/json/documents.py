"""JSON of every kind for one schema: sound, of the wrong types, odd and broken. The same for the same seed."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

SCHEMA: Final = """a BIGINT, b INT, c SMALLINT, d TINYINT, e DOUBLE, f FLOAT, g STRING, h BOOLEAN, i DECIMAL(10, 2),
 j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m BINARY, n STRUCT<x: INT, y: STRING, z: STRUCT<u: DOUBLE, v: ARRAY<INT>>>,
 o ARRAY<BIGINT>, p MAP<STRING, DOUBLE>, q ARRAY<STRUCT<x: INT, y: STRING>>, r MAP<STRING, STRUCT<x: INT>>,
 s ARRAY<ARRAY<STRING>>, t DECIMAL(38, 18)"""
NAMES: Final = "abcdefghijklmnopqrst"

# Whole values, each odd in its own way: a Python literal in each line.
ODD: Final[list[bytes]] = [
    *(ast.literal_eval(line) for line in Path(__file__).with_name("odd.txt").read_text("ascii").splitlines()),
    b'{"e":' + b"1" * 1000 + b"}",
    b'{"e":' + b"1" * 1001 + b"}",
    b'{"zz":' + b"[" * 998 + b"]" * 998 + b',"a":1}',
    b'{"zz":' + b"[" * 1001 + b"]" * 1001 + b',"a":1}',
]

_ENDLESS: Final = re.compile(rb"[eE][+-]?\d{6}")  # powers of ten, of which Spark computes each digit for minutes


def documents(seed: int, count: int) -> list[bytes | None]:
    """All odd ones, and about `count` others: a third sound, a third with values of wrong types, a third broken."""
    chance = random.Random(seed)
    made: list[bytes | None] = [*ODD, None]
    for number in range(count):
        text = _text(chance, wrong=number % 3 > 0)
        text = _broken(chance, text) if number % 3 == 2 else text
        if not _ENDLESS.search(text):
            made.append(text)
    return made


def plain_documents(seed: int, count: int) -> list[bytes]:
    """Values as producers mostly write them: of the right types, with nothing odd in them."""
    chance = random.Random(seed)
    return [
        json.dumps(
            {name: PLAIN[name](chance) for name in NAMES if name in PLAIN and chance.random() < 0.9},
            ensure_ascii=chance.random() < 0.5,
            separators=(",", ":") if chance.random() < 0.5 else None,
        ).encode()
        for _ in range(count)
    ]


def _text(chance: random.Random, *, wrong: bool) -> bytes:
    names = chance.sample(NAMES, chance.randrange(1, len(NAMES)))
    if chance.random() < 0.3:
        names.append(chance.choice("xyzZ€"))
    if wrong and chance.random() < 0.2:
        names.append(chance.choice(names))
    pairs = []
    for name in names:
        fits = not wrong or chance.random() < 0.8
        value = SOUND[name](chance) if name in SOUND and fits else _anything(chance)
        pairs.append(f"{json.dumps(name, ensure_ascii=chance.random() < 0.5)}:{_dump(chance, value)}")
    space = " " if chance.random() < 0.2 else ""
    return ("{" + f",{space}".join(pairs) + "}").encode()


def _dump(chance: random.Random, value: Any) -> str:
    if isinstance(value, _Raw):
        return value
    separators = (", ", ": ") if chance.random() < 0.3 else (",", ":")
    return json.dumps(value, ensure_ascii=chance.random() < 0.5, separators=separators)


class _Raw(str):
    """JSON as it is."""


def _float(chance: random.Random) -> Any:
    match chance.randrange(6):
        case 0:
            return chance.randrange(-(10**6), 10**6)
        case 1:
            return round(chance.uniform(-1000, 1000), chance.randrange(6))
        case 2:
            return chance.uniform(-1, 1)
        case 3:
            return _Raw(f"{chance.randrange(10**9)}e{chance.randrange(-330, 320)}")
        case 4:
            return _Raw(f"{chance.randrange(-(10**20), 10**20)}.{chance.randrange(10**20)}E+{chance.randrange(20)}")
        case _:
            return chance.choice([_Raw("NaN"), _Raw("-Infinity"), "NaN", 0.0, _Raw("-0"), 1e22, 1e23])


def _string(chance: random.Random) -> str:
    return "".join(chance.choices('abc "\\/\n\t\x01\x7fäß€😀{}[]:,0', k=chance.randrange(12)))


def _date(chance: random.Random, days: int = 30) -> str:
    year = chance.choice([1, 1500, 1969, 1970, 2000, 2024, 9999])
    return f"{year:04}-{chance.randrange(1, 13):02}-{chance.randrange(1, days + 1):02}"


def _time(chance: random.Random, days: int = 30) -> str:
    fraction = chance.choice(["", ".1", ".123", ".123456", ".123456789", ".000001"])
    of_day = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}{fraction}"
    return f"{_date(chance, days)}{chance.choice(' T')}{of_day}"


def _struct(chance: random.Random, **fields: Callable[[random.Random], Any]) -> dict[str, Any]:
    return {name: field(chance) for name, field in fields.items() if chance.random() < 0.8}


def _list(chance: random.Random, element: Callable[[random.Random], Any]) -> list[Any]:
    return [None if chance.random() < 0.1 else element(chance) for _ in range(chance.randrange(4))]


def _small(chance: random.Random) -> int:
    return chance.randrange(-128, 128)


SOUND: Final[dict[str, Callable[[random.Random], Any]]] = {
    "a": lambda chance: chance.choice([0, -1, 10**17, -(10**18), 2**63 - 1, chance.randrange(-(10**12), 10**12)]),
    "b": lambda chance: chance.choice([None, chance.randrange(-(2**31), 2**31)]),
    "c": lambda chance: chance.randrange(-(2**15), 2**15),
    "d": _small,
    "e": _float,
    "f": _float,
    "g": _string,
    "h": lambda chance: chance.choice([True, False, None]),
    "i": lambda chance: chance.choice([1, -5, 12.25, 0.5, "7.125", 99999999.99, 1e-7, chance.randrange(10**8)]),
    "j": _date,
    "k": lambda chance: _time(chance) + chance.choice(["", "Z", "+02:00", "-11:30"]),
    "l": _time,
    "m": lambda chance: chance.choice(["", "aGVsbG8=", "AA==", "////", "aGVs"]),
    "n": lambda chance: _struct(
        chance,
        x=_small,
        y=_string,
        z=lambda chance: _struct(chance, u=lambda _: 1.5, v=lambda chance: _list(chance, _small)),
    ),
    "o": lambda chance: _list(chance, _small),
    "p": lambda chance: {_string(chance): 0.25 for _ in range(chance.randrange(3))},
    "q": lambda chance: _list(chance, lambda chance: _struct(chance, x=_small, y=_string)),
    "r": lambda chance: {_string(chance): _struct(chance, x=_small) for _ in range(chance.randrange(3))},
    "s": lambda chance: _list(chance, lambda chance: _list(chance, _string)),
    "t": lambda chance: _Raw(f"{chance.randrange(-(10**10), 10**10)}.{chance.randrange(10**18)}"),
}


PLAIN: Final[dict[str, Callable[[random.Random], Any]]] = {
    name: field for name, field in SOUND.items() if name in "bcdghnopqrs"
} | {
    "a": lambda chance: chance.randrange(-(10**18) + 1, 10**18),
    "e": lambda chance: chance.choice([1.5, 0.1, -2.25, 1e-5, 1e200, chance.random(), chance.uniform(-1e9, 1e9), 7]),
    "f": lambda chance: chance.choice([1.5, 0.1, -2.25, 1e-5, chance.random(), chance.uniform(-1e9, 1e9), 7]),
    "i": lambda chance: chance.choice([1, -5, 12.25, 0.5, 99999999.99, chance.randrange(10**8)]),
    "j": lambda chance: _date(chance, 28),
    "k": lambda chance: _time(chance, 28) + chance.choice(["", "Z", "+02:00", "-11:30"]),
    "l": lambda chance: _time(chance, 28),
    "t": lambda chance: chance.choice([0, 1, -1.5, 123456789.125, -0.001, 99999999999]),
    "x": lambda chance: [{"a": [_string(chance), 1.5, {}]}],
}


def _anything(chance: random.Random) -> Any:
    """A value of any type; its numbers are such as every Java writes them."""
    match chance.randrange(9):
        case 0:
            return [_anything(chance) for _ in range(chance.randrange(3))]
        case 1:
            return {chance.choice("axyzuv"): _anything(chance) for _ in range(chance.randrange(3))}
        case 2:
            return chance.choice([True, False, 1.5, -0.25, 1e10, 2.5e-5, _Raw("1.50")])
        case 3:
            return None
        case 4:
            return chance.randrange(-(10**20), 10**20)
        case _:
            return SOUND[chance.choice("abcghjklm")](chance)


def _broken(chance: random.Random, text: bytes) -> bytes:
    """A text with one to three changes to its bytes."""
    broken = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(broken) + 1)
        match chance.randrange(5):
            case 0:
                del broken[at : at + chance.randrange(1, 4)]
            case 1:
                broken[at:at] = chance.choice(
                    [b'"', b",", b":", b"{", b"}", b"[", b"]", b"\\", b"'", b"0", b"-", b".", b"e", b" "]
                )
            case 2:
                broken[at : at + 1] = bytes([chance.choice(b'"\\{}[],:x0-.\x01\xff\xc3\xa4')])
            case 3:
                broken[at:] = b""
            case _:
                other = chance.randrange(len(broken) + 1)
                broken[at:at] = broken[other : other + chance.randrange(8)]
    return bytes(broken)
