"""`octavo groups`: list, describe and delete consumer groups and reset their offsets, as kafka-consumer-groups does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.cli.broker_options import given_cluster
from octavo.cli.exits import FINE
from octavo.cli.group_options import add_groups, check_options
from octavo.cli.printable import printable
from octavo.cli.tables import Column, print_json, print_table
from octavo.errors import ErrorCode, InvalidInput, RequestFailed

if TYPE_CHECKING:
    from octavo.client.cluster import Cluster
    from octavo.client.groups import Groups

_STATES: Final = (
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)
_TYPES: Final = ("Classic", "Consumer")
_WORDS: Final[dict[int, str]] = {
    ErrorCode.NON_EMPTY_GROUP: "it has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is subscribed to the topic",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo groups` and its options to the parser."""
    add_groups(commands).set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what the options say."""
    check_options(arguments)
    if arguments.validate_regex is not None:
        _validate(arguments.validate_regex)
        return FINE
    from octavo.client.groups import Groups

    with given_cluster(arguments) as cluster:
        groups = Groups(cluster)
        if arguments.list:
            _list(groups, arguments)
        elif arguments.delete_offsets:
            _delete_offsets(cluster, groups, arguments.group[0], arguments.topic)
        else:
            wanted = [each.id for each in groups.list()] if arguments.all_groups else arguments.group
            _act(cluster, groups, wanted, arguments)
    return FINE


def _act(cluster: Cluster, groups: Groups, wanted: Sequence[str], arguments: argparse.Namespace) -> None:
    from octavo.cli.group_descriptions import describe
    from octavo.cli.group_resets import reset

    if arguments.describe:
        describe(cluster, groups, wanted, arguments)
    elif arguments.reset_offsets:
        reset(cluster, groups, wanted, arguments)
    else:
        _delete(groups, wanted)


def _validate(regex: str) -> None:
    from octavo.coordinator.groups.consumer.regex import regex_problem

    problem = regex_problem(regex)
    if problem is not None:
        raise InvalidInput(f"the regular expression `{regex}` is invalid: {problem}")
    print(f"The regular expression `{regex}` is valid.")


def _list(groups: Groups, arguments: argparse.Namespace) -> None:
    states = _chosen("--state", arguments.state, _STATES)
    types = _chosen("--type", arguments.type, _TYPES)
    rows = [
        {"group": each.id, "type": each.type or None, "state": each.state or None}
        for each in groups.list(states, types)
    ]
    if arguments.json:
        print_json(rows)
        return
    columns = [Column("GROUP", "group", max([15, *(len(each["group"] or "") for each in rows)]) + 10)]
    if arguments.type is not None:
        columns.append(Column("TYPE", "type", 20))
    if arguments.state is not None:
        columns.append(Column("STATE", "state", 20))
    if len(columns) > 1:
        print_table(columns, rows)
    else:
        for row in rows:
            print(printable(str(row["group"])))


def _chosen(option: str, given: str | None, known: Sequence[str]) -> list[str]:
    names = {each.lower(): each for each in known}
    chosen = [each.strip().lower() for each in given.split(",")] if given else []
    for each in chosen:
        if each not in names:
            raise InvalidInput(f"{option} {given}: {each!r} is none of {', '.join(known)}")
    return [names[each] for each in chosen]


def _delete(groups: Groups, wanted: Sequence[str]) -> None:
    deleted, failed = [], []
    for group in dict.fromkeys(wanted):
        try:
            groups.delete(group)
            deleted.append(f"'{group}'")
        except RequestFailed as error:
            failed.append((group, error))
    if deleted or not failed:
        print(f"Deletion of requested consumer groups ({', '.join(deleted)}) was successful.")
    if failed:
        told = (
            f"group {group} is not deleted: {_words(error.code)}" if error.code in _WORDS else str(error)
            for group, error in failed
        )
        raise RequestFailed(failed[0][1].code, "; ".join(told))


def _delete_offsets(cluster: Cluster, groups: Groups, group: str, topics: Sequence[str]) -> None:
    from octavo.cli.group_resets import named_partitions

    try:
        codes = groups.delete_offsets(group, named_partitions(cluster, topics))
    except RequestFailed as error:
        if error.code not in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND):
            raise
        raise RequestFailed(error.code, f"no offset of group {group} is deleted: {_words(error.code)}") from None
    failed = [code for code in codes.values() if code]
    if not failed:
        print(f"Request succeeded for deleting offsets from group {group}.")
    rows = [
        {"topic": topic, "partition": number, "status": f"Error: {_words(code)}" if code else "Successful"}
        for (topic, number), code in sorted(codes.items())
    ]
    print()
    print_table([Column("TOPIC", "topic"), Column("PARTITION", "partition", 10), Column("STATUS", "status")], rows)
    if failed:
        raise RequestFailed(failed[0], f"{len(failed)} of {len(codes)} offsets of group {group} are not deleted")


def _words(code: int) -> str:
    from octavo.client.connection import code_name

    return _WORDS.get(code) or code_name(code)
