"""Fuzzing in each of the builds. A failure names the case alone, too."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

import pytest

from tests.corruption.child import MODES
from tests.soak.plugin import Soak

_STARTING_S: Final = 10.0


@pytest.mark.soak(20)
@pytest.mark.parametrize("mode", MODES)
def test_fuzzing_finds_nothing_in_any_build(mode: str, soak: Soak) -> None:
    seconds = max(1.0, soak.whole() - _STARTING_S)
    command = [sys.executable, "-m", "tests.soak.fuzz_records", "--mode", mode]
    command += ["--seconds", str(seconds), "--seed", str(soak.seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0
    told = re.search(r": ([0-9,]+) cases of seed", done.stdout)
    assert told is not None
    soak.cases = int(told[1].replace(",", ""))
