"""Programs for measurements in a fresh process. Each prints one JSON object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[2]

# A batch of one record, key "key" and value "value", as Apache Kafka writes it.
BATCH = bytes.fromhex(
    "000000000000000000000040ffffffff02db5e9cdd0000000000000000018bcfe568000000018bcf"
    "e56800ffffffffffffffffffffffffffff000000011c000000066b65790a76616c756500"
)


def run_fresh(program: str, *arguments: str, **environment: str) -> Any:
    """Run a program of this package in a fresh process; return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.fresh.{program}", *arguments],
        cwd=_ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
