"""`python -m benchmarks NAME [--json] [--repeat N] [--quick]` runs a benchmark; without NAME, it lists them.

`broker`, `groups` and `cluster` have parts, of which `--only` runs some.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.measure import DEFAULT_REPEAT
from benchmarks.registry import BENCHMARKS
from benchmarks.report import as_json, print_table
from octavo.errors import InvalidInput
from octavo.records.kernels.compilation.loading import load_all
from tests.kafka.releases import KafkaUnavailable


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Octavo against its peers.")
    parser.add_argument("name", nargs="?", choices=sorted(BENCHMARKS), help="what to measure; none: list them")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--repeat", type=int, default=DEFAULT_REPEAT, help="rounds (default %(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the data, three rounds: only to see that it runs"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="PART", help="run only these parts (of `broker`, `groups` and `cluster`)"
    )
    given = parser.parse_args()
    if given.repeat < 1:
        parser.error("--repeat takes a number from 1 on")
    if given.name is None:
        width = max(map(len, BENCHMARKS))
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:<{width}}  {benchmark.about}")
        return 0
    benchmark = BENCHMARKS[given.name]
    run = benchmark.run
    if given.only:
        if benchmark.only is None:
            parser.error(f"{given.name} has no parts")
        run = benchmark.only(given.only)
    load_all()  # otherwise the first passes would be measured while kernels are being compiled
    repeat = min(given.repeat, 3) if given.quick else given.repeat
    try:
        results, details = run(repeat, given.quick)
    except (InvalidInput, KafkaUnavailable) as missing:
        print(missing, file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(as_json(given.name, results, repeat=repeat, quick=given.quick, details=details)))
    else:
        print_table(given.name, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
