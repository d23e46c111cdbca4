"""Append until the process is killed: `python -m octavo.cli.demo.victim DIR`.

After every append it prints a line: topic, partition and last offset.
"""

from __future__ import annotations

import itertools
import os
import sys

from octavo.cli.demo.keeping import BATCHES, order_batch
from octavo.log import DataDirectory


def main() -> None:
    """Append forever. If the demo itself ends, printing fails, and that ends this process."""
    data = DataDirectory.open(sys.argv[1])
    for number in itertools.count(BATCHES):
        batch = order_batch(number)
        for log in data.logs:
            done = log.append(batch)
            topic, partition = log.partition
            os.write(1, f"{topic} {partition} {done.last_offset}\n".encode())


if __name__ == "__main__":
    main()
