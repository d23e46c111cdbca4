"""Run the simulation of replicas: `python -m tests.simulation.replication --seed N --trace`."""

from __future__ import annotations

import argparse
import sys
import traceback

import pytest

from tests.simulation.replication.planted import PLANTED
from tests.simulation.replication.plots import PLOTS
from tests.simulation.replication.real_world import run_real
from tests.simulation.replication.world import run_seed

_PLOTS = {plot.__name__: plot for plot in PLOTS}


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def main() -> int:
    """Run schedules, and say which of them fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replication", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--trace", action="store_true", help="show everything that happens")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--real", action="store_true", help="with real brokers, on simulated disks")
    parser.add_argument("--plot", choices=_PLOTS, help="with faults in this order")
    parser.add_argument("--planted", choices=PLANTED, help="with this mistake in the code")
    options = parser.parse_args()
    failed = 0
    with pytest.MonkeyPatch.context() as patch:
        if options.planted:
            PLANTED[options.planted](patch)
        for seed in range(options.seed, options.seed + options.count):
            try:
                world = (run_real if options.real else run_seed)(
                    seed, trace=options.trace, plot=_PLOTS.get(options.plot)
                )
            except Exception as error:
                failed += 1
                _say(*getattr(error, "__notes__", ()))
                if not isinstance(error, AssertionError):
                    traceback.print_exception(error, chain=False)
                _say(f"seed {seed}: {error}")
                if options.until_failure:
                    break
            else:
                _say(*world.trace)
    _say(f"{failed} of {options.count} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
