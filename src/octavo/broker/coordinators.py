"""The coordinators that this broker runs: `Coordinators`.

A request for a group goes to the coordinator of its partition of `__consumer_offsets`, and one for a transactional id
to that of its partition of `__transaction_state`. The answer is there at once, or when something else has happened
(`Parked`): a member that joins waits for the others. What would make the thread of the handlers pause is undone, and
another thread does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from octavo.broker.answers import Answer, Later, Parked, Parts, Wait
from octavo.broker.at_once import at_once_or_later
from octavo.broker.config import BrokerConfig
from octavo.broker.passing_time import PassingTime, trouble
from octavo.broker.repetition import refuse_repetition
from octavo.broker.troubles import Troubles, storage_error
from octavo.coordinator.groups.requests import CommitAnswer, CommitRequest
from octavo.coordinator.shard import Producer, Shard, Ticket
from octavo.errors import ErrorCode, OctavoError, TopicExists
from octavo.log.append.readiness import ALLOWANCE, MustWait, Unfinished
from octavo.log.coordinator.coordinator import group_hosts, transaction_hosts
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard
    from octavo.coordinator.transactions.transaction_shard import TransactionShard
    from octavo.log.coordinator.host import Host
    from octavo.log.coordinator.hosts import Hosts

A = TypeVar("A")
S = TypeVar("S", bound=Shard)

_MANY: Final = 100  # groups or transactional ids, which take some milliseconds

# What clients are told if the records of a coordinator cannot be written.
_TOLD: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Coordinators:
    """The coordinators of groups and transactions. Any thread may use it."""

    def __init__(
        self, directory: DataDirectory, config: BrokerConfig, troubles: Troubles, wake: Callable[[Wait], object]
    ) -> None:
        """`wake`: has an answer that waits be sent soon."""
        self._directory: Final = directory
        self._troubles: Final = troubles
        self._wake: Final = wake
        self._groups: Final = group_hosts(directory)
        self.group_config = config.groups
        self._groups.configure(self.group_config)
        self.transactions: Final = transaction_hosts(directory)
        self.transactions.configure(config.transactions)
        self.time: Final = PassingTime(directory, self._groups, self.transactions, troubles)

    # ---------------------------------------------------------------------------------------------------- coordinators

    def adopt(self, config: BrokerConfig) -> None:
        """Have settings that were changed while the broker runs. Any thread may call this."""
        self.group_config = config.groups
        self._groups.adopt(self.group_config)

    def load(self) -> None:
        """Load what there is, so that time passes for it, and end what was decided. It may take long."""
        hosts: list[Host[Any]] = [*self._groups.hosts, *self.transactions.hosts]
        for host in hosts:
            try:
                host.load()
            except (OctavoError, OSError) as error:
                self._troubles.failed(trouble(host, error), error)

    def is_topic_missing(self, name: str) -> bool:
        """Return whether an internal topic has to be created before its coordinator can be found."""
        return name not in self._directory.topics

    def create_topic(self, name: str) -> ErrorCode:
        """Create an internal topic. It may take long."""
        from octavo.log.coordinator.internal_topic import InternalTopic

        try:
            if name == CONSUMER_OFFSETS:
                self._groups.partition_for("")
            else:
                InternalTopic(self._directory, name).partition_for("")
        except TopicExists:  # somebody else was faster
            pass
        except (OctavoError, OSError) as error:
            self._troubles.failed(f"the topic {name} could not be created", error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    # --------------------------------------------------------------------------------------------------------- requests

    def run(
        self,
        group_id: str,
        action: Callable[[GroupShard, Ticket], object],
        write: Callable[[Any], Parts],
        refuse: Callable[[ErrorCode], object],
        failed: Callable[[GroupShard, ErrorCode], object] | None = None,
    ) -> Answer:
        """Have something happen to a group.

        action: is given a ticket, by which the coordinator answers, at once or later
        write: makes the parts of that answer
        refuse: makes such an answer of an error, if there is no coordinator or its records cannot be written
        failed: happens to the group in the latter case
        """
        return self._start(lambda: self._groups.find_host(group_id), action, write, refuse, failed)

    def run_transaction(
        self,
        transactional_id: str,
        action: Callable[[TransactionShard, Ticket], object],
        write: Callable[[Any], Parts],
        refuse: Callable[[ErrorCode], object],
    ) -> Answer:
        """Have something happen to a transactional id. The arguments are as those of `run`."""
        if not transactional_id:
            return write(refuse(ErrorCode.INVALID_REQUEST))
        return self._start(lambda: self.transactions.find_host(transactional_id), action, write, refuse)

    def _start(
        self,
        find: Callable[[], Host[S] | None],
        action: Callable[[S, Ticket], object],
        write: Callable[[Any], Parts],
        refuse: Callable[[ErrorCode], object],
        failed: Callable[[S, ErrorCode], object] | None = None,
    ) -> Answer:
        parked = Parked(self._wake, write)
        unfinished: list[Callable[[], None]] = []

        def work() -> Parts | Parked:
            host = find()
            if host is None:
                return write(refuse(ErrorCode.NOT_COORDINATOR))
            if unfinished:
                code = self._try(host, unfinished.pop())
            else:
                code = self._try(host, partial(host.run, lambda shard: action(shard, parked.give), finishes=True))
                if code is not ErrorCode.NONE and failed is not None:
                    self._run(host, lambda shard: failed(shard, code))
            if code is not ErrorCode.NONE:
                return write(refuse(code))
            return write(parked.given) if parked.is_given else parked

        def begin() -> Parts | Parked:
            try:
                return work()
            except Unfinished as rest:
                unfinished.append(rest.finish)
                raise

        return at_once_or_later(begin)

    def run_each(
        self,
        actions: Sequence[tuple[str, Callable[[GroupShard], A]]],
        refuse: Callable[[str, ErrorCode], A],
        write: Callable[[list[A]], Parts],
    ) -> Parts | Later:
        """Have something happen to several groups, by their ids, one after the other; else as `run`.

        Raises `MalformedRequest`.
        """
        refuse_repetition([group_id for group_id, _ in actions])

        def one(group_id: str, action: Callable[[GroupShard], A]) -> A:
            answers: list[A] = []
            code = ErrorCode.NOT_COORDINATOR
            host = self._groups.find_host(group_id)
            if host is not None:
                code = self._run(host, lambda shard: answers.append(action(shard)))
            return answers[0] if code is ErrorCode.NONE else refuse(group_id, code)

        return _each(one, actions, write)

    def ask_all(self, question: Callable[[GroupShard], list[A]], write: Callable[[list[A]], Parts]) -> Parts | Later:
        """Ask the coordinators of all groups. Raises `OctavoError` and `OSError`."""
        return _ask(self._groups, question, write)

    def run_transactions(
        self,
        actions: Sequence[tuple[str, Callable[[TransactionShard], A]]],
        refuse: Callable[[int, ErrorCode], A],
        write: Callable[[list[A]], Parts],
    ) -> Parts | Later:
        """Have something happen to several transactional ids, one after the other.

        refuse: makes an answer of an error, for the action with that number

        Raises `MalformedRequest`.
        """
        refuse_repetition([key for key, _ in actions])

        def one(number: int, key: str, action: Callable[[TransactionShard], A]) -> A:
            answers: list[A] = []
            code = ErrorCode.NOT_COORDINATOR if key else ErrorCode.INVALID_REQUEST
            host = self.transactions.find_host(key) if key else None
            if host is not None:
                code = self._run(host, lambda shard: answers.append(action(shard)))
            return answers[0] if code is ErrorCode.NONE else refuse(number, code)

        return _each(one, [(number, *each) for number, each in enumerate(actions)], write)

    def ask_all_transactions(
        self, question: Callable[[TransactionShard], list[A]], write: Callable[[list[A]], Parts]
    ) -> Parts | Later:
        """Ask the coordinators of all transactional ids. Raises `OctavoError` and `OSError`."""
        return _ask(self.transactions, question, write)

    def find_transaction_host(self, transactional_id: str) -> Host[TransactionShard] | None:
        """Return the coordinator of a transactional id, if it is here."""
        return self.transactions.find_host(transactional_id)

    def group_error(self, group_id: str) -> ErrorCode:
        """Return why nothing can be done for a group whose coordinator is not here."""
        return ErrorCode.NOT_COORDINATOR

    def find_group_partition(self, group_id: str) -> TopicPartition | None:
        """Return the partition of `__consumer_offsets` for a group; None if the topic does not exist yet."""
        return None if self.is_topic_missing(CONSUMER_OFFSETS) else self._groups.partition_for(group_id)

    def commit(self, request: CommitRequest) -> CommitAnswer:
        """Commit offsets of a group."""
        host = self._groups.find_host(request.group_id)
        if host is None:
            return CommitAnswer(ErrorCode.NOT_COORDINATOR)
        answers: list[CommitAnswer] = []
        code = self._run(host, lambda shard: answers.append(shard.offsets.commit(request)))
        return answers[0] if code is ErrorCode.NONE else CommitAnswer(code)

    def note_marker(self, partition: TopicPartition, producer: Producer, *, commit: bool) -> None:
        """Tell the coordinator of groups of a marker that was written to its partition."""
        self._groups.note_marker(partition, producer, commit=commit)

    def _run(self, host: Host[S], action: Callable[[S], object]) -> ErrorCode:
        return self._try(host, lambda: host.run(action))

    def _try(self, host: Host[Any], action: Callable[[], None]) -> ErrorCode:
        try:
            end_offset = host.log.end_offset
            action()
        except (OctavoError, OSError) as error:
            self._troubles.failed(trouble(host, error), error)
            code = storage_error(error)
            return _TOLD.get(code, code)
        if self._troubles.present and host.log.end_offset > end_offset:  # not everything writes
            self._troubles.is_over(trouble(host), f"the state in {host.log.partition} can be written again")
        return ErrorCode.NONE


def _each(
    one: Callable[..., A], several: Sequence[tuple[Any, ...]], write: Callable[[list[A]], Parts]
) -> Parts | Later:
    """Do several things one after the other. What was done before another thread takes over is not done again."""
    answers: list[A] = []

    def work() -> Parts:
        _leave_many(len(several))
        while len(answers) < len(several):
            answers.append(one(*several[len(answers)]))
        return write(answers)

    return at_once_or_later(work)


def _ask(hosts: Hosts[S], question: Callable[[S], list[A]], write: Callable[[list[A]], Parts]) -> Parts | Later:
    def work() -> Parts:
        answers = []
        for host in hosts.hosts:
            _leave_many(host.ask(lambda shard: shard.size))
            answers += host.ask(question)
        return write(answers)

    return at_once_or_later(work)


def _leave_many(count: int) -> None:
    """Raise `MustWait` if the thread must not pause, and has to look at many groups or transactional ids."""
    if count > _MANY and ALLOWANCE.left is not None:
        raise MustWait
