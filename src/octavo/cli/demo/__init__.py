"""`octavo demo`: show in a terminal what Octavo does, in well under a minute."""

from __future__ import annotations

import argparse

from octavo.cli.exits import FINE


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo demo` and its options to the parser."""
    parser = commands.add_parser(
        "demo",
        help="show what Octavo does, in under a minute",
        description="Builds batches in every format, shows one byte by byte, decodes, converts, damages and mends, "
        "sends a million records through Arrow, writes a log, crashes it and recovers it, sends in transactions, "
        "compacts, serves a directory to a Kafka client, asks the log by Spark SQL, writes the answer to it, "
        "exports it to a table, imports that again, and leaves two pages to look at.",
    )
    parser.add_argument(
        "--dir",
        metavar="DIR",
        help="where to leave the small logs that it writes (default: a new temporary folder)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo: show all its chapters, one after another."""
    from pathlib import Path

    from octavo.cli.demo import (
        bytes_,
        conversion,
        crash,
        damage,
        delivering,
        formats,
        keeping,
        logs,
        million,
        pages,
        serving,
        tables,
    )
    from octavo.cli.demo.stage import Stage

    folder = logs.write(Path(arguments.dir) if arguments.dir else None)
    stage = Stage()
    stage.welcome()
    formats.show(stage)
    bytes_.show(stage)
    conversion.show(stage)
    damage.show(stage)
    million.show(stage)
    data = logs.place_for_data(folder)
    keeping.show(stage, data)
    crash.show(stage, data)
    delivering.show(stage, data)
    missing = serving.what_is_missing()
    if missing:
        stage.say(f"A broker is not shown: {missing}.")
        tables.show(stage, data)
    else:
        with serving.Clicks(data.with_name(f"{data.name}-served")) as clicks:
            serving.show(stage, clicks)
            tables.show(stage, data, clicks)
    pages.show(stage, folder, data)
    logs.show(stage, folder, data)
    return FINE
