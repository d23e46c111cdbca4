"""The page of `octavo report`, looked at in Chromium by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.inspect.pages.report_page import report_page
from octavo.inspect.report.gathering import find_partitions, gather
from octavo.inspect.report.summary import DirectorySummary, FoundProblem, PartitionSummary, SegmentSummary
from octavo.log.names import TopicPartition, file_name
from octavo.records import BatchBuilder, Codec
from tests.browser.chromium import Browser, Page
from tests.browser.looks import assert_looks_right

DAY = 86_400_000
TIME = 1_700_000_000_000
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def batch(offset: int, codec: Codec, count: int) -> bytes:
    builder = BatchBuilder(codec=codec, base_offset=offset)
    for number in range(count):
        builder.append(b"key", b"value " * 30, timestamp_ms=TIME + (offset + number) * DAY // 10)
    return builder.build()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three topics; a batch of one of them is damaged."""
    folder = tmp_path_factory.mktemp("report")
    data = folder / "data"
    for topic, partitions, codec in (("orders", 3, Codec.ZSTD), ("clicks", 8, Codec.LZ4), ("audit", 1, Codec.NONE)):
        for number in range(partitions):
            place = data / f"{topic}-{number}"
            place.mkdir(parents=True)
            (place / file_name(0, ".log")).write_bytes(batch(0, codec, 20) + batch(20, codec, 3))
            (place / file_name(23, ".log")).write_bytes(batch(23, codec, 4 * number + 1))
    damaged = data / "audit-0" / file_name(0, ".log")
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    summary = gather(data, find_partitions(data), verify=True)
    page = folder / "page.html"
    page.write_text(report_page(summary, "2026-01-01 00:00 UTC"), "utf-8")
    return page


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """The report, freshly opened."""
    page = browser.open(report)
    yield page
    assert page.complaints() == []
    page.close()


def tip(page: Page) -> str | None:
    """What is told about the mark that is pointed at or focused."""
    told = page.run("(e => e.hidden ? null : e.textContent)(document.getElementById('tip'))")
    return None if told is None else str(told)


def first_column(page: Page, table: str) -> list[str]:
    rows = f"[...document.querySelectorAll('#{table} tbody tr')].filter(e => !e.hidden)"
    return list(page.run(f"{rows}.map(e => e.children[0].textContent)"))


def test_the_numbers_at_the_top_are_those_of_the_directory(page: Page) -> None:
    tiles = dict(
        page.run(
            "[...document.querySelectorAll('.tile')].map(e => [e.children[0].textContent, e.children[1].textContent])"
        )
    )
    assert (tiles["topics"], tiles["partitions"], tiles["segments"]) == ("3", "12", "24")
    assert int(tiles["problems"]) > 0
    assert tiles["first to last record"].startswith("2023-11-14 to ")


def test_pointing_at_a_mark_tells_what_it_stands_for(page: Page) -> None:
    page.hover("[aria-label='Size by topic'] rect")
    assert "clicks: " in (tip(page) or "")
    assert "lz4" in (tip(page) or "")
    page.hover("h1")
    assert tip(page) is None
    page.hover("[aria-label='Segments over time'] rect")
    assert "audit-0: segment 0, " in (tip(page) or "")
    page.hover("[aria-label='Batches by records'] rect")
    assert "batches (" in (tip(page) or "")


def test_marks_are_walked_through_by_the_arrow_keys_and_the_focus_is_seen(page: Page) -> None:
    page.run("document.querySelector('[aria-label=\"Segments over time\"] rect').focus()")
    page.press("ArrowRight")
    assert "audit-0: segment 23" in (tip(page) or "")
    page.press("ArrowDown")
    assert "clicks-0: segment 0" in (tip(page) or "")
    assert page.run("document.activeElement.matches(':focus-visible')")
    assert page.run("parseFloat(getComputedStyle(document.activeElement).strokeWidth)") >= 2
    page.press("End")
    assert "orders-2: segment 23" in (tip(page) or "")
    page.press("Tab")
    assert "Batches by size" in page.run("document.activeElement.closest('.chart').getAttribute('aria-label')")
    page.press("ArrowLeft", "Home", "ArrowUp")
    assert tip(page)


def test_everything_is_reached_by_the_tab_key_in_the_order_of_the_page(page: Page) -> None:
    number = "[...document.querySelectorAll('*')].indexOf(document.activeElement)"
    body = page.run("[...document.querySelectorAll('*')].indexOf(document.body)")
    seen: list[int] = []
    for _ in range(60):
        page.press("Tab")
        at = page.run(number)
        if at == body:
            break
        seen.append(at)
    assert seen == sorted(set(seen))
    stops = page.run("document.querySelectorAll('summary, .chart, thead button, input').length")
    assert len(seen) == stops


