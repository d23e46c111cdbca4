"""Apache Kafka's broker, for the tests that have it go on where Octavo's stopped."""

from tests.kafka.conftest import new_broker

__all__ = ["new_broker"]
