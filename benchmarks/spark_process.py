"""Run a Spark in a process of its own, which gets questions as JSON and prints its answer as JSON on the last line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from tests.spark import sessions


@dataclass(frozen=True)
class Session:
    """The settings of a Spark session."""

    cores: int = 2
    memory: str = "1g"
    settings: Mapping[str, str] = field(default_factory=dict)


def run_program(module: str, asked: Mapping[str, Any], session: Session) -> Any:
    """Run a module that starts Spark with `answering`; return what it prints as JSON on its last line."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": session.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **session.settings,
    }
    command = [sys.executable, "-m", module]
    if session.cores == 1 and shutil.which("taskset"):
        command = ["taskset", "--cpu-list", "0", *command]
    done = subprocess.run(
        command,
        input=json.dumps({"master": "local[2]", "settings": settings, **asked}),
        env=sessions.environment(),
        cwd=sessions.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError("Spark did not do it: what it said stands above")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def answering() -> Iterator[tuple[SparkSession, dict[str, Any]]]:
    """Yield a session as `run_program` asked for it, and the questions. For the program that it runs."""
    asked = json.load(sys.stdin)
    builder = SparkSession.builder.master(asked["master"]).appName("benchmark")
    for name, value in asked["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark, asked
    spark.stop()
