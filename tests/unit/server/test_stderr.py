"""What a broker says on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.server.stderr import to_stderr


def test_a_broker_goes_on_if_what_it_says_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log may be on the disk that is full."""
    full = Path("/dev/full").open("w")  # noqa: SIM115 (closing it is the test)
    monkeypatch.setattr("sys.stderr", full)
    to_stderr("the disk is full")
    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_what_a_broker_says_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    to_stderr("stopping")
    assert capsys.readouterr().err == "octavo: stopping\n"
