"""The tables of the report: topics, partitions, problems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from octavo.inspect.pages import numbers
from octavo.inspect.pages.document import text
from octavo.inspect.report.summary import DirectorySummary, FoundProblem, PartitionSummary, TopicSummary

_MOST_TOPICS: Final = 300
_MOST_PARTITIONS: Final = 400
_MOST_PLACES: Final = 12  # of one rule
_MOST_RULES: Final = 60

Cell = tuple[str, float | str]  # what is shown, and what it is sorted by


def topics_table(topics: Sequence[TopicSummary]) -> str:
    """Return the table of topics, the largest first."""
    names = (
        "topic",
        "partitions",
        "on disk",
        "records",
        "batches",
        "batch size",
        "codecs",
        "ratio",
        "first",
        "last",
    )
    rows = [_topic_cells(topic) for topic in topics[:_MOST_TOPICS]]
    note = _note("topics", len(rows), len(topics))
    return _card("topics", "Topics", note, _table("topics", names, rows))


def partitions_table(partitions: Sequence[PartitionSummary]) -> str:
    """Return the table of partitions: those with problems, and the largest."""
    names = (
        "partition",
        "on disk",
        "segments",
        "offsets",
        "records",
        "records a batch",
        "codecs",
        "first",
        "last",
        "state",
    )
    order = sorted(partitions, key=lambda each: (not _is_bad(each), -each.disk_size, each.folder))
    shown = sorted(order[:_MOST_PARTITIONS], key=_name_order)
    aside = sum(each.partition is None for each in partitions)
    note = _note("partitions", len(shown), len(partitions))
    if aside and len(shown) == len(partitions):
        kept = numbers.many(len(partitions) - aside, "partition")
        note = f"{kept}, and {numbers.many(aside, 'folder')} that {'was' if aside == 1 else 'were'} set aside."
    return _card(
        "partitions", "Partitions", note, _table("partitions", names, [_partition_cells(each) for each in shown])
    )


def problems_list(summary: DirectorySummary) -> str:
    """Return what is wrong, by rule: what it means, what would repair it, and where it was found."""
    unread = summary.failures
    parts = [f'<li class="wrong">{text(failure)}</li>' for failure in unread[:_MOST_PLACES]]
    if len(unread) > _MOST_PLACES:
        parts.append(f'<li class="wrong">{len(unread) - _MOST_PLACES:,} more could not be read</li>')
    told = [note for partition in summary.partitions for note in partition.notes]
    parts += [f"<li>{text(note)}</li>" for note in told[:_MOST_PLACES]]
    if len(told) > _MOST_PLACES:
        parts.append(f"<li>transactions are open in {len(told) - _MOST_PLACES:,} more partitions</li>")
    failures = f'<ul class="notes">{"".join(parts)}</ul>' if parts else ""
    if not summary.is_verified:
        said = "The page was made with --no-verify. <code>octavo verify</code> looks for problems."
        return _card("problems", "Problems", said, failures)
    if not summary.problem_count:
        said = "Every byte was checked, and no rule is broken."
        if unread:
            said = "Not everything could be read. In what was checked no rule is broken."
        return _card("problems", "Problems", said, failures)
    rules = [(rule, list(found)) for (rule, _), found in groupby(sorted(summary.problems, key=_advice), _advice)]
    rules.sort(key=lambda each: -len(each[1]))
    listed = "".join(_rule(rule, found) for rule, found in rules[:_MOST_RULES])
    said = f"{summary.problem_count:,} found. <code>octavo verify</code> lists them all."
    return _card("problems", "Problems", said, failures + listed)


def _advice(problem: FoundProblem) -> tuple[str, str]:
    """Return what problems have in common that are listed together: the rule, and what would repair them."""
    return problem.rule, problem.repair


def _rule(rule: str, found: Sequence[FoundProblem]) -> str:
    places = "".join(f"<li>{_place(problem)}</li>" for problem in found[:_MOST_PLACES])
    more = f"<li class=quiet>and {len(found) - _MOST_PLACES:,} more</li>" if len(found) > _MOST_PLACES else ""
    return (
        f'<details class="rule"><summary><b>{text(rule)}</b> <span class="count">{len(found):,}</span> '
        f"<span>{_with_code(found[0].means)}</span></summary>"
        f'<p class="quiet">{_with_code(found[0].repair)}</p><ul class="places">{places}{more}</ul></details>'
    )


def _with_code(said: str) -> str:
    """Escape a sentence, and show what stands in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(said))


