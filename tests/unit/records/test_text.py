from __future__ import annotations

import pytest

from octavo.errors import InvalidInput
from octavo.records.text import read_text, write_text


@pytest.mark.parametrize("text", ["", "key", "ключ", "鍵", "🗝", "\x00", "\ufffd"])
def test_text_comes_back(text: str) -> None:
    assert read_text(write_text(text)) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("eda080", "�"),  # a surrogate is one mistake to Java, three to Python
        ("eda0", "�"),
        ("eda041", "�A"),
        ("eda080eda080", "��"),
        ("edb080", "�"),
        ("ed", "�"),
        ("ed41", "�A"),
        ("80", "�"),
        ("c080", "��"),
        ("e08080", "���"),
        ("e180", "�"),
        ("f0908041", "�A"),
        ("f4908080", "����"),
        ("ff41fe", "�A�"),
    ],
)
def test_what_is_not_utf8_reads_as_in_java(data: str, text: str) -> None:
    assert read_text(bytes.fromhex(data)) == text


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^text with a lone surrogate at character 1 has no UTF-8"):
        write_text("a\ud800")
