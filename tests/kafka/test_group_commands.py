"""`octavo groups` prints and does what kafka-consumer-groups does, on the same broker of Apache Kafka."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.kafka.conftest import NewBroker
from tests.kafka.judge import Judge
from tests.kafka.tools import Call, Tools
from tests.server.commands import Commands, Told
from tests.server.group_commands import PROTOCOLS, TOPIC, fill, member

# {group} is a group for each of the two, so that both can change it.
CHANGES: Final = (
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-earliest",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-earliest --execute",
    f"--reset-offsets --group {{group}} --topic {TOPIC}:1 --to-offset 4 --execute",
    f"--reset-offsets --group {{group}} --topic {TOPIC}:0,1 --to-offset 40 --dry-run",
    "--reset-offsets --group {group} --all-topics --shift-by 3 --execute",
    "--reset-offsets --group {group} --all-topics --shift-by -5",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --topic empty --to-current",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-latest",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-datetime 1970-01-01T00:16:43.500",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-datetime 1970-01-01T01:16:43.500+01:00",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --to-datetime 2100-01-01T00:00:00.000",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --by-duration P20000DT3H4M5.6S",
    f"--reset-offsets --group {{group}} --topic {TOPIC} --by-duration PT0.5S",
    "--reset-offsets --group {group} --all-topics --to-current --export",
    "--reset-offsets --group {group} --from-file {plan} --execute",
    "--describe --group {group}",
    "--describe --group {group} --verbose",
    "--describe --group {group} --members",
    "--describe --group {group} --state --verbose",
    f"--delete-offsets --group {{group}} --topic {TOPIC}:0 --topic empty",
    "--describe --group {group}",
    "--delete --group {group}",
)
QUESTIONS: Final = (
    "--list",
    "--list --state",
    "--list --type",
    "--list --state --type",
    "--list --state stable,empty",
    "--list --state Empty --type classic",
    "--list --type Consumer",
    "--describe --all-groups",
    "--describe --all-groups --offsets --verbose",
    "--describe --all-groups --members",
    "--describe --all-groups --members --verbose",
    "--describe --all-groups --state",
    "--describe --all-groups --state --verbose",
    "--validate-regex visits.*",
)
# Both refuse. The script says so on standard output, and often ends with 0 nevertheless.
REFUSED: Final = (
    "--describe --group nobody",
    "--delete --group nobody",
    "--delete --group live-classic",
    "--delete-offsets --group live-consumer --topic visits",
    "--reset-offsets --group live-consumer --topic visits --to-latest --execute",
    "--reset-offsets --group new --topic visits --shift-by 1 --dry-run",
    "--reset-offsets --group new --topic visits:7 --to-latest --dry-run",
    "--reset-offsets --group new --topic visits --to-datetime yesterday --dry-run",
    "--reset-offsets --group new --topic visits --by-duration P1Y --dry-run",
    "--list --state sleepy",
    "--validate-regex (",
)
_NAMES: Final = {"ours": "group-of-ours", "theirs": "group-of-kafka"}
_NOT_PRINTED: Final = re.compile(r"Warn: .*|.* WARN .*")


def test_the_same_is_printed_and_done(kafka_broker: Judge, new_broker: NewBroker, tmp_path: Path) -> None:
    kafka = new_broker(tmp_path / "kafka", settings={"group.initial.rebalance.delay.ms": "0"})
    kafka.format()
    kafka.start()
    run, tools = Commands(kafka.address, tmp_path), Tools(kafka_broker, kafka.address, tmp_path)
    (tmp_path / "plan").write_text(f"{TOPIC},0,6\n{TOPIC},1,60\n")
    fill(run)
    found = differences(run, tools, tmp_path, CHANGES)
    with ExitStack() as members:
        for protocol in PROTOCOLS:
            members.enter_context(member(kafka.address, f"live-{protocol}", protocol))
        members.enter_context(member(kafka.address, "static", "classic", **{"group.instance.id": "fixed"}))
        run("groups", "--reset-offsets", "--group", "idle", "--topic", TOPIC, "--to-offset", "5", "--execute")
        found += differences(run, tools, tmp_path, QUESTIONS)
        theirs = tools.run_all([Call(f"consumer-groups {words}") for words in REFUSED])
        for words, told in zip(REFUSED, theirs, strict=True):
            ours = run("groups", *words.split())
            if ours.code != 2 or not (told.exit_code or re.search("Error: |is invalid", told.out)):
                found.append(f"{words}: {ours}, and Kafka {told}")
    assert not found, "\n".join(found)


def differences(run: Commands, tools: Tools, folder: Path, calls: tuple[str, ...]) -> list[str]:
    """What only one of the two prints, by call."""
    names = {side: {"group": group.ljust(14, "-"), "plan": str(folder / "plan")} for side, group in _NAMES.items()}
    theirs = tools.run_all([Call("consumer-groups " + words.format(**names["theirs"])) for words in calls])
    found = []
    for words, told in zip(calls, theirs, strict=True):
        ours = run("groups", *words.format(**names["ours"]).split())
        expected = lines(told.out.replace(names["theirs"]["group"], names["ours"]["group"]))
        if (ours.code, lines(ours.out)) != (0, expected):
            found.append("\n".join([words, *lines(ours.out), str(Told(ours.code, "", ours.err)), *expected, told.err]))
    return found


def lines(text: str) -> list[str]:
    """The lines that are not blank, in order, as Kafka's script prints groups and partitions in any."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip() and not _NOT_PRINTED.fullmatch(line))