def _place(problem: FoundProblem) -> str:
    said = [f"<code>{text(problem.file)}</code>"]
    if problem.position is not None:
        said.append(f"byte {problem.position:,}")
    if problem.offset is not None:
        said.append(f"offset {problem.offset:,}")
    if problem.found:
        said.append(text(problem.found))
    return ", ".join(said)


def _topic_cells(topic: TopicSummary) -> list[Cell]:
    first, last = topic.times
    batches = topic.total("batches")
    a_batch = topic.total("batch_bytes") // batches if batches else 0
    ratio = topic.ratio
    return [
        (topic.name, topic.name),
        _number(len(topic.partitions)),
        _size(topic.total("disk_size")),
        _number(topic.total("records")),
        _number(batches),
        _size(a_batch) if batches else ("-", -1),
        (_codecs(topic.codec_bytes), _codecs(topic.codec_bytes)),
        (numbers.ratio(ratio), ratio or 0.0),
        (numbers.minute(first), first),
        (numbers.minute(last), last),
    ]


def _partition_cells(each: PartitionSummary) -> list[Cell]:
    a_batch = each.records / each.batches if each.batches else None
    offsets = "-" if each.start_offset is None else f"{each.start_offset:,} to {each.end_offset:,}"
    return [
        (each.folder, each.folder),
        _size(each.disk_size),
        _number(each.segment_count),
        (offsets, each.end_offset if each.end_offset is not None else -1),
        _number(each.records),
        ("-", -1) if a_batch is None else (f"{a_batch:,.1f}", a_batch),
        (_codecs(each.codec_bytes), _codecs(each.codec_bytes)),
        (numbers.minute(each.first_ms), each.first_ms),
        (numbers.minute(each.last_ms), each.last_ms),
        _state(each),
    ]


def _state(each: PartitionSummary) -> Cell:
    if each.failure:
        return "cannot be read", 1e18
    said = []
    if each.partition is None:
        said.append("set aside")
    if each.problem_count:
        said.append(numbers.many(each.problem_count, "problem"))
    if each.outside_batches:
        said.append(f"{numbers.size(each.outside_batches)} outside batches")
    order = each.problem_count + (0.5 if each.partition is None else 0.25 if each.outside_batches else 0.0)
    return ", ".join(said), order


def _is_bad(each: PartitionSummary) -> bool:
    return bool(each.failure or each.problem_count)


def _name_order(each: PartitionSummary) -> tuple[str, int]:
    return (each.folder, 0) if each.partition is None else (each.partition.topic, each.partition.partition)


def _codecs(codec_bytes: Iterable[str]) -> str:
    return ", ".join("uncompressed" if codec == "none" else codec for codec in sorted(codec_bytes)) or "-"


def _number(number: int) -> Cell:
    return numbers.count(number), number


def _size(size: int) -> Cell:
    return numbers.size(size), size


def _note(what: str, shown: int, there: int) -> str:
    if shown == there:
        return f"All {there:,} {what}." if there != 1 else ""
    return f"The {shown:,} largest of {there:,} {what}, and those with problems."


def _card(key: str, title: str, note: str, content: str) -> str:
    return (
        f'<section class="card" id="{key}" aria-labelledby="t-{key}"><h2 id="t-{key}">{title}</h2>'
        f'<p class="quiet">{note}</p>{content}</section>'
    )


def _table(key: str, names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(
        f'<th scope="col" aria-sort="none"{_kind(value)}><button type="button">{name}</button></th>'
        for name, (_, value) in zip(names, rows[0] if rows else [("", "")] * len(names), strict=True)
    )
    body = "".join(f"<tr>{_cells(names, row)}</tr>" for row in rows)
    filter_box = (
        f'<label class="filter">Filter <input type="search" data-filters="{key}-table" autocomplete="off" '
        f'spellcheck="false"></label><span class="matches" role="status"></span>'
        if len(rows) > 10
        else ""
    )
    return f'{filter_box}<table id="{key}-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cells(names: Sequence[str], row: Sequence[Cell]) -> str:
    cells = []
    for number, (name, (shown, value)) in enumerate(zip(names, row, strict=True)):
        tag = "th scope=row" if number == 0 else "td"
        cells.append(
            f'<{tag}{_kind(value)} data-l="{name}" data-v="{text(str(value))}">{text(shown)}</{tag.split()[0]}>'
        )
    return "".join(cells)


def _kind(value: float | str) -> str:
    """Return the class of a cell: numbers stand on the right."""
    return "" if isinstance(value, str) else ' class="n"'
