"""`octavo verify --master`: each partition is checked by a task of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octavo.cli import main
from tests.golden.directories import unpack


def test_partitions_are_checked_by_tasks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = unpack("closed", tmp_path)
    assert main(["verify", str(directory), "--master", "local[2]"]) == 0
    log = directory / "deals-0" / f"{6:020d}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    assert main(["verify", str(directory), "--master", "local[2]"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{log}, position 78, offset 7: batch-crc") for line in lines)
