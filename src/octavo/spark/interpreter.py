"""The Python that Spark's workers run.

Spark looks for data sources, and reads them, in Python processes of its own. Unless PYSPARK_PYTHON says which Python
these run, they run the `python3` of the PATH. In an environment that is not activated, that is another Python without
Octavo, and Spark says that there is no data source of that name.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

_CHOSEN: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"  # set by spark-submit, whose JVM already runs, in an environment of its own


def use_this_python(environ: MutableMapping[str, str]) -> None:
    """Make the workers of a Spark that is started later run this Python, unless another was chosen already.

    Nothing is changed where one of Spark's variables is set, where spark-submit has started this program, or where
    `python3` already belongs to this environment: on other machines, `python3` may be the right one for executors.
    """
    if not sys.executable or _SUBMITTED in environ or any(environ.get(name) for name in _CHOSEN):
        return
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is None or not _is_this_python(Path(found)):
        environ["PYSPARK_PYTHON"] = sys.executable


def _is_this_python(path: Path) -> bool:
    """Whether this Python belongs to the same environment and version; a folder such as /usr/bin may hold several."""
    here = Path(sys.executable)
    return path.parent == here.parent and path.resolve() == here.resolve()
