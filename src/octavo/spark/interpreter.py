"""Choose the Python that Spark's workers run.

Spark looks for data sources, and reads them, in Python processes of its own. They run the Python that PYSPARK_PYTHON
names, or else the first `python3` on the PATH. If this environment is not activated, that is another Python without
Octavo, and Spark reports that there is no data source of that name.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

_CHOSEN: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"  # set by spark-submit: its JVM is already running, with its own environment


def use_this_python(environ: MutableMapping[str, str]) -> None:
    """Make the workers of a Spark session that is started later run this Python, unless one was already chosen.

    Nothing is changed if one of Spark's variables is set or if spark-submit has started this program. Nor is it if
    `python3` already belongs to this environment: on other machines, `python3` may be the right one for executors.
    """
    if not sys.executable or _SUBMITTED in environ or any(environ.get(name) for name in _CHOSEN):
        return
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is None or not _is_this_python(Path(found)):
        environ["PYSPARK_PYTHON"] = sys.executable


def _is_this_python(path: Path) -> bool:
    """Whether the Python at a path has the environment and version of this one.

    Both are compared, because a folder such as /usr/bin may contain several versions.
    """
    here = Path(sys.executable)
    return path.parent == here.parent and path.resolve() == here.resolve()
