"""Search for transactions that each come before the other: `cycles`.

One comes before another if the other has read what it wrote, goes on from the offset that it committed, or was begun
after it by the same producer. The order of their writes in a partition says nothing: Kafka lets writes of transactions
that overlap stand in any order, in one partition so and in another the other way round (which is called G0 elsewhere).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from tests.history.anomalies import Anomaly, Kind
from tests.history.evidence import Evidence, Place
from tests.history.operations import Transaction

Graph = dict[Transaction, list[Transaction]]


def cycles(evidence: Evidence) -> Iterator[Anomaly]:
    """Find the transactions that are in cycles, those that belong together at once."""
    for group in _strongly_connected(_graph(evidence)):
        if len(group) > 1:
            what = " and ".join(map(repr, group))
            yield Anomaly(Kind.CYCLE, group[0].partition, f"each of these comes before the others: {what}")


def _graph(evidence: Evidence) -> Graph:
    """Return which transactions come directly after each that is committed."""
    after: Graph = {each: [] for each in evidence.committed}
    for poll, sources in evidence.polls:
        reader = poll.transaction
        if reader is not None and reader in after:
            for writer in sources:
                if writer is not reader and writer in after:
                    after[writer].append(reader)
    last_of: dict[int, Transaction] = {}
    at: dict[Place, list[tuple[int, int, Transaction]]] = defaultdict(list)
    for number, each in enumerate(after):
        before = last_of.get(each.process)
        if before is not None:
            after[before].append(each)
        last_of[each.process] = each
        for partition, offset in each.offsets.items():
            assert each.group is not None
            at[each.group, partition].append((offset, number, each))
    for commits in at.values():
        commits.sort()
        for (first, _, before), (second, _, each) in itertools.pairwise(commits):
            if first < second:
                after[before].append(each)
    return after


def _strongly_connected(after: Graph) -> Iterator[list[Transaction]]:
    """Return the strongly connected components of a graph, as Tarjan finds them, without recursion."""
    numbers: dict[Transaction, int] = {}
    lowest: dict[Transaction, int] = {}
    open_ones: dict[Transaction, None] = {}  # in the order in which they were met
    for start in after:
        if start in numbers:
            continue
        numbers[start] = lowest[start] = len(numbers)
        open_ones[start] = None
        path = [(start, iter(after[start]))]
        while path:
            node, rest = path[-1]
            for following in rest:
                if following not in numbers:
                    numbers[following] = lowest[following] = len(numbers)
                    open_ones[following] = None
                    path.append((following, iter(after[following])))
                    break
                if following in open_ones:
                    lowest[node] = min(lowest[node], numbers[following])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    component: list[Transaction] = []
                    while not component or component[-1] is not node:
                        component.append(open_ones.popitem()[0])
                    yield component
