"""The demo serves a client, asks Spark SQL, shows what it answers, writes that to a topic, and reads it back."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from octavo.cli.demo import keeping, serving, tables
from octavo.cli.demo.stage import Stage
from octavo.log import DataDirectory
from tests.spark import sessions

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("java")]


@pytest.mark.exhaustive
def test_the_log_is_asked_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # The demo runs with what `octavo[demo]` brings, and pandas is not part of that.
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "pandas.py").write_text("raise ImportError('there is no pandas')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"), prepend=os.pathsep)
    settings = shlex.join(f"--conf={name}={value}" for name, value in sessions.settings().items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
    data = tmp_path / "data"
    data.mkdir()
    keeping.write(data)
    with serving.Clicks(tmp_path / "data-served") as clicks:
        serving.show(Stage(), clicks)
        tables.show(Stage(), data, clicks)
    out = capsys.readouterr().out
    done = "produced, all acknowledged|consumed by the group readers"
    rates = re.findall(rf"^ +(?:{done}) +100,000 +\d+\.\d\d +[\d,]+$", out, re.MULTILINE)
    assert len(rates) == 2, out
    counts = [
        int(count.replace(",", ""))
        for count in re.findall(r"^ +count \d +([\d,]+) +-?[\d,]+ ms ago$", out, re.MULTILINE)
    ]
    assert len(counts) == 3, out
    assert serving.COUNT < counts[0] < counts[1] < counts[2], out
    with DataDirectory.open(tmp_path / "data-served", read_only=True) as directory:
        assert sum(directory.log(*place).end_offset for place in directory.partitions()) >= counts[2]
    assert re.search(r"^ +topic +pages +orders +last *$", out, re.MULTILINE), out
    assert len(re.findall(r"^ +(?:orders|returns) +\d+ +\d+ +\d{4}-\d\d-\d\d ", out, re.MULTILINE)) > 2, out
    assert "No broker was asked" in " ".join(out.split())
    assert re.search(r"^ +partition +offset +key +value *$", out, re.MULTILINE), out
    assert (
        len(re.findall(r'^ +[01] +\d+ +(?:orders|returns) +\{"topic":"(?:orders|returns)",', out, re.MULTILINE)) > 2
    ), out
    with DataDirectory.open(data, read_only=True) as directory:
        assert sum(directory.log(tables.TOPIC, partition).end_offset for partition in range(2)) > 2
        ends = {partition: directory.log(*partition).end_offset for partition in directory.partitions()}
    assert re.search(r"export again +0 rows: nothing was new", out), out
    assert re.search(r"compare +0 records differ or have another offset", out), out
    with DataDirectory.open(tmp_path / "data-restored", read_only=True) as directory:
        assert {partition: directory.log(*partition).end_offset for partition in directory.partitions()} == ends
    assert list((tmp_path / "data-table").glob("topic=orders/day=*/*.parquet"))
