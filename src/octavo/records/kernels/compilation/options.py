"""The options that everything in a kernel is compiled with.

`_nrt` is off, because no kernel allocates. If it were on, Numba would count references to arrays at every function
call, which takes four times as long as the work itself.
"""

from __future__ import annotations

import os
from typing import Final

CHECKED: Final = os.environ.get("OCTAVO_KERNELS") == "checked"
OPTIONS: Final = {
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "boundscheck": CHECKED,
}
