"""The cells of the matrix, and how to run one: `CELLS`, `Connections`."""

from __future__ import annotations

from types import TracebackType
from typing import Final, NamedTuple, Self

import pytest

from tests.clients.brokers import Brokers
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
    def excuse(self) -> str | None:
        """Why it is not done; None if it is."""
        return self.client.cannot.get(self.feature.name) or self.client.not_yet.get(self.feature.name)

    def __str__(self) -> str:
        return f"{self.client.name}-{self.feature.name}"


CELLS: Final = [Cell(client, feature) for client in CLIENTS.values() for feature in FEATURES.values()]
_OTHER: Final = CLIENTS["confluent-kafka"]  # does what is not under test


class Connections:
    """Clients that are connected to the main broker, each from when it is first asked for to the end."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers: Final = brokers
        self._drivers: Final[dict[str, Driver]] = {}

    def run(self, cell: Cell, *, everything_is_built: bool) -> None:
        """Play the scenario of a cell; a client that cannot has to say so.

        everything_is_built: whether this broker does what Octavo does not do yet
        """
        stage = Stage(
            self._driver(cell.client), self._driver(_OTHER), self._brokers, cell.client.connect, _OTHER.connect
        )
        if cell.is_impossible:
            with pytest.raises(CannotDo):
                cell.feature.scenario(stage)
        elif cell.is_missing and not everything_is_built:
            with pytest.raises((AssertionError, ClientError)):
                cell.feature.scenario(stage)
        else:
            cell.feature.scenario(stage)

    def _driver(self, client: Client) -> Driver:
        if client.name not in self._drivers:
            self._drivers[client.name] = client.connect(self._brokers.main.address)
        return self._drivers[client.name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in self._drivers.values():
            driver.close()
