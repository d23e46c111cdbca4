"""What administrators may set, and what has no effect here: `new_without_effect`.

It is kept in the metadata, so that Apache Kafka finds it there. Whoever sets it believes that it is done.
"""

from __future__ import annotations

from collections.abc import Iterator

from octavo.broker.cluster_image import ClusterImage
from octavo.broker.config_resources import ResourceType
from octavo.broker.kept_settings import KEPT_SETTINGS
from octavo.log.config.broker_defaults import ALL_BROKERS

_OF_OTHER_GROUPS = ("share.", "streams.")


def new_without_effect(before: ClusterImage, image: ClusterImage, node_id: int) -> Iterator[str]:
    """Yield a sentence for each kind of things that was set since the image before, and has no effect."""
    if image.quotas and image.quotas != before.quotas:
        yield "quotas were set; they are kept, but this broker does not enforce them"
    if image.credentials and image.credentials != before.credentials:
        yield "users of SCRAM were set; they are kept, but this broker asks nobody for a password"
    for kind, name in sorted(image.configs.changed_since(before.configs)):
        old = before.configs.get((kind, name), {})
        new = {each: value for each, value in image.configs.get((kind, name), {}).items() if old.get(each) != value}
        if kind == ResourceType.CLIENT_METRICS and new:
            yield "a subscription to client metrics was set; it is kept, but this broker asks no client for metrics"
        elif kind == ResourceType.GROUP and any(each.startswith(_OF_OTHER_GROUPS) for each in new):
            yield "settings of share or streams groups were set; they are kept, but this broker has no such groups"
        elif kind == ResourceType.BROKER and name in (ALL_BROKERS, str(node_id)):
            for each in sorted(new.keys() & KEPT_SETTINGS.keys()):
                yield f"{each} was set; it is kept, but has no effect on this broker"
