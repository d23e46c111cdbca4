"""Answers that depend on nothing but the request and the image of the cluster: `AnswerCache`.

Clients ask for the same metadata again and again, and all clients of a program ask for the same. As long as the image
is the same, so is the answer.
"""

from __future__ import annotations

from typing import Final

from octavo.broker.answers import Parts
from octavo.broker.cluster_image import ClusterImage
from octavo.broker.request import Request

_LONGEST_BODY: Final = 1 << 10  # of a request whose answer is kept
_ENTRIES: Final = 256
_BYTES: Final = 1 << 20  # of all answers

_Key = tuple[int, int, tuple[str, int], bytes]


class AnswerCache:
    """The bodies of answers to requests with certain bytes. For one thread."""

    def __init__(self) -> None:
        self._image: ClusterImage | None = None  # the answers are those of this image
        self._answers: Final[dict[_Key, bytes]] = {}
        self._size = 0

    def find(self, image: ClusterImage, request: Request) -> bytes | None:
        """Return the answer to the same request, if it is known."""
        if image is not self._image or len(request.body) > _LONGEST_BODY:
            return None
        return self._answers.get(_key(request))

    def keep(self, image: ClusterImage, request: Request, parts: Parts) -> None:
        """Remember the answer to a request, which was made from `image`."""
        [answer] = parts
        assert isinstance(answer, bytes)
        if image is not self._image or len(self._answers) >= _ENTRIES or self._size + len(answer) > _BYTES:
            self._image, self._size = image, 0
            self._answers.clear()
        if len(request.body) <= _LONGEST_BODY and len(answer) <= _BYTES:
            self._answers[_key(request)] = answer
            self._size += len(answer)


def _key(request: Request) -> _Key:
    header = request.header
    return header.api_key, header.version, request.client.listener, bytes(request.body)
