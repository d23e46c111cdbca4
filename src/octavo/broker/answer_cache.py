"""Answers that depend on nothing but the request and the image of the cluster: `AnswerCache`.

Clients ask for the same metadata again and again, and all clients of a program ask for the same. As long as the image
is the same, so is the answer.
"""

from __future__ import annotations

import threading
from typing import Final

from octavo.broker.answers import Parts
from octavo.broker.cluster_image import ClusterImage
from octavo.broker.request import Request

_LONGEST_BODY: Final = 1 << 10  # of a request whose answer is kept
_ENTRIES: Final = 256
_BYTES: Final = 1 << 20  # of all answers

_Key = tuple[int, int, tuple[str, int], bytes]


class AnswerCache:
    """The bodies of answers to requests with certain bytes. Any thread may use it."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()  # held to keep an answer
        self._kept: tuple[ClusterImage | None, dict[_Key, bytes]] = (None, {})  # an image, and the answers made from it
        self._size = 0

    def find(self, image: ClusterImage, request: Request) -> bytes | None:
        """Return the answer to the same request, if it is known."""
        known, answers = self._kept
        if image is not known or len(request.body) > _LONGEST_BODY:
            return None
        return answers.get(_key(request))

    def keep(self, image: ClusterImage, request: Request, parts: Parts) -> None:
        """Remember the answer to a request, which was made from `image`."""
        [answer] = parts
        assert isinstance(answer, bytes)
        with self._lock:
            known, answers = self._kept
            if image is not known or len(answers) >= _ENTRIES or self._size + len(answer) > _BYTES:
                answers, self._size = {}, 0
                self._kept = (image, answers)
            if len(request.body) <= _LONGEST_BODY and len(answer) <= _BYTES:
                answers[_key(request)] = answer
                self._size += len(answer)


def _key(request: Request) -> _Key:
    header = request.header
    return header.api_key, header.version, request.client.listener, bytes(request.body)
