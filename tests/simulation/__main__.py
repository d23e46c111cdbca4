"""Run the simulation from one seed or from many: `python -m tests.simulation --seed N --trace`."""

from __future__ import annotations

import argparse
import sys
import traceback

from tests.simulation.schedule import run_schedule


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def main() -> int:
    """Run schedules, and say which of them fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--trace", action="store_true", help="show everything that happens")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first seed that fails")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            result = run_schedule(seed, trace=options.trace)
        except Exception as error:
            failed += 1
            _say(*getattr(error, "__notes__", ()))
            if not isinstance(error, AssertionError):
                traceback.print_exception(error, chain=False)
            _say(f"seed {seed}: {error}")
            if options.until_failure:
                break
        else:
            _say(*result.trace)
            if options.count == 1:
                _say(f"seed {seed}: {result.requests} requests, {result.kills} kills, all is well")
    _say(f"{failed} of {options.count} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
