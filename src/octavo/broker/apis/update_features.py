"""UpdateFeatures (57): raise the level of a feature of the cluster, which decides which records its metadata may have.

The features here are `metadata.version`, `group.version` and `transaction.version`. They cannot be lowered: that might
lose metadata.
Versions: 1 has kinds of updates and `validate_only`, 2 answers for the request as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.features import SUPPORTED_FEATURES
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import UPDATE_FEATURES
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError
from octavo.schemas.metadata.nodes import FeatureLevelRecord

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3
_KINDS: Final = (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)
_FOR_ALL: Final = "The update failed for all features since the following feature had an error: "


def update_features(broker: Broker, request: Request) -> Later:
    """Answer an UpdateFeatures request."""
    asked, version = request.read(), request.version

    def work() -> Parts:
        content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": 0, "error_message": None, "results": []}
        try:
            _update(broker, asked, version)
        except Refused as refused:
            content |= {"error_code": refused.code, "error_message": refused.message}
        else:
            content["results"] = [
                {"feature": each.feature, "error_code": 0, "error_message": "NONE"} for each in asked.feature_updates
            ]
        return [write_response(UPDATE_FEATURES, version, content)]

    return Later(work)


def _update(broker: Broker, asked: Struct, version: int) -> None:
    updates = {each.feature: each for each in asked.feature_updates}  # if one is named twice, the last counts
    for each in updates.values():
        kind = each.upgrade_type if version else _UPGRADE  # Kafka does not care for `allow_downgrade` of version 0
        problem = _problem(broker, each.feature, each.max_version_level, kind)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_UPDATE_VERSION, _FOR_ALL + problem)
    levels = broker.image.features
    changes = {each.feature: each.max_version_level for each in updates.values()}
    records = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in changes.items()
        if level != levels.get(name, 0)
    ]
    if asked.validate_only:
        return
    try:
        broker.change_cluster(records)
    except (OctavoError, OSError) as error:
        broker.troubles.failed("features could not be updated", error)
        raise Refused(storage_error(error), reason(error)) from None


def _problem(broker: Broker, feature: str, level: int, kind: int) -> str | None:
    """Return why a feature cannot have this level, in Kafka's words; None if it can."""
    invalid = f"Invalid update version {level} for feature {feature}."
    if kind not in _KINDS:
        return f"{invalid} The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid} A feature version cannot be less than 0."
    present = broker.image.features.get(feature, 0)
    if feature not in SUPPORTED_FEATURES:
        if level == 0:
            return f"{invalid} Feature {feature} not found."
        return f"{invalid} Local controller {broker.node_id} does not support this feature."
    lowest, highest = SUPPORTED_FEATURES[feature]
    if not lowest <= level <= highest:
        return f"{invalid} Local controller {broker.node_id} only supports versions {lowest}-{highest}"
    if level >= present:
        return None
    if kind == _UPGRADE:
        return (
            f"{invalid} Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            f"unsafe downgrade."
        )
    why = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if kind == _SAFE_DOWNGRADE
        else "Unsafe metadata downgrade is not supported in this version."
    )
    return f"Unsupported {feature} downgrade from {present} to {level}. {why}"
