"""Ten minutes of fuzzing in each of the builds, at once. A seed of the day: what is found can be done again."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Final

import pytest

from tests.corruption.child import MODES

SECONDS: Final = 600


@pytest.mark.soak
def test_ten_minutes_of_fuzzing_find_nothing_in_any_build() -> None:
    seed = datetime.date.today().toordinal()
    runs = []
    for mode in MODES:
        command = [sys.executable, "-m", "tests.soak.fuzz_records", "--mode", mode]
        command += ["--seconds", str(SECONDS), "--seed", str(seed)]
        runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    told = [run.communicate()[0] for run in runs]
    sys.stdout.write("".join(told))
    assert [run.returncode for run in runs] == [0] * len(runs), "\n".join(told)
