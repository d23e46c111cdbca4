"""`python -m benchmarks` without a name lists what can be measured."""

from __future__ import annotations

import sys

import pytest

from benchmarks.__main__ import main
from benchmarks.registry import BENCHMARKS


def test_the_list_keeps_names_and_descriptions_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert main() == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert lines == [[name, benchmark.about] for name, benchmark in BENCHMARKS.items()]
