"""ApiVersions (18): which APIs are served, in which versions, and the features of the cluster.

Every client asks this first, in a version that is a guess. To a version that is not known the answer is that of version
0, with an error and the versions of ApiVersions itself; the client comes again with one of these. Version 3 is
flexible, but the header of its response is not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Parts
from octavo.broker.features import MEMBER_FEATURES, SUPPORTED_FEATURES
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import API_VERSIONS, APIS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NAMES_ITSELF: Final = 3  # the first version in which clients tell their name and version
_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ZERO_MINIMUM: Final = 4  # the first version that lists features whose lowest level is 0


def api_versions(broker: Broker, request: Request) -> Parts:
    """Answer a request for ApiVersions."""
    version = request.version
    own = APIS[API_VERSIONS]
    if not own.first <= version <= own.last:
        content = {
            "error_code": ErrorCode.UNSUPPORTED_VERSION,
            "api_keys": [{"api_key": API_VERSIONS, "min_version": own.first, "max_version": own.last}],
        }
        return [write_response(API_VERSIONS, 0, content)]
    if version >= _NAMES_ITSELF:
        asked = request.read()
        if not (_NAME.fullmatch(asked.client_software_name) and _NAME.fullmatch(asked.client_software_version)):
            refused = {"error_code": ErrorCode.INVALID_REQUEST, "api_keys": [], "throttle_time_ms": 0}
            return [write_response(API_VERSIONS, version, refused)]
    supported = SUPPORTED_FEATURES if broker.controller is None else MEMBER_FEATURES
    return [
        write_response(
            API_VERSIONS,
            version,
            {
                "error_code": ErrorCode.NONE,
                "api_keys": [
                    {"api_key": key, "min_version": lowest, "max_version": highest}
                    for key, (lowest, highest) in _served(broker).items()
                ],
                "throttle_time_ms": 0,
                "supported_features": [
                    {"name": name, "min_version": lowest, "max_version": highest}
                    for name, (lowest, highest) in supported.items()
                    if lowest or version >= _ZERO_MINIMUM
                ],
                "finalized_features_epoch": broker.features_epoch,
                "finalized_features": [
                    {"name": name, "max_version_level": level, "min_version_level": level}
                    for name, level in broker.image.features.items()
                    if name in supported
                ],
            },
        )
    ]


def _served(broker: Broker) -> dict[int, tuple[int, int]]:
    """Return the versions of each API that are served. What the controller answers, it has to serve, too."""
    served = {key: (api.listed_from, api.last) for key, api in sorted(broker.apis.items())}
    if broker.controller is not None:
        for key, (lowest, highest) in broker.controller.forwarding.versions().items():
            served[key] = max(served[key][0], lowest), min(served[key][1], highest)
    return {key: (lowest, highest) for key, (lowest, highest) in served.items() if lowest <= highest}
