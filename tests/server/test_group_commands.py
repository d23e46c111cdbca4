"""`octavo groups`, on Octavo's own broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.broker.wire import api_keys
from octavo.broker.wire.messages import Content, Struct
from octavo.client.cluster import Cluster
from octavo.client.connection import BrokerConnection
from octavo.client.groups import Groups
from octavo.errors import ErrorCode, RequestFailed
from octavo.log.names import TopicPartition
from octavo.server.serving import serve
from tests.server.commands import Commands
from tests.server.group_commands import PROTOCOLS, TOPIC, Protocol, fill, member, rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with serve(config={"group.initial.rebalance.delay.ms": "0"}) as server:
        commands = Commands(server.bootstrap_servers, tmp_path_factory.mktemp("commands"))
        fill(commands)
        yield commands


def reset(run: Commands, group: str, *words: str) -> list[tuple[str, int, int]]:
    """The new offsets."""
    found = rows(run, "--reset-offsets", "--group", group, *words)
    return [(each["topic"], each["partition"], each["newOffset"]) for each in found]


def committed(run: Commands, group: str) -> list[tuple[int, int, int]]:
    """Partitions with their offsets and lags."""
    found = rows(run, "--describe", "--group", group)
    return [(each["partition"], each["currentOffset"], each["lag"]) for each in found]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_a_member(run: Commands, protocol: Protocol) -> None:
    group = f"live-{protocol}"
    with member(run.address, group, protocol):
        first, second = rows(run, "--describe", "--group", group)
        assert (first["currentOffset"], first["logEndOffset"], first["lag"]) == (3, 10, 7)
        assert (second["currentOffset"], second["logEndOffset"], second["lag"]) == (None, 10, None)
        assert {first["clientId"], second["clientId"]} == {"visitor"}
        assert first["host"] == "/127.0.0.1"
        (told,) = rows(run, "--describe", "--group", group, "--members")
        assert (told["groupInstanceId"], told["partitions"]) == (None, 2)
        assert told["currentAssignment"] == f"{TOPIC}:0,1"
        assert told["targetAssignment"] == (f"{TOPIC}:0,1" if protocol == "consumer" else None)
        (state,) = rows(run, "--describe", "--group", group, "--state")
        assert (state["state"], state["members"]) == ("Stable", 1)
        assert state["coordinator"] == f"{run.address}  (1)"
        assert state["assignmentStrategy"] == {"classic": "range", "consumer": "uniform"}[protocol]
        listed = {"group": group, "type": protocol.capitalize(), "state": "Stable"}
        assert listed in rows(run, "--list", "--state", "stable", "--type", protocol)
        assert run("groups", "--reset-offsets", "--group", group, "--topic", TOPIC, "--to-latest", "--execute").err == (
            f"octavo: offsets can be reset only while a group has no members, unlike {group} (Stable)\n"
        )
        deleted = run("groups", "--delete", "--group", group)
        assert (deleted.code, deleted.err) == (2, f"octavo: group {group} is not deleted: it has members\n")
        offsets = run("groups", "--delete-offsets", "--group", group, "--topic", f"{TOPIC}:0")
        assert offsets.code == 2
        assert "Error: the group is subscribed to the topic" in offsets.out
    assert run("groups", "--delete", "--group", group, "--group", f"{group}-2") == (
        2,
        f"Deletion of requested consumer groups ('{group}') was successful.\n",
        f"octavo: group {group}-2 is not deleted: there is no such group\n",
    )


def test_offsets_are_reset_in_every_way(run: Commands, tmp_path: Path) -> None:
    group, both = "resets", ("--topic", TOPIC)
    assert reset(run, group, *both, "--to-latest") == [(TOPIC, 0, 10), (TOPIC, 1, 10)]
    assert run("groups", "--describe", "--group", group) == (2, "", f"octavo: there is no group {group}\n")
    assert reset(run, group, *both, "--to-earliest", "--execute") == [(TOPIC, 0, 0), (TOPIC, 1, 0)]
    assert committed(run, group) == [(0, 0, 10), (1, 0, 10)]
    assert reset(run, group, "--topic", f"{TOPIC}:1", "--to-offset", "4", "--execute") == [(TOPIC, 1, 4)]
    assert reset(run, group, "--all-topics", "--shift-by", "-2", "--execute") == [(TOPIC, 0, 0), (TOPIC, 1, 2)]
    assert committed(run, group) == [(0, 0, 10), (1, 2, 8)]
    assert reset(run, group, "--all-topics", "--shift-by", "9") == [(TOPIC, 0, 9), (TOPIC, 1, 10)]
    assert reset(run, group, *both, "--topic", "empty:0", "--to-current") == [
        ("empty", 0, 0),
        (TOPIC, 0, 0),
        (TOPIC, 1, 2),
    ]
    assert reset(run, group, *both, "--to-datetime", "1970-01-01T00:16:43.500") == [(TOPIC, 0, 4), (TOPIC, 1, 4)]
    assert reset(run, group, *both, "--to-datetime", "1970-01-01T01:16:43.500+01:00") == [(TOPIC, 0, 4), (TOPIC, 1, 4)]
    assert reset(run, group, *both, "--to-datetime", str(1 << 70)) == [(TOPIC, 0, 10), (TOPIC, 1, 10)]
    age_s = time.time() - 1006
    assert reset(run, group, *both, "--by-duration", f"PT{age_s:.0f}S")[0][2] in (6, 7)  # as it is rounded
    assert reset(run, group, "--topic", "empty", "--by-duration", "P1D") == [("empty", 0, 0), ("empty", 1, 0)]
    exported = run("groups", "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export")
    assert exported.out == f"{TOPIC},0,0\n{TOPIC},1,2\n"
    (tmp_path / "plan.csv").write_text(f"{TOPIC},0,5\n{TOPIC},1,50\n")
    from_file = ("--from-file", str(tmp_path / "plan.csv"))
    assert reset(run, group, *from_file, "--execute") == [(TOPIC, 0, 5), (TOPIC, 1, 10)]
    (tmp_path / "plan.csv").write_text(f"{group},{TOPIC},0,1\nsecond,{TOPIC},1,2\n")
    told = rows(run, "--reset-offsets", "--group", group, "--group", "second", *from_file, "--execute")
    assert [(each["group"], each["newOffset"]) for each in told] == [(group, 1), ("second", 2)]
    assert (committed(run, group), committed(run, "second")) == ([(0, 1, 9), (1, 10, 0)], [(1, 2, 8)])


def test_nothing_is_changed_if_a_part_cannot_be(run: Commands) -> None:
    words = ("--reset-offsets", "--group", "whole", "--group", "whole-2")
    assert run("groups", *words[:3], "--topic", TOPIC, "--to-earliest", "--execute").code == 0
    failed = run("groups", *words, "--topic", f"{TOPIC}:0", "--shift-by", "1", "--execute")
    assert failed == (2, "", f"octavo: --shift-by: group whole-2 has no committed offset in partition {TOPIC}-0\n")
    assert committed(run, "whole") == [(0, 0, 10), (1, 0, 10)]


def test_offsets_and_groups_are_deleted(run: Commands) -> None:
    assert reset(run, "going", "--topic", TOPIC, "--to-latest", "--execute") != []
    told = run("groups", "--delete-offsets", "--group", "going", "--topic", f"{TOPIC}:0")
    assert told.out.splitlines() == [
        "Request succeeded for deleting offsets from group going.",
        "",
        "TOPIC           PARTITION  STATUS",
        f"{TOPIC}          0          Successful",
    ]
    assert committed(run, "going") == [(1, 10, 0)]
    assert "going" in run("groups", "--list").out.splitlines()
    assert run("groups", "--delete", "--group", "going").code == 0
    assert "going" not in run("groups", "--list").out.splitlines()
    assert run("groups", "--delete-offsets", "--group", "going", "--topic", TOPIC).err == (
        "octavo: no offset of group going is deleted: there is no such group\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--list --members", "--members goes with --describe only"),
        ("--list --group g", "--group goes with --describe, --reset-offsets, --delete or --delete-offsets only"),
        ("--list --state sleepy", "--state sleepy: 'sleepy' is none of Assigning, CompletingRebalance, Dead,"),
        ("--describe", "--describe needs --group or --all-groups"),
        ("--describe --group g --all-groups", "--group and --all-groups do not go together"),
        ("--describe --group g --state Stable", "--state takes no value with --describe"),
        ("--describe --group g --state --members", "--state does not go together with --members and --offsets"),
        ("--delete-offsets --group g", "--delete-offsets needs one --group, and --topic"),
        ("--reset-offsets --group g --topic t", "--reset-offsets needs --to-earliest, --to-latest, --to-current,"),
        ("--reset-offsets --group g --to-latest", "--reset-offsets needs either --topic or --all-topics"),
        ("--reset-offsets --group g --topic t --to-latest", "there is no topic t"),
        ("--reset-offsets --group g --topic visits:2 --to-latest", "there is no partition visits-2"),
        ("--reset-offsets --group g --topic visits:x --to-latest", "--topic visits:x: it must be TOPIC or TOPIC:PART"),
        ("--reset-offsets --group g --from-file /dev/null", "/dev/null: there is nothing for group g"),
        ("--reset-offsets --group g --from-file /no/such", "[Errno 2] No such file"),
        ("--validate-regex a(", "the regular expression `a(` is invalid: missing closing )"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run: Commands, words: str, sentence: str) -> None:
    told = run("groups", *words.split())
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"octavo: {sentence}"), told.err


def test_a_file_that_is_no_plan(run: Commands, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    for content in (b"visits,0", b"visits,0,x", b"visits,-1,0", b"\xff\xfe", b'"visits\x00,0,1'):
        plan.write_bytes(content)
        told = run("groups", "--reset-offsets", "--group", "g", "--from-file", str(plan))
        assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)


def test_a_regular_expression_is_valid(run: Commands) -> None:
    assert run("groups", "--validate-regex", "visits-.*") == (
        0,
        "The regular expression `visits-.*` is valid.\n",
        "",
    )


class _Moving(BrokerConnection):
    """Answers like a broker that is not the coordinator any more, and then like one that still loads."""

    errors: list[int]

    def ask(self, api_key: int, content: Content, *, newest: int | None = None) -> Struct:
        answer = super().ask(api_key, content, newest=newest)
        if api_key == api_keys.OFFSET_COMMIT and self.errors:
            answer.topics[0].partitions[0].error_code = self.errors.pop(0)
        elif api_key == api_keys.DELETE_GROUPS and self.errors:
            answer.results[0].error_code = self.errors.pop(0)
        return answer


def test_the_coordinator_is_looked_for_again(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.client.cluster.BrokerConnection", _Moving)
    monkeypatch.setattr("octavo.client.cluster._PAUSE_S", 0)
    passing = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    partition = TopicPartition(TOPIC, 0)
    with Cluster(run.address) as cluster:
        groups = Groups(cluster)
        monkeypatch.setattr(_Moving, "errors", [*passing], raising=False)
        assert groups.commit("moving", {partition: 5}) == {partition: 0}
        assert groups.committed("moving")[partition].offset == 5
        monkeypatch.setattr(_Moving, "errors", [ErrorCode.NON_EMPTY_GROUP])
        with pytest.raises(RequestFailed, match="NON_EMPTY_GROUP"):
            groups.delete("moving")
    assert _Moving.errors == []


class _Odd(BrokerConnection):
    """Answers with no group or topic, or with several, where it was asked about one."""

    count: int

    def ask(self, api_key: int, content: Content, *, newest: int | None = None) -> Struct:
        answer = super().ask(api_key, content, newest=newest)
        for name in ("groups", "results", "topics", "responses"):
            if hasattr(answer, name) and api_key not in (api_keys.LIST_GROUPS, api_keys.METADATA):
                setattr(answer, name, [*getattr(answer, name)] * self.count)
        return answer


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("words", ["--describe", "--delete", "--reset-offsets --all-topics --to-latest"])
def test_an_odd_answer_is_told(run: Commands, monkeypatch: pytest.MonkeyPatch, words: str, count: int) -> None:
    monkeypatch.setattr("octavo.client.cluster.BrokerConnection", _Odd)
    monkeypatch.setattr(_Odd, "count", count, raising=False)
    told = run("groups", *words.split(), "--group", "odd")
    assert (told.code, told.out) == (2, "")
    assert "asked about group odd alone" in told.err


@pytest.mark.parametrize("count", [0, 2])
def test_an_odd_answer_about_a_topic_is_told(run: Commands, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    assert run("topics", "--create", "--topic", "odd", "--partitions", "1").code == 0
    monkeypatch.setattr("octavo.client.cluster.BrokerConnection", _Odd)
    monkeypatch.setattr(_Odd, "count", count, raising=False)
    for words in ("--create", "--alter --partitions 2", "--describe", "--delete"):
        told = run("topics", *words.split(), "--topic", "odd")
        assert told.code == 2
        assert "asked about topic odd alone" in told.err
