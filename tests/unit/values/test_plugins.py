"""Formats of values that other packages add by an entry point."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.values import FORMATS, decoder_from_text, infer_decoder, value_decoder, value_formats
from tests.plugin import install

Install = Callable[..., None]

MODULE: Final = "octavo_test_length"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with an installed package that adds a format."""
    install(tmp_path, MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return tmp_path


def test_a_format_of_another_package_is_found(plugin: Path) -> None:
    assert value_formats() == [*FORMATS, "length"]
    decoder = value_decoder("length", message="size")
    decoded = decoder.decode(pa.array([b"abc", None, b"", b"!"], pa.binary()))
    assert decoded.columns.to_pylist() == [{"size": 3}, {"size": None}, {"size": 0}, {"size": None}]
    assert decoded.errors.to_pylist() == [None, None, None, "the value is loud"]


def test_its_decoders_can_be_stored_and_pickled(plugin: Path) -> None:
    decoder = value_decoder("length", message="size")
    assert decoder_from_text(decoder.to_text()) == decoder
    assert pickle.loads(pickle.dumps(decoder)) == decoder


def test_its_parameters_are_checked(plugin: Path) -> None:
    with pytest.raises(InvalidInput, match="length need message"):
        value_decoder("length")
    with pytest.raises(InvalidInput, match="length take no schema"):
        value_decoder("length", message="size", schema="x")
    with pytest.raises(InvalidInput, match="cannot be inferred from length values"):
        infer_decoder("length", pa.array([b"a"], pa.binary()))


def test_without_the_package_there_is_no_such_format() -> None:
    with pytest.raises(InvalidInput, match=r"no format 'length' of values: there are json, avro, protobuf, string$"):
        value_decoder("length", message="size")


def test_a_plugin_cannot_replace_a_format_of_octavo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, MODULE, name="string")
    monkeypatch.syspath_prepend(tmp_path)
    assert value_formats() == list(FORMATS)
    assert value_decoder("string").schema.names == ["text"]


def test_two_packages_with_the_same_format_are_told(plugin: Path) -> None:
    install(plugin, "octavo_test_other")
    with pytest.raises(
        InvalidInput, match=r"several packages have a format 'length': .*octavo_test_.* and octavo_test_"
    ):
        value_decoder("length", message="size")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("raise RuntimeError('not today')", "of octavo_test_length cannot be loaded: not today"),
        ("import no_such_module", "cannot be loaded: No module named 'no_such_module'"),
        ("FORMAT = 5", "octavo_test_length:FORMAT of octavo_test_length is no octavo.values.ValueFormat"),
        ("", "cannot be loaded: .* no attribute 'FORMAT'"),
    ],
)
def test_a_plugin_that_does_not_work_gets_one_sentence(content: str, problem: str, plugin: Path) -> None:
    (plugin / f"{MODULE}.py").write_text(content)
    with pytest.raises(InvalidInput, match=problem):
        value_decoder("length", message="size")
