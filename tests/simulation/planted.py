"""Bugs that are planted into copies of the package, to see whether the simulation finds them: `PLANTED`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import octavo

_PACKAGE: Final = Path(octavo.__file__).parent
_ROOT: Final = Path(__file__).parents[2]
_CLASSIC: Final = "coordinator/groups/classic"
_TRANSACTIONS: Final = "coordinator/transactions/transaction_shard.py"
_HOST: Final = "log/coordinator/host.py"


class Planted(NamedTuple):
    """A bug: in a file of the package, one text stands in the place of another."""

    name: str
    file: str
    right: str
    wrong: str


PLANTED: Final = (
    Planted(
        "a commit of an old generation is accepted",
        f"{_CLASSIC}/group.py",
        "if generation_id != self.generation_id:",
        "if generation_id > self.generation_id:",
    ),
    Planted(
        "the epoch before the present one is not fenced",
        _TRANSACTIONS,
        "if value.producer_epoch != producer.epoch:",
        "if value.producer_epoch not in (producer.epoch, producer.epoch + 1):",
    ),
    Planted(
        "a generation has two leaders",
        f"{_CLASSIC}/rounds.py",
        "        group.protocol_name,\n        group.leader_id,\n        False,\n",
        "        group.protocol_name,\n        max(member_id, group.leader_id or ''),\n        False,\n",
    ),
    Planted(
        "a member gets the assignment of the generation before",
        f"{_CLASSIC}/syncs.py",
        'assignment = request.assignments.get(each.member_id, b"")',
        'assignment = each.assignment or request.assignments.get(each.member_id, b"")',
    ),
    Planted(
        "a parked join is forgotten when the member asks again",
        f"{_CLASSIC}/joins.py",
        "if member.join is not None:  # it asks again, by another connection",
        "if False:",
    ),
    Planted(
        "a partition is given to a member before another has given it back",
        "coordinator/groups/consumer/reconciliation.py",
        "if aim.is_held(topic, partition) and partition",
        "if False and partition",
    ),
    Planted(
        "a failed append is not rolled back",
        _HOST,
        "                shard.undo(outcome.mark)\n",
        "",
    ),
    Planted(
        "the answer does not depend on the append",
        _HOST,
        "                shard.undo(outcome.mark)\n                self._keep(shard)\n                raise\n",
        "                pass\n",
    ),
    Planted(
        "a partition of a transaction gets no marker",
        "log/coordinator/markers.py",
        "for partition in wanted.partitions:",
        "for partition in wanted.partitions[:2]:",
    ),
    Planted(
        "a decided transaction is not completed after a restart",
        _TRANSACTIONS,
        "        for transactional_id in list(self.transactions):\n            self.repeat_markers(transactional_id)\n",
        "",
    ),
    Planted(
        "the producer of a transaction that timed out is not fenced",
        _TRANSACTIONS,
        "self._prepare(transactional_id, value, PREPARE_ABORT, version)",
        "self._prepare(transactional_id, value, PREPARE_ABORT, 0)",
    ),
    Planted(
        "offsets that were committed in transactions are lost at a restart",
        _HOST,
        "if isinstance(control, EndTransactionMarker) and producer is not None:",
        "if False:",
    ),
    Planted(
        "a member that is out commits in a transaction",
        "coordinator/groups/offsets.py",
        "        if error is not ErrorCode.NONE:\n            is_stale",
        "        if error is not ErrorCode.NONE and request.producer is None:\n            is_stale",
    ),
    Planted(
        "offsets of an aborted transaction count",
        "coordinator/groups/offsets.py",
        "if commit and (known is None",
        "if (known is None",
    ),
    Planted(
        "offsets of a topic that is deleted stay",
        "coordinator/groups/offsets.py",
        "if partition[0] == topic and stored.is_of(topic_id)",
        "if False",
    ),
    Planted(
        "offsets expire though a member subscribes to the topic",
        "coordinator/groups/offsets.py",
        "if partition not in pending and not group.subscribes_to(partition[0]) and",
        "if partition not in pending and",
    ),
)


def plant(bug: Planted, folder: Path) -> None:
    """Make a copy of the package with a bug. All other files are links. Fails if the right text is not there once."""
    for path in sorted(_PACKAGE.rglob("*")):
        if path.name == "__pycache__":
            continue
        copy = folder / "octavo" / path.relative_to(_PACKAGE)
        if path.is_dir():
            copy.mkdir(parents=True)
            if (path / "__pycache__").is_dir():
                (copy / "__pycache__").symlink_to(path / "__pycache__")
        elif path.parent.name != "__pycache__":
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(path)
    target = folder / "octavo" / bug.file
    text = target.read_text()
    assert text.count(bug.right) == 1, f"{bug.name}: {bug.file} has {bug.right!r} {text.count(bug.right)} times"
    target.unlink()
    target.write_text(text.replace(bug.right, bug.wrong))


def find(folder: Path, count: int) -> str | None:
    """Run schedules with a copy of the package until one fails. Return what it says; None if none does."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{_ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",  # the folders for it are links
    }
    command = [sys.executable, "-m", "tests.simulation", "--count", str(count), "--until-failure"]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return run.stdout if run.returncode else None
