"""The network between the nodes of a cluster: `Network`, which can be cut and delayed in each direction.

As root on Linux every node gets a network namespace with a veth pair to one bridge (`Namespaces`). Packets are lost by
sending them to a link address that nobody has, and delayed by sending them to one behind which a thread of this process
waits before it sends them on. This needs neither nftables nor netem. Elsewhere a proxy on loopback does it (`proxy`).
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import shutil
import struct
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple, Protocol

from tests.kafka.broker import die_with_parent

CLIENTS: Final = 0  # the tests themselves, as a place in the network
PORT: Final = 9092
_TOOLS: Final = ("ip", "unshare", "nsenter", "sleep")
_TUN: Final = Path("/dev/net/tun")
_TUNSETIFF: Final = 0x400454CA
_IFF_TAP: Final = 0x0002
_IFF_NO_PI: Final = 0x1000
_NOBODY: Final = "02:0c:7a:00:ff:01"
_DELAYED: Final = bytes.fromhex("020c7a00ff02")
_FRAME: Final = 1 << 16
_NAME: Final = "octavo{}"  # of a bridge


class Place(NamedTuple):
    """Where a node is: what it binds, what others are told, and what its command begins with."""

    listen: str
    address: str
    prefix: tuple[str, ...] = ()


class Network(Protocol):
    """What tests do to the network. Nodes are known by their ids, and the clients by `CLIENTS`."""

    @property
    def description(self) -> str:
        """What it is made of, for the report of a run."""

    def place(self, node: int) -> Place:
        """Return where the node is, which is always the same."""

    def cut(self, source: int, target: int) -> None:
        """Lose what one node sends to another, answers included."""

    def delay(self, source: int, target: int, delay_ms: int) -> None:
        """Deliver what one node sends to another so much later."""

    def heal(self) -> None:
        """End all cuts and delays."""

    def close(self) -> None:
        """Take the network away."""


def is_possible() -> bool:
    """Return whether this process may make namespaces, and has the tools."""
    if os.name != "posix" or os.geteuid() != 0 or not _TUN.exists() or not all(map(shutil.which, _TOOLS)):
        return False
    try:
        with closing(Namespaces()) as trial:
            trial.place(1)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Namespaces:
    """Network namespaces that hang from one bridge. They end with this process."""

    description: Final = "network namespaces, veth pairs and a bridge"

    def __init__(self) -> None:
        number = _new_bridge()
        self._name: Final = _NAME.format(number)
        self._subnet: Final = f"198.{18 + number // 256}.{number % 256}"  # for tests of networks (RFC 2544)
        self._holders: Final[dict[int, subprocess.Popen[bytes]]] = {}
        self._changed: Final[set[tuple[int, int]]] = set()
        try:
            _run("ip", "addr", "add", f"{self._host(CLIENTS)}/24", "dev", self._name)
            _run("ip", "link", "set", self._name, "up")
            self._delayer: Final = _Delayer(f"{self._name}t")
            _run("ip", "link", "set", f"{self._name}t", "master", self._name, "up")
        except BaseException:
            _run("ip", "link", "del", self._name)
            raise

    def _host(self, node: int) -> str:
        assert 0 <= node < 250
        return f"{self._subnet}.{node + 1}"

    def place(self, node: int) -> Place:
        if node not in self._holders:
            self._attach(node)
        address = f"{self._host(node)}:{PORT}"
        return Place(address, address, self._inside(node))

    def _inside(self, node: int) -> tuple[str, ...]:
        return () if node == CLIENTS else ("nsenter", f"--net=/proc/{self._holders[node].pid}/ns/net")

    def _attach(self, node: int) -> None:
        """Make the namespace of a node. A process that does nothing keeps it."""
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], preexec_fn=die_with_parent)
        self._holders[node] = holder
        theirs = Path(f"/proc/{holder.pid}/ns/net")
        while theirs.readlink() == Path("/proc/self/ns/net").readlink():
            time.sleep(0.001)
        outer = f"{self._name}n{node}"
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "link", "set", outer, "master", self._name, "up")
        inside = self._inside(node)
        _run(*inside, "ip", "link", "set", "lo", "up")
        _run(*inside, "ip", "link", "set", "eth0", "address", _link(node))
        _run(*inside, "ip", "addr", "add", f"{self._host(node)}/24", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")

    def cut(self, source: int, target: int) -> None:
        self._send_to(source, target, _NOBODY)

    def delay(self, source: int, target: int, delay_ms: int) -> None:
        assert CLIENTS not in (source, target), "only what nodes say to each other is delayed"
        hosts = (_packed(self._host(source)), _packed(self._host(target)))
        self._delayer.delays[hosts] = delay_ms, bytes.fromhex(_link(target).replace(":", ""))
        self._send_to(source, target, _DELAYED.hex(":"))

    def _send_to(self, source: int, target: int, link: str) -> None:
        self._changed.add((source, target))
        device = self._name if source == CLIENTS else "eth0"
        neighbour = [self._host(target), "lladdr", link, "dev", device, "nud", "permanent"]
        _run(*self._inside(source), "ip", "neigh", "replace", *neighbour)

    def heal(self) -> None:
        for source, target in self._changed:
            device = self._name if source == CLIENTS else "eth0"
            _run(*self._inside(source), "ip", "neigh", "del", self._host(target), "dev", device)
        self._changed.clear()

    def close(self) -> None:
        self._delayer.close()
        for holder in self._holders.values():
            holder.kill()
            holder.wait()
        _run("ip", "link", "del", self._name)


def _new_bridge() -> int:
    """Make a bridge with a number that no other test run on this machine has."""
    numbers = SystemRandom().sample(range(512), 10)
    for number in numbers:
        with suppress(subprocess.CalledProcessError):
            _run("ip", "link", "add", _NAME.format(number), "type", "bridge")
            return number
    raise OSError("no bridge can be made")


class _Delayer:
    """A thread behind a TAP device, which sends frames on after a while."""

    def __init__(self, name: str) -> None:
        self.delays: Final[dict[tuple[bytes, bytes], tuple[int, bytes]]] = {}  # by IP addresses: ms, link address
        self._tap: Final = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self._tap, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
        self._wake, self._woken = os.pipe()
        self._thread: Final = threading.Thread(target=self._forward, name="delayed packets", daemon=True)
        self._thread.start()

    def _forward(self) -> None:
        waiting: list[tuple[float, int, bytes]] = []
        number = 0
        while True:
            timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            readable, _, _ = select.select([self._tap, self._wake], [], [], timeout_s)
            if self._wake in readable:
                return
            if self._tap in readable:
                frame = os.read(self._tap, _FRAME)
                found = self.delays.get((frame[26:30], frame[30:34])) if frame[:6] == _DELAYED else None
                if found is not None:
                    delay_ms, link = found
                    number += 1  # keeps the order of frames that are due at once
                    due = time.monotonic() + delay_ms / 1000
                    heapq.heappush(waiting, (due, number, link + _DELAYED + frame[12:]))
            while waiting and waiting[0][0] <= time.monotonic():
                with suppress(OSError):  # a lost packet, as it happens in networks
                    os.write(self._tap, heapq.heappop(waiting)[2])

    def close(self) -> None:
        os.write(self._woken, b".")
        self._thread.join()
        for each in (self._tap, self._wake, self._woken):
            os.close(each)


def _link(node: int) -> str:
    return f"02:0c:7a:00:00:{node:02x}"


def _packed(host: str) -> bytes:
    return bytes(map(int, host.split(".")))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
