"""How long tests take: what the last run measured, and the list of slow ones by which the next run is ordered.

`tests/seconds.json` names each test that takes two seconds or more, so that a run on a new machine knows which to begin
with and can say how long it will take. `python -m tests.seconds` makes it again from the last run's
`build/seconds.json`; a name that is missing or out of date costs order, nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
LIST: Final = _HERE / "seconds.json"
LAST_RUN: Final = Path(os.environ.get("OCTAVO_SECONDS") or _HERE.parent / "build" / "seconds.json")
_SLOW_S: Final = 2.0


@cache
def expected() -> dict[str, float]:
    """Test to seconds, for those that take two seconds or more."""
    return dict(json.loads(LIST.read_text())) if LIST.exists() else {}


def folder_of(name: str) -> str:
    """The folder that a test is counted under."""
    parts = name.partition("::")[0].split("/")
    return "/".join(parts[: 3 if "unit" in parts and len(parts) > 3 else 2])


def main() -> int:
    """Takes the last run's times into the list; what that run did not run keeps its line."""
    measured: dict[str, float] = json.loads(LAST_RUN.read_text())
    kept = {name: seconds for name, seconds in expected().items() if name not in measured}
    slow = {name: round(seconds, 1) for name, seconds in measured.items() if seconds >= _SLOW_S}
    LIST.write_text(json.dumps(dict(sorted((kept | slow).items())), indent=0, ensure_ascii=False) + "\n")
    print(f"{len(kept | slow)} tests of two seconds or more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
