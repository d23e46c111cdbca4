"""What the README says of Spark can be pasted: it prints what stands below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.unit.test_documents import Block, blocks, run

pytestmark = pytest.mark.timeout(600)


def test_the_example_of_the_readme_runs_and_prints_what_it_says(spark: SparkSession, tmp_path: Path) -> None:
    """The session is there already, in another folder: so paths are made absolute."""
    found = blocks("README.md")
    number, example = next((at, block) for at, block in enumerate(found) if block.kind == "python spark")
    writes = next(block for block in found if block.kind == "python")
    names: dict[str, Any] = {}
    run("README.md", _below(tmp_path, writes), names)
    printed = run("README.md", _below(tmp_path, example), names)
    names["query"].stop()
    assert names["spark"] is spark
    assert printed == found[number + 1].content


def _below(folder: Path, block: Block) -> Block:
    content = block.content
    for name in ("data", "orders.checkpoint", "orders.parquet"):
        content = content.replace(f'"{name}"', f'"{folder / name}"')
    return block._replace(content=content)
