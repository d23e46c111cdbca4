"""Pages are written over pages, and over nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from octavo.errors import InvalidInput
from octavo.inspect.pages.document import document, text
from octavo.inspect.pages.writing import check_target, write_page


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


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    link = tmp_path / "link.html"
    link.symlink_to("pages/real.html")
    for title in ("the first time there is no file behind it", "then there is"):
        write_page(link, page(title))
        assert link.is_symlink()
        assert (tmp_path / "pages" / "real.html").read_text("utf-8") == page(title)
    assert [each.name for each in (tmp_path / "pages").iterdir()] == ["real.html"]


def test_links_to_anything_else_are_refused_and_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    os.mkfifo(tmp_path / "fifo")
    unnamed = os.open(tmp_path / "open.html", os.O_CREAT | os.O_RDWR)
    (tmp_path / "open.html").unlink()
    targets = ("notes.txt", "fifo", "link.html", ".", "no/page.html", "/dev/null", f"/proc/self/fd/{unnamed}")
    link = tmp_path / "link.html"
    for target in targets:
        link.symlink_to(target)
        with pytest.raises(InvalidInput, match=r"link\.html "):
            write_page(link, page())
        assert link.readlink() == Path(target)
        link.unlink()
    os.close(unnamed)
    assert (tmp_path / "notes.txt").read_text() == "precious"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fifo", "notes.txt"]


def test_a_folder_in_which_nothing_can_be_made_is_noticed_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"/proc/page\.html cannot be written: [A-Z]"):
        check_target(Path("/proc/page.html"))


def test_a_name_that_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="cannot be written: File name too long"):
        write_page(Path("x" * 300 + ".html"), page())


def test_text_is_escaped_made_visible_and_shortened() -> None:
    assert text("<b>\"'&\x1b\u202e\udcff") == "&lt;b&gt;&quot;&#x27;&amp;\\x1b\\u202e\\udcff"
    assert len(text("x" * 10_000)) == 600


def test_a_page_refers_to_nothing_outside() -> None:
    whole = page()
    assert "default-src 'none'" in whole
    assert not re.findall(r"https?://|url\(|@import|<link|src=", whole)
