"""What a soak prints when it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.soak.kinds import Kind
from tests.soak.process import KindProcess


def summary(
    run: int, seconds: float, took: float, done: Sequence[KindProcess], waiting: Sequence[Kind], folder: Path
) -> Iterator[str]:
    """Say what ran, for how long, how many cases, and the command that repeats each failure."""
    yield ""
    yield f"{'kind':18}{'share':>8}{'took':>8}{'tests':>8}{'waiting':>9}{'cases':>12}  result"
    for each in done:
        tests = each.tests
        failed = sum(test["outcome"] == "failed" for test in tests)
        skipped = sum(test["outcome"] == "skipped" for test in tests)
        told = [f"{failed} failed"] * bool(failed) + [f"{skipped} skipped"] * bool(skipped)
        result = ", ".join(told) or ("failed" if each.problems else "well")
        yield (
            f"{each.kind.name:18}{minutes(each.share):>8}{minutes(each.took):>8}"
            f"{len(tests):8}{each.left:9}{each.cases:12,}  {result}"
        )
    for kind in waiting:
        yield f"{kind.name:18}{'-':>8}{'-':>8}{'-':>8}{'-':>9}{'-':>12}  next time"
    yield ""
    problems = [(each, problem) for each in done for problem in each.problems]
    for each, problem in problems:
        yield f"{each.kind.name}: {problem}"
        yield f"    {each.log}"
    count, cases = sum(len(each.tests) for each in done), sum(each.cases for each in done)
    verdict = f"{len(problems)} failed" if problems else "all is well"
    yield (
        f"Soak {run}: {verdict} in {count:,} tests with {cases:,} cases of {len(done)} kinds;"
        f" {minutes(took)} of {minutes(seconds)} minutes"
    )


def minutes(seconds: float) -> str:
    """As minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
