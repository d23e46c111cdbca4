"""What a broker that is to be a member of a cluster refuses before it asks anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import octavo
from octavo.cli.exits import COULD_NOT_RUN
from octavo.errors import InvalidConfig


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "log.dirs": str(tmp_path / "data"),
    }


def test_a_member_has_a_directory_that_stays(config: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match=r"log\.dirs: a member of a cluster needs one"):
        octavo.serve(config=config | {"log.dirs": ""})


@pytest.mark.parametrize(
    "changes",
    [
        {"controller.listener.names": "SSL"},
        {"listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"},
        {
            "controller.listener.names": "secret,CONTROLLER",
            "listener.security.protocol.map": "SECRET:SSL,PLAINTEXT:PLAINTEXT",
        },
    ],
)
def test_controllers_are_not_reached_by_another_protocol(config: dict[str, str], changes: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match="controllers are reached by PLAINTEXT, not SSL"):
        octavo.serve(config=config | changes)
    assert not Path(config["log.dirs"]).exists()


def test_a_file_of_settings_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"node.id=\\u12")
    command = [sys.executable, "-m", "octavo.cli", "serve", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr.startswith(f"octavo: {path} is no file of settings: ")
