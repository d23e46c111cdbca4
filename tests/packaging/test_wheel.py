"""A wheel works in a new environment away from the checkout: imported, called, and found by Spark."""

from __future__ import annotations

import json
import shlex
import tarfile
import zipfile
from pathlib import Path

import pytest

import octavo
from tests.packaging.environment import ROOT, Environment, build
from tests.spark import sessions

WRITE = """
from octavo.log import DataDirectory, Producer

with DataDirectory.open("data") as data, Producer(data) as producer:
    data.create_topic("orders", 1)
    for number in range(3):
        producer.send("orders", b"a notebook", key=b"order-%d" % number, timestamp_ms=number)
"""
IMPORTED = """
import json, sys
import octavo.cli, octavo.inspect, octavo.log, octavo.records, octavo.schemas, octavo.spark, pyspark_octavo
print(json.dumps([octavo.__file__, pyspark_octavo.__file__, *sys.path]))
"""
READ = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").getOrCreate()
orders = spark.read.format("octavo").option("subscribe", "orders").load("data")
keys = [row.key for row in orders.selectExpr("CAST(key AS STRING) AS key").collect()]
of_workers = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("octavo").__file__).collect()
print(json.dumps({"keys": sorted(keys), "worker": of_workers[0]}))
spark.stop()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("built") / "wheel")


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A new one, with Octavo and what its metadata say that it needs for Spark."""
    return Environment(tmp_path_factory.mktemp("new") / "environment", wheel, extra="spark")


@pytest.fixture
def written(environment: Environment, tmp_path: Path) -> Path:
    """A folder with a data directory that the installed package wrote."""
    done = environment.run("python", "-c", WRITE, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return tmp_path


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    sources = {
        path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name: data for name, data in content(wheel).items() if ".dist-info/" not in name}
    assert packed == sources
    assert "octavo/py.typed" in packed


def test_the_sdist_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which the first patches of 3.11 lack
        archive.extractall(tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build("wheel", source, tmp_path / "again")
    assert again.name == wheel.name
    assert content(again) == content(wheel)


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_is_imported_from_where_it_was_installed(environment: Environment, tmp_path: Path) -> None:
    done = environment.run("python", "-c", IMPORTED, folder=tmp_path)
    assert done.stderr == ""
    ours, of_spark, *path = json.loads(done.stdout)
    assert Path(ours) == environment.packages / "octavo" / "__init__.py"
    assert Path(of_spark) == environment.packages / "pyspark_octavo" / "__init__.py"
    assert not [each for each in path if each and Path(each).is_relative_to(ROOT / "src")]


def test_the_command_is_there(environment: Environment, written: Path) -> None:
    told = environment.run("octavo", "--version", folder=written)
    assert (told.stdout, told.stderr) == (f"octavo {octavo.__version__}\n", "")
    assert environment.run("octavo", "--help", folder=written).stdout.startswith("usage: octavo")
    segment = "data/orders-0/00000000000000000000.log"
    dumped = environment.run("octavo", "dump", segment, "--format", "jsonl", folder=written)
    assert dumped.stderr == ""
    assert [json.loads(line)["offset"] for line in dumped.stdout.splitlines()] == [0, 1, 2]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("java")
def test_spark_finds_and_reads_it_without_being_told(environment: Environment, written: Path) -> None:
    settings = shlex.join(f"--conf={name}={value}" for name, value in sessions.settings().items())
    done = environment.run(
        "python",
        "-c",
        READ,
        folder=written,
        PYSPARK_SUBMIT_ARGS=f"{settings} pyspark-shell",
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["keys"] == ["order-0", "order-1", "order-2"]
    assert Path(found["worker"]).is_relative_to(environment.packages)
