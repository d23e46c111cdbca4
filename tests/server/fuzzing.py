"""Attacks on a broker that are made of recorded conversations: frames that are changed, cut, repeated and mixed.

Everything comes from a seed and a number, so an attack can be made again.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from octavo.broker.wire import api_keys
from octavo.broker.wire.api_keys import APIS
from tests.server.questions import questions
from tests.server.raw import PATIENCE_S
from tests.server.recording import Conversation
from tests.server.requests import frame

_NUMBERS: Final = [
    *(
        struct.pack(">i", each)
        for each in (0, 1, -1, -2, 0x7FFFFFFF, -0x80000000, 0x7FFF, 0xFFFF, 1 << 20, 104_857_600)
    ),
    *(struct.pack(">h", each) for each in (0, -1, 0x7FFF, -0x8000)),
    *(struct.pack(">q", each) for each in (0, -1, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000)),
    *(b"\0", b"\1", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x80", b"\xff"),
]
_SIZES: Final = (-1, 0, 1, 3, 0x7FFFFFFF, -0x80000000, 104_857_600, 104_857_601, 1 << 20)
_SHARE_SOUND: Final = 0.3  # of the frames that stay as they are, so that something happens that can be disturbed
_LEFT_OPEN: Final = 100
_READ_LATER: Final = 20  # connections whose answers are read when so many others have been made
_HASTE_S: Final = 2.0  # after which an attack that the broker does not read is left as it is

# What changes settings of the whole broker, which would hurt others as it should.
_NOT_ASKED: Final = {api_keys.ALTER_CONFIGS, api_keys.INCREMENTAL_ALTER_CONFIGS}


def made_by_hand() -> Conversation:
    """A conversation with requests of every API in every version."""
    frames = [frame(each) for each in questions() if each.api_key not in _NOT_ASKED]
    return Conversation("by hand", frames)


class Attack(NamedTuple):
    """What is sent on one connection, and how it ends."""

    data: bytes
    ending: str


class Attacks:
    """Attacks that are made of conversations."""

    def __init__(self, conversations: Sequence[Conversation], seed: int) -> None:
        self._frames: Final = [frame for each in conversations for frame in each.frames]
        self._conversations: Final = conversations
        self._seed: Final = seed

    def make(self, number: int) -> Attack:
        """The attack of this number."""
        dice = random.Random(f"{self._seed} {number}")
        frames = list(dice.choice(self._conversations).frames)
        if len(frames) > 20:
            begin = dice.randrange(len(frames) - 20)
            frames = frames[begin : begin + 20]
        self._reorder(dice, frames)
        data = b"".join(self._sized(dice, self._change(dice, frame)) for frame in frames)
        if dice.random() < 0.3:
            data = data[: dice.randrange(len(data) + 1)]
        return Attack(data, dice.choice(("read", "read", "half", "close", "reset", "leave")))

    def _reorder(self, dice: random.Random, frames: list[bytes]) -> None:
        for _ in range(dice.choice((0, 0, 1, 3))):
            place = dice.randrange(len(frames))
            match dice.randrange(4):
                case 0:
                    frames.insert(place, frames[dice.randrange(len(frames))])
                case 1:
                    frames.insert(place, dice.choice(self._frames))
                case 2 if len(frames) > 1:
                    frames.pop(place)
                case _:
                    dice.shuffle(frames)

    def _change(self, dice: random.Random, frame: bytes) -> bytes:
        if dice.random() < _SHARE_SOUND:
            return frame
        changed = bytearray(frame)
        for _ in range(dice.choice((1, 1, 1, 2, 5))):
            dice.choice(_CHANGES)(dice, changed)
        if dice.random() < 0.1:
            other = dice.choice(self._frames)
            changed[dice.randrange(len(changed) + 1) :] = other[dice.randrange(len(other) + 1) :]
        return bytes(changed)

    def _sized(self, dice: random.Random, frame: bytes) -> bytes:
        size = len(frame)
        if dice.random() < 0.05:
            size = dice.choice((*_SIZES, size - 1, size + 1))
        return struct.pack(">i", size) + frame


def _flip(dice: random.Random, frame: bytearray) -> None:
    if frame:
        frame[dice.randrange(len(frame))] ^= 1 << dice.randrange(8)


def _put_number(dice: random.Random, frame: bytearray) -> None:
    number, place = dice.choice(_NUMBERS), dice.randrange(len(frame) + 1)
    frame[place : place + len(number)] = number


def _insert(dice: random.Random, frame: bytearray) -> None:
    place = dice.randrange(len(frame) + 1)
    frame[place:place] = dice.choice((dice.randbytes(dice.randrange(1, 20)), dice.choice(_NUMBERS)))


def _cut(dice: random.Random, frame: bytearray) -> None:
    place = dice.randrange(len(frame) + 1)
    del frame[place : place + dice.choice((1, 4, len(frame)))]


def _repeat(dice: random.Random, frame: bytearray) -> None:
    place = dice.randrange(len(frame) + 1)
    frame[place:place] = frame[place : place + dice.randrange(1, 200)] * dice.choice((1, 1, 50))


def _change_version(dice: random.Random, frame: bytearray) -> None:
    frame[2:4] = struct.pack(">h", dice.choice((dice.randrange(20), dice.randrange(20), -1, 0x7FFF)))


def _change_api(dice: random.Random, frame: bytearray) -> None:
    frame[0:2] = struct.pack(">h", dice.choice((*APIS, dice.randrange(100), -1, 0x7FFF)))


_CHANGES: Final[Sequence[Callable[[random.Random, bytearray], None]]] = (
    _flip,
    _flip,
    _put_number,
    _put_number,
    _insert,
    _cut,
    _repeat,
    _change_version,
    _change_api,
)


class Attacker:
    """Carries attacks out. Some connections are left open for a while, and nobody reads from them."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address: Final = (host, int(port))
        self._to_read: Final[deque[socket.socket]] = deque()
        self._left: Final[deque[socket.socket]] = deque()

    def carry_out(self, attack: Attack) -> None:
        """Send what the attack sends. The broker may close the connection whenever it wants."""
        client = socket.create_connection(self._address, timeout=PATIENCE_S)
        client.settimeout(_HASTE_S)
        with contextlib.suppress(OSError):
            client.sendall(attack.data)
            if attack.ending == "half":
                client.shutdown(socket.SHUT_WR)
        if attack.ending in {"half", "read"}:
            self._to_read.append(client)
        elif attack.ending == "leave":
            self._left.append(client)
        else:
            if attack.ending == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        self._leave_behind(_READ_LATER, _LEFT_OPEN)

    def close(self) -> None:
        """Close what was left open."""
        self._leave_behind(0, 0)

    def _leave_behind(self, to_read: int, left: int) -> None:
        while len(self._to_read) > to_read:
            client = self._to_read.popleft()
            client.setblocking(False)
            with contextlib.suppress(OSError):
                while client.recv(1 << 20):
                    pass
            client.close()
        while len(self._left) > left:
            self._left.popleft().close()
