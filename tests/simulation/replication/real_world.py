"""A world of real brokers, on simulated disks: `run_real`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from octavo.broker.member import log_effects
from tests.clock import TIME_MS
from tests.simulation.replication.member import PATIENT_MS
from tests.simulation.replication.plots import Plot
from tests.simulation.replication.real_hooks import checked_change
from tests.simulation.replication.real_member import RealMember
from tests.simulation.replication.wire_controller import WireController
from tests.simulation.replication.world import World, run

_MEMORY: Final = Path("/dev/shm")
_CHANGE_MS: Final = 400


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Have all brokers take the time of a world for the time, and check what followers do to their logs."""
    clock = SimpleNamespace(
        monotonic=lambda: world.now_ms / 1000,
        monotonic_ns=lambda: world.now_ms * 1_000_000,
        time=lambda: TIME_MS / 1000,
    )
    modules = ("broker", "member.member", "member.leaders", "apis.fetch", "apis.produce")
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch(f"octavo.broker.{module}.time", clock))
        stack.enter_context(patch("octavo.broker.member.following.change", checked_change(log_effects.change, world)))
        yield


class RealWorld(World):
    """A world of real brokers."""

    plotted = 0.5  # runs take long

    def __init__(self, seed: int, folder: Path, *, trace: bool = False, plot: type[Plot] | None = None) -> None:
        """Prepare everything. `folder`: has the disks of the brokers."""
        self.folder: Final = folder
        super().__init__(seed, trace=trace, plot=plot, make=lambda _, number: RealMember(self, number))
        self.wire: Final = WireController(self)
        self.change_ms: Final = self.random.choice((_CHANGE_MS, PATIENT_MS))  # the time-out of changes of ISRs

    def real(self, number: int) -> RealMember:
        """Return a broker."""
        member = self.members[number]
        assert isinstance(member, RealMember)
        return member


def run_real(seed: int, *, trace: bool = False, plot: type[Plot] | None = None) -> RealWorld:
    """Run a world of real brokers from a seed. Raises `Broken`, and whatever else goes wrong, as `run_seed` does."""
    folder = Path(tempfile.mkdtemp(prefix="octavo-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
    world = RealWorld(seed, folder, trace=trace, plot=plot)
    try:
        # Otherwise what the process has read before decides when kernels are loaded, and appends wait for that.
        with patch.dict(os.environ, OCTAVO_KERNELS="interpreted"), simulated(world):
            run(world, "--real")
    finally:
        for number in world.members:
            world.real(number).storage.restart()
        shutil.rmtree(folder, ignore_errors=True)
    return world
