"""Determine the `server.properties` that Kafka needs for a directory, and how they differ from its last ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from octavo.log.files.meta_properties import write_uuid
from octavo.log.metadata.creation import CONTROLLER_PORT, LISTENER
from octavo.log.metadata.store import MetadataStore

_HOST: Final = "localhost"
_PLAINTEXT: Final = "PLAINTEXT"
_PORT: Final = 9092


class ChangedSetting(NamedTuple):
    """A setting whose needed value differs from the one that Kafka was running with."""

    name: str  # name of the setting
    before: str  # former value, as Kafka registered it with the cluster


def needed_settings(store: MetadataStore, folders: Sequence[Path]) -> dict[str, str]:
    """Return the settings for server.properties, for a single node that clients on this machine can reach."""
    controller = f"{_HOST}:{CONTROLLER_PORT}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(store.node_id),
        "log.dirs": ",".join(str(folder.resolve()) for folder in store.placement.log_dirs or folders),
        "metadata.log.dir": str(store.metadata_folder.resolve()),
        "listeners": f"{_PLAINTEXT}://{_HOST}:{_PORT},{LISTENER}://{controller}",
        "controller.listener.names": LISTENER,
    }
    if store.image.kraft_version:
        settings["controller.quorum.bootstrap.servers"] = controller
    else:
        settings["controller.quorum.voters"] = f"{store.node_id}@{controller}"
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{name}.replication.factor"] = "1"
    for name in ("transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{name}.min.isr"] = "1"
    return settings


def differences(store: MetadataStore) -> Iterator[ChangedSetting]:
    """Yield the settings that differ from those Kafka was running with, as far as these are in the metadata."""
    broker = None if store.node_id is None else store.image.brokers.get(store.node_id)
    if broker is not None:
        yield from _other_folders(store, {*broker.log_dirs})
        served = [f"{each.name}://{each.host}:{each.port}" for each in broker.end_points]
        if served != [f"{_PLAINTEXT}://{_HOST}:{_PORT}"]:
            yield ChangedSetting("listeners", f"clients were told {', '.join(served) or 'none'}")
        if broker.rack is not None:
            yield ChangedSetting("broker.rack", f"it was {broker.rack}")
    controller = None if store.node_id is None else store.image.controllers.get(store.node_id)
    if controller is not None:
        reached = [f"{each.name}://{each.host}:{each.port}" for each in controller.end_points]
        if reached != [f"{LISTENER}://{_HOST}:{CONTROLLER_PORT}"]:
            yield ChangedSetting("controller.listener.names", f"the controller was reached at {', '.join(reached)}")


def _other_folders(store: MetadataStore, before: set[UUID]) -> Iterator[ChangedSetting]:
    if not before:
        return
    ids = {folder: store.identity[folder].directory_id for folder in store.placement.log_dirs}
    for folder, directory in ids.items():
        if directory not in before:
            yield ChangedSetting("log.dirs", f"{folder} was not among them")
    for directory in sorted(before.difference(filter(None, ids.values()))):
        yield ChangedSetting("log.dirs", f"the folder with directory.id={write_uuid(directory)} was among them")
