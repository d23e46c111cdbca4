"""The page of `octavo explain --html`, looked at in Chromium by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.inspect import ByteMap, explain_file
from octavo.inspect.pages.explain_page import explain_page
from octavo.records import BatchBuilder, Codec, Header
from tests.browser.chromium import Browser, Page
from tests.browser.looks import assert_looks_right

HOSTILE = b'</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def batch(codec: Codec = Codec.NONE, count: int = 3) -> bytes:
    builder = BatchBuilder(codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)
    for number in range(count):
        headers = [Header("</div><b>trace", b"\x01\xff")]
        builder.append(HOSTILE, HOSTILE * 2, timestamp_ms=1_700_000_000_000 + number, headers=headers)
    return builder.build()


def mapped(folder: Path, data: bytes, *, max_records: int | None = None) -> ByteMap:
    segment = folder / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir(exist_ok=True)
    segment.write_bytes(data)
    return explain_file(segment, max_records=max_records)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a batch without compression."""
    folder = tmp_path_factory.mktemp("plain")
    page = folder / "page.html"
    page.write_text(explain_page(mapped(folder, batch())), "utf-8")
    return page


@pytest.fixture(scope="module")
def compressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a compressed batch whose checksum is wrong."""
    folder = tmp_path_factory.mktemp("compressed")
    data = bytearray(batch(Codec.ZSTD))
    data[17] ^= 1
    page = folder / "page.html"
    page.write_text(explain_page(mapped(folder, bytes(data))), "utf-8")
    return page


@pytest.fixture
def page(browser: Browser, plain: Path) -> Iterator[Page]:
    """The plain page, freshly opened."""
    page = browser.open(plain)
    yield page
    assert page.complaints() == []
    page.close()


def lit(page: Page) -> tuple[str, list[str]]:
    """The bytes that are lit up, and the names of the fields that are."""
    shown = page.run("[...document.querySelectorAll('[role=gridcell].lit')].map(e => e.textContent).join(' ')")
    names = page.run("[...document.querySelectorAll('[role=treeitem].lit > .name')].map(e => e.textContent)")
    return str(shown), list(names)


def number_of(page: Page, name: str) -> int:
    """The number of the first field of this name."""
    return int(
        page.run(
            "[...document.querySelectorAll('[role=treeitem]')]"
            f".find(e => e.querySelector('.name').textContent === {name!r}).dataset.f"
        )
    )


def test_pointing_at_bytes_lights_up_all_of_their_field_and_says_what_it_is(page: Page) -> None:
    number = number_of(page, "base_timestamp_ms")
    page.hover(f"[role=gridcell][data-c='{number}']")
    assert lit(page) == ("00 00 01 8b cf e5 68 00", ["base_timestamp_ms"])  # in two rows
    detail = page.run("document.getElementById('detail').innerText")
    assert "base_timestamp_ms" in detail
    assert "1700000000000 (2023-11-14 22:13:20)" in detail
    assert "counted from" in detail


def test_pointing_at_the_text_beside_the_bytes_does_the_same(page: Page) -> None:
    number = number_of(page, "crc")
    page.hover(f".c1 [data-c='{number}']")
    shown, names = lit(page)
    assert (len(shown.split()), names) == (4, ["crc"])


def test_pointing_at_a_field_lights_up_its_bytes_and_at_a_group_all_in_it(page: Page) -> None:
    page.hover(f"#f{number_of(page, 'magic')}")
    assert lit(page) == ("02", ["magic"])
    group = number_of(page, "header 0")
    page.hover(f"#f{group}")
    shown, names = lit(page)
    assert names == ["header 0"]
    key = Header("</div><b>trace", b"").key.encode()
    assert bytes.fromhex(shown) == bytes([2 * len(key)]) + key + b"\x04\x01\xff"


def test_lit_bytes_look_different(page: Page) -> None:
    number = number_of(page, "magic")
    color = f"getComputedStyle(document.querySelector('[role=gridcell][data-c=\"{number}\"]')).backgroundColor"
    before = page.run(color)
    page.hover(f"#f{number}")
    assert page.run(color) != before


def test_a_click_holds_on_to_a_field_until_escape(page: Page) -> None:
    page.click(f"[role=gridcell][data-c='{number_of(page, 'magic')}']")
    page.hover("h1")
    assert lit(page)[1] == ["magic"]
    selected = "[...document.querySelectorAll('[aria-selected=true] > .name')].map(e => e.textContent)"
    assert page.run(selected) == ["magic"]
    assert page.run("getComputedStyle(document.querySelector('[aria-selected=true] > .meaning')).display") == "block"
    page.press("Escape")
    assert lit(page) == ("", [])
    assert page.run(selected) == []


def focused(page: Page) -> tuple[str, str]:
    """The role of the element that has the focus, and the name of its field."""
    role = page.run("document.activeElement.getAttribute('role')")
    name = page.run(
        "(e => document.getElementById('f' + (e.dataset.c ?? e.dataset.f))?.querySelector('.name').textContent)"
        "(document.activeElement)"
    )
    return str(role), str(name)


def test_the_bytes_are_walked_through_by_the_arrow_keys(page: Page) -> None:
    page.press("Tab")
    assert focused(page) == ("gridcell", "base_offset")
    page.press("ArrowRight")
    assert focused(page) == ("gridcell", "length")
    assert lit(page)[1] == ["length"]
    page.press("ArrowDown")
    assert focused(page) == ("gridcell", "last_offset_delta")
    page.press("ArrowUp", "ArrowLeft")
    assert focused(page) == ("gridcell", "base_offset")
    page.press("End")
    assert focused(page) == ("gridcell", "value")


def test_enter_leads_from_bytes_to_their_field_and_back(page: Page) -> None:
    page.press("Tab", "ArrowRight", "Enter")
    assert focused(page) == ("treeitem", "length")
    page.press("Enter")
    assert focused(page) == ("gridcell", "length")


def test_the_fields_are_a_tree_for_the_keyboard(page: Page) -> None:
    page.press("Tab", "Tab")
    assert focused(page) == ("treeitem", "batch")
    page.press("ArrowDown", "ArrowDown")
    assert focused(page) == ("treeitem", "length")
    assert lit(page)[1] == ["length"]
    page.press("ArrowLeft")
    assert focused(page) == ("treeitem", "batch")
    page.press("ArrowLeft", "End")  # folded, it is the only one
    assert focused(page) == ("treeitem", "batch")
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.press("ArrowRight", "ArrowRight", "End")
    assert focused(page)[1] == "value"


def test_the_focus_can_be_seen(page: Page) -> None:
    for keys in (["Tab"], ["Tab"]):
        page.press(*keys)
        outline = page.run(
            "(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))"
        )
        assert outline[0] == "solid"
        assert outline[1] >= 2


def test_one_stop_of_the_tab_key_for_bytes_and_one_for_fields(page: Page) -> None:
    assert page.run("document.querySelectorAll('[tabindex=\"0\"]').length") == 2
    page.press("Tab", "ArrowRight", "Tab")
    assert focused(page)[0] == "treeitem"
    assert page.run("document.querySelectorAll('[tabindex=\"0\"]').length") == 2


def test_roles_and_names_are_there_for_a_screen_reader(page: Page) -> None:
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if "role" in node]
    assert {"grid", "row", "gridcell", "tree", "treeitem", "heading"} <= set(roles)
    named = {node["role"]["value"]: node["name"]["value"] for node in tree if node.get("name", {}).get("value")}
    assert named["grid"] == "Bytes in the file"
    assert named["tree"] == "Fields: Bytes in the file"
    assert page.run("document.getElementById('detail').getAttribute('aria-live')") == "polite"
    assert page.run("document.documentElement.lang") == "en"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_overflows_and_it_can_be_read(browser: Browser, compressed: Path, width: int, dark: bool) -> None:
    page = browser.open(compressed, width=width, dark=dark)
    page.press("Tab", "Tab", "ArrowDown")
    assert_looks_right(page, width=width, dark=dark)
    page.close()


def test_decompressed_bytes_have_a_map_of_their_own(browser: Browser, compressed: Path) -> None:
    page = browser.open(compressed)
    assert page.run("[...document.querySelectorAll('h2')].map(e => e.firstChild.data.trim())") == [
        "Bytes in the file",
        "Decompressed bytes",
    ]
    page.hover(f"#f{number_of(page, 'offset_delta')}")
    assert lit(page) == ("00", ["offset_delta"])
    assert page.run("document.querySelector('.notes').innerText").startswith("crc at byte 17: wrong")
    page.close()


@pytest.mark.parametrize("which", ["plain", "compressed"])
def test_bytes_that_look_like_a_page_stay_bytes(browser: Browser, which: str, request: pytest.FixtureRequest) -> None:
    page = browser.open(request.getfixturevalue(which))
    assert page.run("[document.scripts.length, document.images.length, window.hacked ?? null]") == [1, 0, None]
    assert page.run("document.querySelectorAll('b, img, script:not(body > script)').length") == 0
    page.press("Tab", "ArrowRight")  # what the script puts into the page is text as well
    page.hover(f"#f{number_of(page, 'key')}")
    assert "</script><script>window.hacked" in page.run("document.getElementById('detail').innerText")
    assert page.run("[document.scripts.length, document.images.length, window.hacked ?? null]") == [1, 0, None]
    assert [url for url in page.requests() if not url.startswith("file:")] == []
    page.close()


def test_a_large_batch_gives_a_page_that_is_bounded_and_says_so(browser: Browser, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text(explain_page(mapped(tmp_path, batch(count=5_000), max_records=50)), "utf-8")
    assert target.stat().st_size < 3_000_000
    page = browser.open(target)
    assert "4,950 not shown one by one" in page.run("document.body.textContent")
    assert "more bytes of more records" in page.run("document.body.textContent")
    page.press("Tab", "End")
    assert lit(page)[1] == ["more records"]
    page.close()


def test_the_page_can_be_read_without_its_script(browser: Browser, plain: Path) -> None:
    page = browser.open(plain)
    page.call("Emulation.setScriptExecutionDisabled", {"value": True})
    page.go_to(plain.as_uri())
    assert "base_timestamp_ms" in page.run("document.body.innerText")
    page.close()
