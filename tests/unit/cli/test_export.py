"""What `octavo export` makes of its options, before Spark starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from octavo.cli import export
from octavo.errors import InvalidInput
from octavo.values import ValueDecoder

FIELDS = ", ".join(f"field_{number} BIGINT" for number in range(100))


def decoder(*options: str) -> ValueDecoder | None:
    """The decoder that options ask for."""
    parser = argparse.ArgumentParser()
    export.add_to(parser.add_subparsers())
    return export._decoder(parser.parse_args(["export", "logs", "table", *options]))


def test_a_schema_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "schema").write_text(FIELDS)
    given = decoder("--value-format", "json", "--schema", FIELDS)
    assert given is not None
    assert len(given.schema) == 100
    assert decoder("--value-format", "json", "--schema", str(tmp_path / "schema")) == given


def test_a_file_that_is_no_schema_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "schema").write_bytes(b"a BIGINT \xff")
    with pytest.raises(InvalidInput, match=r"the schema .*/schema is no text"):
        decoder("--value-format", "json", "--schema", str(tmp_path / "schema"))


def test_a_schema_is_asked_for_only_where_there_is_one() -> None:
    assert decoder() is None
    assert decoder("--value-format", "json") is None  # it is inferred
    assert decoder("--value-format", "string") is not None
