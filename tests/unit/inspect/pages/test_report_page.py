"""What the report says of a directory."""

from __future__ import annotations

import re
from pathlib import Path

from octavo.inspect.pages.report_page import report_page
from octavo.inspect.report.summary import DirectorySummary, PartitionSummary
from octavo.log.names import TopicPartition


def partition(topic: str, *, size: int, disk_size: int) -> PartitionSummary:
    summary = PartitionSummary(f"{topic}-0", TopicPartition(topic, 0), disk_size=disk_size, batch_bytes=size)
    summary.batches = summary.records = 1
    summary.codec_bytes["none"] = size
    summary.batch_sizes[6] = summary.batch_records[0] = 1
    return summary


def page_of(*partitions: PartitionSummary, failure: str | None = None) -> str:
    return report_page(DirectorySummary(Path("data"), list(partitions), True, failure=failure), "now")


def test_bars_are_in_the_order_of_what_they_show() -> None:
    page = page_of(partition("small", size=10, disk_size=900), partition("large", size=80, disk_size=100))
    assert re.findall(r'<span class="label" title="([^"]+)">', page) == ["large", "small"]


def test_one_batch_is_not_many() -> None:
    one = partition("events", size=100, disk_size=100)
    page = page_of(one)
    assert "The only batch has 64 to 127 bytes." in page
    assert "The only batch has 1 record." in page
    assert 'aria-label="1 batch (100 %) of 1 record"' in page
    page = page_of(one, partition("orders", size=100, disk_size=100))
    assert "Half of the 2 batches have at most 127 bytes." in page
    assert "Half of the 2 batches have at most 1 record." in page


def test_folders_that_were_set_aside_are_told_from_partitions() -> None:
    aside = PartitionSummary("events-0.0123456789abcdef0123456789abcdef-delete", None)
    page = page_of(partition("events", size=1, disk_size=1), aside)
    assert "<dt>partitions</dt><dd>1</dd>" in page
    assert "1 partition, and 1 folder that was set aside." in page


def test_bytes_outside_batches_are_told() -> None:
    each = partition("events", size=1, disk_size=1)
    assert "outside batches" not in page_of(each)
    each.outside_batches = 512 << 20
    page = page_of(each)
    assert "<dt>outside batches</dt><dd>512 MiB</dd>" in page
    assert ">512 MiB outside batches</td>" in page


def test_what_was_not_read_is_not_called_fine() -> None:
    each = partition("events", size=1, disk_size=1)
    assert '<div class="tile good"><dt>problems</dt><dd>0</dd></div>' in page_of(each)
    assert '<div class="tile bad"><dt>problems</dt><dd>1 not read</dd></div>' in page_of(each, failure="meta: no")
    each.failure, each.problem_count = "some: no", 3
    assert '<div class="tile bad"><dt>problems</dt><dd>3, and 2 not read</dd></div>' in page_of(
        each, failure="meta: no"
    )
