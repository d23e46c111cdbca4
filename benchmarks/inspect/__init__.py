"""Compare `octavo verify` and `octavo dump` with the minimum for the same work, and with Kafka's own tool."""

from __future__ import annotations

from benchmarks.inspect import dump, verify
from benchmarks.measure import Result


def run(*, repeat: int, quick: bool = False) -> list[Result]:
    """Run all parts of this benchmark; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    return [*verify.verify(repeat=repeat, scale=scale), *dump.dump(repeat=repeat, scale=scale)]
