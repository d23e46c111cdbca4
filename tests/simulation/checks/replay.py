"""Loading the log leads to the state that the living coordinators have: `check_replay`."""

from __future__ import annotations

from typing import Any

from octavo.coordinator.groups.consumer.group import ConsumerGroup
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.coordinator.groups.requests import FetchRequest
from octavo.coordinator.shard import Shard
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.log.coordinator.coordinator import group_hosts, transaction_hosts
from octavo.log.coordinator.host import Host, apply_batch
from octavo.log.coordinator.internal_topic import replay
from octavo.log.directory.data_directory import DataDirectory
from tests.simulation.checks.check import demand


def check_replay(directory: DataDirectory) -> None:
    """Compare each coordinator with one that is loaded from its log now."""
    for host in group_hosts(directory).running:
        _compare(host, _groups)
    for transaction_host in transaction_hosts(directory).running:
        _compare(transaction_host, _transactions)


def _compare(host: Host[Any], state: Any) -> None:
    living = host.ask(state)
    fresh: Shard = host._make()
    replay(host.log, 0, lambda batch: apply_batch(fresh, batch, host._read_key))
    found = state(fresh)
    for key in {**living, **found}:
        demand(
            living.get(key) == found.get(key),
            f"{key} is {living.get(key)}, and loaded from the log it is {found.get(key)}",
        )


def _groups(shard: GroupShard) -> dict[str, object]:
    state: dict[str, object] = {
        f"what {group} has committed": shard.offsets.fetch(FetchRequest(group, None))
        for group in shard.offsets.groups()
    }
    for name, group in shard.groups.items():
        if isinstance(group, ConsumerGroup):
            state[f"group {name}"] = (
                group.group_epoch,
                group.assignment_epoch,
                dict(group.members),
                dict(group.targets),
            )
    return state


def _transactions(shard: TransactionShard) -> dict[str, object]:
    return {f"transactional id {name}": value for name, value in shard.transactions.items()}
