"""Which Python Spark's workers run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from octavo.spark.interpreter import use_this_python

HERE = str(Path(sys.executable).parent)


def test_workers_run_this_python_where_the_path_has_another_or_none(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.touch(mode=0o755)
    for path in (str(tmp_path), f"{tmp_path}:{HERE}", str(tmp_path / "nothing")):
        environ = {"PATH": path}
        use_this_python(environ)
        assert environ == {"PATH": path, "PYSPARK_PYTHON": sys.executable}


def test_python3_of_another_version_in_the_same_folder_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python3", "python3.13"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3.13"))
    environ = {"PATH": str(tmp_path)}
    use_this_python(environ)
    assert environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT"])
def test_what_was_decided_stays(name: str) -> None:
    environ = {"PATH": "", name: "1234"}
    use_this_python(environ)
    assert environ == {"PATH": "", name: "1234"}


def test_an_active_environment_stays_what_executors_elsewhere_know() -> None:
    environ = {"PATH": HERE}
    use_this_python(environ)
    assert environ == {"PATH": HERE}
