"""The cells of the matrix, and how to run one: `CELLS`, `Connections`."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Final, NamedTuple, Self

import pytest

from tests.clients.brokers import Broker, Brokers
from tests.clients.clients import CLIENTS, Client
from tests.clients.driver import CannotDo, ClientError, Driver
from tests.clients.features import FEATURES, Feature, Stage, load

load()


class Cell(NamedTuple):
    """A client and a feature."""

    client: Client
    feature: Feature

    @property
    def is_impossible(self) -> bool:
        """Whether the client has no way to do it."""
        return self.feature.name in self.client.cannot

    @property
    def is_missing(self) -> bool:
        """Whether Octavo does not let the client do it yet."""
        return self.feature.name in self.client.not_yet

    @property
    def fails_on_kafka(self) -> bool:
        """Whether it may fail with Apache Kafka."""
        return self.feature.name in self.client.not_on_kafka

    @property
    def excuse(self) -> str | None:
        """Why it is not done; None if it is."""
        return self.client.cannot.get(self.feature.name) or self.client.not_yet.get(self.feature.name)

    def __str__(self) -> str:
        return f"{self.client.name}-{self.feature.name}"


CELLS: Final = [Cell(client, feature) for client in CLIENTS.values() for feature in FEATURES.values()]
_OTHER: Final = CLIENTS["confluent-kafka"]  # does what is not under test


class Connections:
    """Clients that are connected to brokers, each from when it is first asked for to the end."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers: Final = brokers
        self._drivers: Final[dict[tuple[str, str], Driver]] = {}  # by client and address

    def run(self, cell: Cell, *, everything_is_built: bool) -> None:
        """Play the scenario of a cell; a client that cannot has to say so.

        everything_is_built: whether this broker does what Octavo does not do yet
        """
        stage = self.stage(cell.client)
        try:
            if cell.is_impossible:
                with pytest.raises(CannotDo):
                    cell.feature.scenario(stage)
            elif cell.is_missing and not everything_is_built:
                with pytest.raises((AssertionError, ClientError)):
                    cell.feature.scenario(stage)
            else:
                cell.feature.scenario(stage)
        except BaseException:
            self._forget(cell.client)  # it may be in the middle of something
            raise

    def stage(self, client: Client) -> Stage:
        """Return a new stage for a client, on the broker for nearly everything."""
        return self._stage(client, self._brokers.main, self._brokers.main.address)

    def _stage(self, client: Client, broker: Broker, address: str) -> Stage:
        driver, other = self._driver(client, address), self._driver(_OTHER, address)
        strict, apart = partial(self._strict_stage, client), partial(client.connect_apart, address)
        return Stage(driver, other, broker, self._brokers.proxy, apart, strict)

    def _strict_stage(self, client: Client) -> Stage:
        return self._stage(client, self._brokers.strict, self._brokers.proxy.address)

    def _driver(self, client: Client, address: str) -> Driver:
        if (client.name, address) not in self._drivers:
            self._drivers[client.name, address] = client.connect(address)
        return self._drivers[client.name, address]

    def _forget(self, client: Client) -> None:
        for name, address in list(self._drivers):
            if name == client.name:
                self._drivers.pop((name, address)).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in self._drivers.values():
            driver.close()
