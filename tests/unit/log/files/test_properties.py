"""Java's properties. That Java reads and writes them so is shown in `tests/kafka/test_log_files.py`."""

from __future__ import annotations

import pytest

from octavo.errors import Corrupt
from octavo.log.files.properties import read_properties, write_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("# a = b\n  ! c = d\n\n \t\n", {}),
        ("a=b", {"a": "b"}),
        ("a = b \n", {"a": "b "}),
        ("a:b\rc d\r\ne", {"a": "b", "c": "d", "e": ""}),
        ("a==b", {"a": "=b"}),
        ("=b", {"": "b"}),
        ("a=1\na=2", {"a": "2"}),
        (r"a\=b\ c = \:d", {"a=b c": ":d"}),
        (r"a=\t\n\r\f\q\\", {"a": "\t\n\r\fq\\"}),
        ("a=one, \\\n    two\\\r\n\t# three\nb=", {"a": "one, two# three", "b": ""}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("# a comment \\\na=b", {"a": "b"}),
        (r"a=\u00e9\u20AC\ud83d\ude00", {"a": "é€😀"}),
        ("a=\xe9", {"a": "é"}),
    ],
)
def test_properties_are_read(text: str, properties: dict[str, str]) -> None:
    assert read_properties(text.encode("latin-1")) == properties


@pytest.mark.parametrize("text", [r"a=\u", r"a=\u12", r"\u00g0=b"])
def test_a_bad_escape_is_refused(text: str) -> None:
    with pytest.raises(Corrupt, match="four hexadecimal digits"):
        read_properties(text.encode())


def test_properties_are_written_in_order_under_their_comments() -> None:
    data = write_properties({"b c": " x y", "a": "=:#!\\\n", "e": "é😀\x00"}, ["", "today"])
    assert (
        data
        == rb"""#
#today
a=\=\:\#\!\\\n
b\ c=\ x y
e=\u00E9\uD83D\uDE00\u0000
"""
    )
    assert read_properties(data) == {"b c": " x y", "a": "=:#!\\\n", "e": "é😀\x00"}
