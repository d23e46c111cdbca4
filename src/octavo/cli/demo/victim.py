"""A process that appends until somebody kills it: `python -m octavo.cli.demo.victim DIR`.

For every append that has returned there is a line on standard output: topic, partition, and the last offset.
"""

from __future__ import annotations

import itertools
import os
import sys

from octavo.cli.demo.keeping import BATCHES, order_batch
from octavo.log import DataDirectory


def main() -> None:
    """Never comes to an end by itself; without a reader it does."""
    data = DataDirectory.open(sys.argv[1])
    for number in itertools.count(BATCHES):
        batch = order_batch(number)
        for log in data.logs:
            done = log.append(batch)
            topic, partition = log.partition
            os.write(1, f"{topic} {partition} {done.last_offset}\n".encode())


if __name__ == "__main__":
    main()
