"""Put the same sequences of requests to the model and to a controller of Apache Kafka: `Comparison`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Several
from typing import Any, Final

from octavo.cluster.messages import BrokerHeartbeatRequest
from tests.simulation.replication.compared import Compared
from tests.simulation.replication.sequences import FailOver, Sequence, Silence, Step
from tests.simulation.replication.stock import StockController

_KEEP_ALIVE_S: Final = 0.4


class TooSlow(Exception):
    """A broker that should have been heard was silent for nearly a session: nothing can be said."""


def _is_leaving(each: Compared, step: Step) -> bool:
    """Whether what is answered depends on brokers of other sequences."""
    if not isinstance(step, BrokerHeartbeatRequest):
        return False
    return step.want_shut_down or each.model.is_leaving(step.broker_id)


class Comparison:
    """All sequences go on at the same time, one step each in turn, because sessions take real time to end."""

    def __init__(
        self,
        stock: StockController,
        session_s: float,
        sequences: Mapping[int, tuple[str, Sequence]],
        fail_over: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin with all sequences. `fail_over`: has another controller take over, and connects to it."""
        self._fail_over_real: Final = fail_over
        self.steps = 0
        self._stock: Final = stock
        self._session_s: Final = session_s
        self._all: Final = [
            Compared(name, number, connection, each)
            for connection, (number, (name, each)) in enumerate(sequences.items())
        ]
        self._heard_s = time.monotonic()

    def run(self) -> None:
        """Run all sequences to their ends. Raises `Different` or `TooSlow`."""
        going, waiting = list(self._all), list[tuple[Compared, Silence]]()
        failing = list[Compared]()
        while going or waiting or failing:
            steps = [(each, each.next_step()) for each in going]
            waiting += [(each, step) for each, step in steps if isinstance(step, Silence)]
            failing += [each for each, step in steps if isinstance(step, FailOver)]
            asked = [
                (each, step) for each, step in steps if step is not None and not isinstance(step, Silence | FailOver)
            ]
            self.steps += len(asked)
            later = [(each, step) for each, step in asked if _is_leaving(each, step)]
            self._ask([(each, step, each.answer(step)) for each, step in asked if (each, step) not in later])
            self._tell_offsets()
            self._ask([(each, step, each.answer(step)) for each, step in later])
            self._tell_offsets()
            going = [each for each, _ in asked]
            if not going and waiting:
                self._be_silent(waiting)
                going, waiting = [each for each, _ in waiting], []
            elif not going and failing:
                self._fail_over()
                going, failing = failing, []
            elif time.monotonic() - self._heard_s > _KEEP_ALIVE_S:
                self._keep_alive({})

    def _fail_over(self) -> None:
        self._fail_over_real()
        self._heard_s = time.monotonic()
        for each in self._all:
            each.fail_over()
        self._compare_metadata()
        self._tell_offsets()

    def _ask(self, asked: Several[tuple[Compared, Step, Any]]) -> None:
        answers = self._stock.ask((each.connection, each.question(step)) for each, step, _ in asked)
        self._check_time()
        for (each, step, model), real in zip(asked, answers, strict=True):
            each.compare_answers(step, model, real)
        self._compare_metadata()

    def _tell_offsets(self) -> None:
        """Have everybody tell an offset: otherwise brokers of other sequences may not shut down."""
        beats = [(each, each.ask.heartbeat(broker)) for each in self._all for broker in each.model.unheard]
        self._ask([(each, step, each.answer(step)) for each, step in beats])

    def _keep_alive(self, silent: dict[int, frozenset[int]]) -> None:
        begun_s = time.monotonic()
        beats = [
            (each, step, answer)
            for each in self._all
            for step, answer in each.keep_alive(silent.get(id(each), frozenset()))
        ]
        self._ask(beats)
        self._heard_s = begun_s

    def _be_silent(self, waiting: Several[tuple[Compared, Silence]]) -> None:
        self._keep_alive({})  # who waits to shut down may go now, and after that heartbeats change nothing
        silent = {id(each): silence.brokers & each.model.sessions.keys() for each, silence in waiting}
        expected = {each.real_id(broker) for each, _ in waiting for broker in silent[id(each)]}
        self._stock.fenced.clear()
        while not expected <= set(self._stock.fenced):
            self._beat_unheard(silent)
        for each, _ in waiting:
            ids = {each.real_id(broker) for broker in silent[id(each)]}
            each.expire(real_id for real_id in self._stock.fenced if real_id in ids)
        self._compare_metadata()

    def _beat_unheard(self, silent: dict[int, frozenset[int]]) -> None:
        begun_s = time.monotonic()
        questions = [
            (each.connection, each.question(step))
            for each in self._all
            for step, _ in each.keep_alive(silent.get(id(each), frozenset()))
        ]
        self._stock.ask(questions)
        self._check_time()
        self._heard_s = begun_s
        self._stock.catch_up()
        time.sleep(_KEEP_ALIVE_S / 4)

    def _compare_metadata(self) -> None:
        self._stock.catch_up()
        self._check_time()
        topics = self._stock.image.topics()
        for each in self._all:
            each.compare_metadata(self._stock, topics)

    def _check_time(self) -> None:
        if time.monotonic() - self._heard_s > self._session_s * 0.8:
            raise TooSlow