def test_tables_are_sorted_by_their_heads(page: Page) -> None:
    assert first_column(page, "topics-table") == ["clicks", "audit", "orders"]  # by size
    page.click("#topics-table th:first-child button")
    assert first_column(page, "topics-table") == ["audit", "clicks", "orders"]
    page.click("#topics-table th:first-child button")
    assert first_column(page, "topics-table") == ["orders", "clicks", "audit"]
    page.run("document.querySelector('#topics-table th:nth-child(2) button').focus()")
    page.press("Enter")
    assert first_column(page, "topics-table") == ["clicks", "orders", "audit"]
    assert page.run("document.querySelector('#topics-table th:nth-child(2)').ariaSort") == "descending"


def test_partitions_are_filtered(page: Page) -> None:
    assert len(first_column(page, "partitions-table")) == 12
    page.click("[data-filters]")
    page.call("Input.insertText", {"text": "clicks-7"})
    assert first_column(page, "partitions-table") == ["clicks-7"]
    assert page.run("document.querySelector('.matches').textContent") == "1 match"


def test_problems_are_unfolded_by_the_keyboard(page: Page) -> None:
    page.press("Tab", "Enter")
    assert page.run("document.querySelector('.rule').open")
    shown = page.run("document.querySelector('.rule').innerText")
    assert "audit-0/00000000000000000000.log" in shown


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_overflows_and_it_can_be_read(browser: Browser, report: Path, width: int, dark: bool) -> None:
    page = browser.open(report, width=width, dark=dark)
    page.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    page.hover("rect")
    assert tip(page)
    assert_looks_right(page, width=width, dark=dark)
    page.close()


@pytest.mark.parametrize("width", [1216, 1280])
def test_a_long_name_breaks_no_other_column(browser: Browser, tmp_path: Path, width: int) -> None:
    partitions = []
    for topic in ("long-" * 40, "events"):
        each = PartitionSummary(f"{topic}-0", TopicPartition(topic, 0), disk_size=123_456_789, segment_count=2_000)
        each.batches, each.records, each.start_offset, each.end_offset = 9_999, 12_345_678, 11_111_111, 23_456_789
        each.codec_bytes["none"] = each.batch_bytes = 120_000_000
        each.first_ms, each.last_ms = TIME, TIME + 5 * DAY
        each.sampled_in, each.sampled_out = 100, 1_550
        partitions.append(each)
    partitions[0].start_offset, partitions[0].end_offset = (1 << 62), (1 << 63) - 1  # as long as can be
    target = tmp_path / "page.html"
    target.write_text(report_page(DirectorySummary(tmp_path, partitions, True), ""), "utf-8")
    page = browser.open(target, width=width)
    assert_looks_right(page, width=width, dark=False)
    lines = (
        "(e => { const all = document.createRange(); all.selectNodeContents(e);"
        " return new Set([...all.getClientRects()].map(each => each.top)).size; })"
    )
    broken = page.run(f"[...document.querySelectorAll('td')].filter(e => {lines}(e) > 1).map(e => e.textContent)")
    assert broken == [f"{1 << 62:,} to {(1 << 63) - 1:,}"]
    edges = "[...document.querySelectorAll('thead .n button')].map(e => getComputedStyle(e).textAlign)"
    assert set(page.run(edges)) == {"right"}
    page.close()


def test_thousands_of_partitions_give_a_bounded_page(browser: Browser, tmp_path: Path) -> None:
    segments = [SegmentSummary(n, 10, TIME + n * 1000, TIME + n * 1000 + 500) for n in range(250)]
    partitions = []
    for number in range(6_000):
        topic = f"{'long-' * 40}{number // 4}"
        each = PartitionSummary(f"{topic}-{number % 4}", TopicPartition(topic, number % 4))
        each.disk_size = each.batch_bytes = 1_000_000 + number
        each.batches, each.records, each.start_offset, each.end_offset = 10, 100, 0, 100
        each.codec_bytes["zstd"] = each.batch_bytes
        each.first_ms, each.last_ms = TIME, TIME + DAY
        each.batch_sizes[16] = each.batch_records[3] = 10
        each.sampled_in, each.sampled_out = 100, 250
        each.segments = segments
        if number == 5_999:
            problem = FoundProblem(HOSTILE, 1, 2, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
            each.problems, each.problem_count, each.failure = [problem] * 100, 100, HOSTILE
        partitions.append(each)
    target = tmp_path / "page.html"
    target.write_text(report_page(DirectorySummary(tmp_path / HOSTILE.replace("/", ""), partitions, True), ""), "utf-8")
    assert target.stat().st_size < 4_000_000
    page = browser.open(target, width=400)
    assert "400 largest of 6,000 partitions" in page.run("document.body.textContent")
    assert first_column(page, "partitions-table")
    assert page.run("document.documentElement.scrollWidth") == 400
    assert page.run("[document.scripts.length, document.images.length, window.hacked ?? null]") == [1, 0, None]
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []
    page.close()
