"""Pages are written over pages, and over nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from octavo.errors import InvalidInput
from octavo.inspect.pages.document import document, text
from octavo.inspect.pages.writing import write_page


def page(title: str = "title") -> str:
    return document(title, "<p>body</p>", styles=("base.css",), script="explain.js")


def test_a_page_is_written_and_written_again(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_page(target, page("one"))
    write_page(target, page("two"))
    assert target.read_text("utf-8") == page("two")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(b"a precious segment")
    os.mkfifo(tmp_path / "fifo")
    for target in (segment, tmp_path, tmp_path / "fifo", Path("/dev/null"), tmp_path / "no" / "page.html"):
        with pytest.raises(InvalidInput):
            write_page(target, page())
    assert segment.read_bytes() == b"a precious segment"
    assert len(list(tmp_path.iterdir())) == 2


def test_text_is_escaped_made_visible_and_shortened() -> None:
    assert text("<b>\"'&\x1b\u202e\udcff") == "&lt;b&gt;&quot;&#x27;&amp;\\x1b\\u202e\\udcff"
    assert len(text("x" * 10_000)) == 600


def test_a_page_refers_to_nothing_outside() -> None:
    whole = page()
    assert "default-src 'none'" in whole
    assert not re.findall(r"https?://|url\(|@import|<link|src=", whole)
