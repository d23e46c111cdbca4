"""Programs that have to obey permissions, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

_PR_CAPBSET_DROP: Final = 24
_CAPABILITY_VERSION: Final = 0x20080522
_CAPABILITIES: Final = {"CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2}  # what lets root pass over permissions


def run_obeying_permissions(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `command`, for which the modes of files count whoever the user is."""
    return subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=_obey_permissions)


def run_as_user(
    user: int, first: str, then: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the Python of `first` as root, and then that of `then` as `user`, in one process.

    `first` imports what `then` needs, because other users cannot read the interpreter of a root who keeps it at home.
    """
    drop = f"import os; os.setgroups([]); os.setgid({user}); os.setuid({user})"
    script = f"{first}\n{drop}\n{then}"
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)


def obey_permissions() -> None:
    """Has the modes of files count for this process, whoever the user is: for one that was forked to try that."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable capabilities, and again for the upper 32
    failed = libc.capget(header, sets)
    dropped = sum(1 << number for number in _CAPABILITIES.values())
    sets[0] &= ~dropped
    sets[1] &= ~dropped  # which is what access(2) asks
    if failed or libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), f"cannot do without {' and '.join(_CAPABILITIES)}")


def _obey_permissions() -> None:
    """Of the program that this process becomes, root or not."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for name, number in _CAPABILITIES.items():
        if libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"cannot do without {name}")
