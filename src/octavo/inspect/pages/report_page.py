"""Make the page of `octavo report --html`: a data directory at a glance.

The page is bounded: charts have the largest topics, tables the largest partitions and those with problems, and each
says what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from octavo.inspect.pages import numbers
from octavo.inspect.pages.charts import Mark, Row, bars, columns, lanes, stacked, ticks_between
from octavo.inspect.pages.document import document, text
from octavo.inspect.pages.report_tables import partitions_table, problems_list, topics_table
from octavo.inspect.report.summary import (
    SIZES,
    DirectorySummary,
    PartitionSummary,
    SegmentSummary,
    TopicSummary,
    time_range,
    topics_of,
)
from octavo.log.tiers import list_parts

_MOST_BARS: Final = 15
_MOST_LANES: Final = 40
_MOST_MARKS: Final = 120  # of one lane; segments are put together beyond that
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd", "unknown")


def report_page(summary: DirectorySummary, written: str) -> str:
    """Return the page. `written` says when it was made."""
    topics = topics_of(summary.partitions)
    body = "\n".join(
        [
            _head(summary, topics, written),
            '<main class="report">',
            problems_list(summary),
            '<div class="side">',
            _sizes_by_topic(topics),
            _compression(topics),
            "</div>",
            _timeline(summary.partitions, topics),
            '<div class="side">',
            _classes("Batches by size", "byte", summary.partitions, "batch_sizes"),
            _classes("Batches by records", "record", summary.partitions, "batch_records"),
            "</div>",
            topics_table(topics),
            partitions_table(summary.partitions),
            "</main>",
            '<div id="tip" role="status" aria-live="polite" hidden></div>',
        ]
    )
    return document(
        f"{summary.path.absolute().name}: report", body, styles=("base.css", "report.css"), script="report.js"
    )


def _head(summary: DirectorySummary, topics: Sequence[TopicSummary], written: str) -> str:
    partitions = summary.partitions
    outside = sum(each.outside_batches for each in partitions)
    tiles = [
        ("topics", numbers.count(len(topics)), ""),
        ("partitions", numbers.count(sum(len(topic.partitions) for topic in topics)), ""),
        ("on disk", numbers.size(sum(each.disk_size for each in partitions)), ""),
        ("segments", numbers.count(sum(each.segment_count for each in partitions)), ""),
        ("batches", numbers.count(sum(each.batches for each in partitions)), ""),
        ("records", numbers.count(sum(each.records for each in partitions)), ""),
        ("first to last record", numbers.period(*time_range(partitions)), "wide"),
        *([("outside batches", numbers.size(outside), "")] if outside else []),
        ("problems", *_found(summary)),
    ]
    drawn = "".join(
        f'<div class="tile {kind}"><dt>{name}</dt><dd>{text(said)}</dd></div>' for name, said, kind in tiles
    )
    return (
        f'<header class="top"><h1>{text(str(summary.path.absolute()))}</h1>'
        f'<p class="quiet">as it was on {text(written)}</p><dl class="tiles">{drawn}</dl>{_remote(summary)}</header>'
    )


def _remote(summary: DirectorySummary) -> str:
    """Return a paragraph on tiered partitions; nothing if there are none."""
    if not summary.remote:
        return ""
    parts = text(", ".join(list_parts(summary.remote)))
    return f'<p class="quiet">Tiered, with older records in remote storage: {parts}</p>'


def _found(summary: DirectorySummary) -> tuple[str, str]:
    """Return how many problems there are, and the class of the tile that says so."""
    problems, unread = summary.problem_count, len(summary.failures)
    if unread:
        return (f"{problems:,}, and " if problems else "") + f"{unread:,} not read", "bad"
    if not summary.is_verified:
        return "not looked for", ""
    return numbers.count(problems), "bad" if problems else "good"


def _section(title: str, note: str, content: str) -> str:
    return f'<section class="card"><h2>{title}</h2><p class="quiet">{note}</p>{content}</section>'


def _legend(kinds: Sequence[str]) -> str:
    chips = "".join(f'<li class="k-{kind}">{"uncompressed" if kind == "none" else kind}</li>' for kind in kinds)
    return f'<ul class="legend" aria-label="Colours">{chips}</ul>'


def _sizes_by_topic(topics: Sequence[TopicSummary]) -> str:
    topics = sorted(topics, key=lambda topic: (-_bytes(topic), topic.name))
    shown, others = topics[:_MOST_BARS], topics[_MOST_BARS:]
    whole = max((_bytes(topic) for topic in shown), default=0)
    rows = [_size_row(topic.name, topic.codec_bytes, whole) for topic in shown]
    note = "Bytes of batches, by codec."
    if others:
        rest = sum(map(_bytes, others))
        note += f" Left out: {numbers.many(len(others), 'smaller topic')} with {numbers.size(rest)}."
    used = [codec for codec in _CODECS if any(topic.codec_bytes[codec] for topic in shown)]
    return _section("Size by topic", note, bars("Size by topic", rows) + _legend(used))


def _bytes(topic: TopicSummary) -> int:
    return topic.codec_bytes.total()


def _size_row(name: str, codec_bytes: Counter[str], whole: int) -> Row:
    parts = [
        (f"k-{codec}", codec_bytes[codec], f"{name}: {numbers.size(codec_bytes[codec])}, {_said(codec)}")
        for codec in _CODECS
    ]
    return Row(name, stacked(parts, whole), numbers.size(codec_bytes.total()))


def _said(codec: str) -> str:
    return "uncompressed" if codec == "none" else codec


def _compression(topics: Sequence[TopicSummary]) -> str:
    known = [(topic, topic.ratio) for topic in topics]
    best = sorted(((ratio, topic) for topic, ratio in known if ratio), key=lambda each: -each[0])[:_MOST_BARS]
    if not best:
        return _section("Compression", "No topic has compressed batches.", "")
    whole = best[0][0]
    rows = []
    for ratio, topic in best:
        codec = max((codec for codec in _CODECS[1:]), key=lambda each: topic.codec_bytes[each])
        tip = f"{topic.name}: decompressed {ratio:.2f} times as large, mostly {codec}"
        rows.append(Row(topic.name, [Mark(0, ratio / whole, f"k-{codec}", tip)], numbers.ratio(ratio)))
    note = (
        "How many times larger the compressed batches are when they are decompressed; from a sample of each partition."
    )
    return _section("Compression", note, bars("Compression ratio by topic", rows))


def _timeline(partitions: Sequence[PartitionSummary], topics: Sequence[TopicSummary]) -> str:
    first, last = time_range(partitions)
    if last < 0:
        return _section("Segments over time", "The records have no timestamps.", "")
    named = sorted((each for each in partitions if each.partition is not None), key=lambda each: each.partition or ())
    lines = [(each.folder, each.segments) for each in named if each.segments]
    note = "Each mark is a segment, from its first to its last timestamp."
    if len(lines) > _MOST_LANES:
        shown = topics[:_MOST_LANES]
        lines = [(topic.name, [segment for each in topic.partitions for segment in each.segments]) for topic in shown]
        note = "Each mark is a segment of any partition of the topic, from its first to its last timestamp."
        if len(topics) > len(shown):
            note += f" The {_MOST_LANES} largest topics are shown."
    span = max(last - first, 1)
    rows = [Row(name, _segment_marks(name, segments, first, span)) for name, segments in lines]
    ticks = [numbers.moment(tick, span) for tick in ticks_between(first, last)]
    return _section("Segments over time", note, lanes("Segments over time", rows, ticks))


def _segment_marks(name: str, segments: Sequence[SegmentSummary], first: int, span: int) -> list[Mark]:
    timed = sorted((each for each in segments if 0 <= each.first_ms <= each.last_ms), key=lambda each: each.first_ms)
    while len(timed) > _MOST_MARKS:
        pairs = zip(timed[::2], timed[1::2], strict=False)
        timed = [one.joined(other) for one, other in pairs] + (timed[-1:] if len(timed) % 2 else [])
    marks = []
    for number, each in enumerate(timed):
        what = f"segment {each.base_offset}" if each.segments == 1 else f"{each.segments:,} segments"
        tip = f"{name}: {what}, {numbers.size(each.size)}, {numbers.period(each.first_ms, each.last_ms, days=False)}"
        kind = f"k-segment{number % 2}"
        marks.append(Mark((each.first_ms - first) / span, (each.last_ms - each.first_ms) / span, kind, tip))
    return marks


def _classes(title: str, unit: str, partitions: Sequence[PartitionSummary], name: str) -> str:
    totals = [0] * SIZES
    for each in partitions:
        totals = [total + more for total, more in zip(totals, getattr(each, name), strict=True)]
    used = [power for power, total in enumerate(totals) if total]
    if not used:
        return _section(title, "There are no batches.", "")
    whole, most = sum(totals), max(totals)
    middle = next(power for power in used if sum(totals[: power + 1]) * 2 >= whole)
    heights = [
        (
            numbers.power_of_two(power),
            totals[power] / most,
            f"{numbers.many(totals[power], 'batch')} ({numbers.share(totals[power], whole)}) of {_range(power, unit)}",
        )
        for power in range(used[0], used[-1] + 1)
    ]
    most_of_half = numbers.many((2 << middle) - 1, unit)
    note = f"Half of the {whole:,} batches have at most {most_of_half}. Each column begins at the number below it."
    if whole == 1:
        note = f"The only batch has {_range(middle, unit)}."
    return _section(title, note, columns(title, heights))


def _range(power: int, unit: str) -> str:
    """Format the numbers of a class."""
    most = numbers.many((2 << power) - 1, unit)
    return most if power == 0 else f"{1 << power:,} to {most}"
