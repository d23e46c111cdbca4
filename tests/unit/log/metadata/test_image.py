"""What records of metadata come to."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from octavo.errors import BadRecord
from octavo.log.metadata.image import Image
from octavo.records.control import KRaftVersion, KRaftVoter, KRaftVoters, LeaderChange, QuorumVoter
from octavo.schemas.metadata.access import (
    ClientQuotaRecord,
    EntityData,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from octavo.schemas.metadata.nodes import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from octavo.schemas.metadata.progress import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    ProducerIdsRecord,
)
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord
from octavo.schemas.metadata.topics import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ID = UUID(int=1000)
DIRECTORY = UUID(int=2000)
TOPIC = TopicRecord(name="events", topic_id=ID)
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=ID,
    replicas=(1, 2),
    isr=(1, 2),
    removing_replicas=(),
    adding_replicas=(),
    leader=1,
    leader_epoch=3,
    partition_epoch=7,
    directories=(DIRECTORY, DIRECTORY),
    eligible_leader_replicas=(3,),
)
CONFIG = ConfigRecord(resource_type=2, resource_name="events", name="retention.ms", value="5")
BROKER = RegisterBrokerRecord(
    broker_id=1, incarnation_id=ID, broker_epoch=5, end_points=(), features=(), rack=None, log_dirs=(DIRECTORY,)
)


def image_of(*records: MetadataRecord | UnknownRecord) -> Image:
    image = Image()
    for record in records:
        image.replay(record)
    return image


def partition_after(change: PartitionChangeRecord) -> PartitionRecord:
    return image_of(TOPIC, PARTITION, change).topics()["events"].partitions[0]


def test_a_topic_with_its_partitions_and_its_configuration() -> None:
    topic = image_of(TOPIC, PARTITION, CONFIG, NoOpRecord()).topics()["events"]
    assert (topic.name, topic.id, dict(topic.config)) == ("events", ID, {"retention.ms": "5"})
    assert topic.partitions == {0: PARTITION}


def test_a_configuration_goes_with_its_null_and_with_its_topic() -> None:
    assert image_of(TOPIC, CONFIG, replace(CONFIG, value=None)).topics()["events"].config == {}
    image = image_of(TOPIC, PARTITION, CONFIG, RemoveTopicRecord(topic_id=ID), replace(TOPIC, topic_id=DIRECTORY))
    assert image.topics()["events"].config == {}
    assert image.topics()["events"].partitions == {}


def test_configurations_of_other_resources_are_theirs() -> None:
    image = image_of(TOPIC, replace(CONFIG, resource_type=4, resource_name=""))
    assert image.topics()["events"].config == {}
    assert image.configs[4, ""] == {"retention.ms": "5"}


def test_a_leader_that_is_set_makes_the_epoch_larger_also_where_it_stays_the_same() -> None:
    change = PartitionChangeRecord(partition_id=0, topic_id=ID, leader=1)
    assert partition_after(change) == replace(PARTITION, leader_epoch=4, partition_epoch=8)
    change = PartitionChangeRecord(partition_id=0, topic_id=ID, leader=-1, isr=(2,))
    assert partition_after(change) == replace(PARTITION, leader=-1, isr=(2,), leader_epoch=4, partition_epoch=8)


def test_a_change_leaves_what_it_does_not_name() -> None:
    assert partition_after(PartitionChangeRecord(partition_id=0, topic_id=ID)) == replace(PARTITION, partition_epoch=8)
    change = PartitionChangeRecord(partition_id=0, topic_id=ID, leader_recovery_state=1, directories=(ID, ID))
    expected = replace(PARTITION, leader_recovery_state=1, directories=(ID, ID), partition_epoch=8)
    assert partition_after(change) == expected


@pytest.mark.parametrize("name", ["", "events"])
def test_eligible_leaders_are_forgotten(name: str) -> None:
    image = image_of(TOPIC, PARTITION, ClearElrRecord(topic_name=name))
    assert image.topics()["events"].partitions[0] == replace(PARTITION, eligible_leader_replicas=None)


def test_a_transaction_counts_when_it_ends() -> None:
    image = image_of(BeginTransactionRecord(), TOPIC, PARTITION)
    assert image.in_transaction
    assert image.topics() == {}
    ended = image_of(BeginTransactionRecord(), TOPIC, PARTITION, EndTransactionRecord())
    assert not ended.in_transaction
    assert list(ended.topics()) == ["events"]


def test_a_transaction_that_is_aborted_never_was() -> None:
    image = image_of(
        BeginTransactionRecord(), TOPIC, AbortTransactionRecord(), FeatureLevelRecord(name="a", feature_level=1)
    )
    assert image.topics() == {}
    assert image.features == {"a": 1}


def test_features_brokers_and_producer_ids() -> None:
    image = image_of(
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name="old", feature_level=1),
        FeatureLevelRecord(name="old", feature_level=0),
        BROKER,
        replace(BROKER, broker_id=2),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1, log_dirs=(ID,)),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=5),
        ProducerIdsRecord(broker_id=1, next_producer_id=1000),
    )
    assert (image.features, image.metadata_version) == ({"metadata.version": 25}, 25)
    assert image.brokers == {1: replace(BROKER, fenced=False, log_dirs=(ID,))}
    assert image.next_producer_id == 1000
    image.replay(FenceBrokerRecord(id=1, epoch=5))
    assert image.brokers[1].fenced
    image.replay(UnfenceBrokerRecord(id=1, epoch=5))
    assert not image.brokers[1].fenced


def test_the_voters_are_those_named_last() -> None:
    assert Image().voters is None
    image = Image()
    image.replay_control(LeaderChange(leader_id=1, voters=(QuorumVoter(id=3), QuorumVoter(id=1))))
    assert list(image.voters or ()) == [1, 3]
    image.replay_control(KRaftVersion(kraft_version=1))
    image.replay_control(KRaftVoters(voters=(KRaftVoter(id=2, directory_id=DIRECTORY),)))
    assert (image.voters, image.kraft_version) == ((2,), 1)


def test_what_a_later_kafka_wrote_is_kept() -> None:
    unknown = UnknownRecord(type=99, version=0, body=b"")
    assert image_of(unknown).unknown == [unknown]


@pytest.mark.parametrize(
    "records",
    [
        (PARTITION,),
        (TOPIC, PartitionChangeRecord(partition_id=1, topic_id=ID)),
        (TOPIC, replace(TOPIC, topic_id=DIRECTORY)),
        (RemoveTopicRecord(topic_id=ID),),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5),),
        (FenceBrokerRecord(id=1, epoch=5),),
        (EndTransactionRecord(),),
        (AbortTransactionRecord(),),
        (BeginTransactionRecord(), BeginTransactionRecord()),
    ],
)
def test_records_that_cannot_come_here_are_refused(records: tuple[MetadataRecord, ...]) -> None:
    with pytest.raises(BadRecord):
        image_of(*records)


def test_quotas_of_an_entity_whatever_the_order_of_its_parts() -> None:
    user, client = (
        EntityData(entity_type="user", entity_name="u"),
        EntityData(entity_type="client-id", entity_name=None),
    )
    entity = (("client-id", None), ("user", "u"))
    one = ClientQuotaRecord(entity=(user, client), key="request_percentage", value=1.5, remove=False)
    other = ClientQuotaRecord(entity=(client, user), key="producer_byte_rate", value=7.0, remove=False)
    assert image_of(one, other).quotas == {entity: {"request_percentage": 1.5, "producer_byte_rate": 7.0}}
    gone = [replace(each, remove=True) for each in (one, other)]
    assert image_of(one, other, gone[0]).quotas == {entity: {"producer_byte_rate": 7.0}}
    assert image_of(one, other, *gone, *gone).quotas == {}


def test_a_credential_for_each_user_and_mechanism() -> None:
    first = UserScramCredentialRecord(
        name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    second = replace(first, mechanism=2)
    newer = replace(first, iterations=5000)
    assert image_of(first, second, newer).credentials == {("u", 1): newer, ("u", 2): second}
    gone = RemoveUserScramCredentialRecord(name="u", mechanism=1)
    assert image_of(first, second, gone, gone).credentials == {("u", 2): second}
