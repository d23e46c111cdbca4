"""Which unit tests a change calls for: `python -m tests.quick` runs ruff and those of the folders that were changed.

What was changed is what git knows to differ from the last commit, new files too; where nothing does, what the last
commit changed. A module's tests are those of the folder of `tests/unit` that has its package's name.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[1]
_UNIT: Final = PurePosixPath("tests/unit")
_SOURCES: Final = PurePosixPath("src/octavo")
_MARKS: Final = "not java and not long and not soak and not exhaustive"


def main() -> int:
    changed = changes()
    targets = targets_of(changed)
    for command in (["-m", "ruff", "check"], ["-m", "ruff", "format", "--check"]):
        if status := subprocess.run([sys.executable, *command], cwd=_ROOT, check=False).returncode:
            return status
    if not targets:
        print("No folder that has unit tests was changed.")
        return 0
    print(f"{len(changed)} changed files; unit tests of {', '.join(targets)}", flush=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "2", "--dist", "worksteal", "-m", _MARKS]
    status = subprocess.run([*pytest, *targets], cwd=_ROOT, check=False).returncode
    return 0 if status == 5 else status  # 5: all tests of the folder are of a kind that is left out


def changes() -> list[str]:
    """Paths that differ from the last commit, or those of that commit."""
    now = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return now or _git("diff", "--name-only", "HEAD~1", "HEAD")


def targets_of(changed: Iterable[str], root: Path = _ROOT) -> list[str]:
    """The folders and files under `tests/unit` that test the changed files; none lies within another."""
    found = {target for path in changed if (target := _tests_of(PurePosixPath(path), root)) is not None}
    return sorted(str(each) for each in found if not any(other in each.parents for other in found))


def _tests_of(path: PurePosixPath, root: Path) -> PurePosixPath | None:
    if path.is_relative_to(_UNIT):
        if path.name.startswith("test_"):
            return path if (root / path).exists() else None
        return path.parent if path.parent != _UNIT else None
    if path.suffix != ".py" or not path.is_relative_to(_SOURCES):
        return None
    package = path.parent.relative_to(_SOURCES)
    own = _UNIT / package / f"test_{path.stem}.py"
    if not package.parts:
        return own if (root / own).exists() else None
    while package.parts and not (root / _UNIT / package).is_dir():
        package = package.parent
    return _UNIT / package if package.parts else None


def _git(*command: str) -> list[str]:
    answer = subprocess.run(["git", *command], cwd=_ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
