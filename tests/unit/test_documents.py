"""What stands in the pages for users is true: their Python is run, page by page, and prints what stands below it.

```python                      run in the page's one namespace, in a folder of its own
```python title="file.py"      written there, to be imported
```toml title="pyproject.toml" a package that is installed, as far as its entry points go
```                            right behind Python: what that printed
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from octavo.cli import export, handover, import_, main
from octavo.cli.demo import crash, keeping
from octavo.cli.demo.stage import Stage
from octavo.log import retention

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE: Final = re.compile(r'title="([^"]+)"')


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    content: str
    line: int  # where its content begins
    follows: bool  # nothing but an empty line is between it and the block before

    @property
    def title(self) -> str | None:
        """The file that it is."""
        found = _TITLE.search(self.kind)
        return None if found is None else found[1]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    found = []
    end = 0
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("content")) + 1
        found.append(Block(fence["kind"], fence["content"], line, not text[end : fence.start()].strip()))
        end = fence.end()
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, as empty as a reader's, and where modules are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "copies").mkdir()
    retention._installed.cache_clear()
    yield tmp_path
    retention._installed.cache_clear()
    for name in [path.stem for path in tmp_path.glob("*.py")]:
        sys.modules.pop(name, None)


def install(block: Block, folder: Path) -> None:
    """Has a package's entry points found, as an installer would."""
    project = tomllib.loads(block.content)["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run(page: str, block: Block, names: dict[str, Any]) -> str:
    """Runs a block; what it printed."""
    # Empty lines in front, so that a traceback tells the line of the page.
    code = compile("\n" * (block.line - 1) + block.content, str(ROOT / page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


PAGES: Final = ["README.md", "docs/log.md", "docs/clients.md", "docs/decoders.md", "docs/dump.md", "docs/explain.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, folder: Path) -> None:
    for block in blocks(page):  # first of all: nobody installs a package into a process that runs
        if block.kind.startswith("toml"):
            install(block, folder)
        elif block.title is not None:
            (folder / block.title).write_text(block.content)
    names: dict[str, Any] = {}
    printed: str | None = None
    ran = 0
    for block in blocks(page):
        if block.kind == "python":
            printed = run(page, block, names)
            ran += 1
            continue
        if block.kind == "" and block.follows and printed is not None:
            assert printed == block.content, f"{page}, line {block.line}"
        printed = None
    assert ran > (0 if page in ("docs/dump.md", "docs/explain.md") else 2)


def test_the_output_of_the_command_in_the_readme_is_its_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that writes the log comes first, as the page says, up to what it shows of it."""
    page = (ROOT / "README.md").read_text("utf-8")
    (block,) = [block for block in blocks("README.md") if block.content.startswith("$ octavo dump")]
    command, _, shown = block.content.partition("\n")
    introduction = page[: page.index(block.content)].rpartition("\n\n")[0].rpartition("\n\n")[2]
    writes = re.search("`octavo (demo [^`]*)`", introduction)
    assert writes is not None
    monkeypatch.setattr(Stage, "welcome", _leave)
    with pytest.raises(_Left):
        main(writes[1].split())
    assert main(command.removeprefix("$ octavo ").removesuffix(" | head -1").split()) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert json.loads(shown.replace("\n", "")) == json.loads(first)
    assert shown.replace("\n", "") == first


def test_the_commands_on_the_page_about_tables_have_the_options_that_they_use() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    commands = parser.add_subparsers(required=True)
    for command in (export, handover, import_):
        command.add_to(commands)
    text = (ROOT / "docs/tables.md").read_text("utf-8")
    found = re.findall(r"^(?:.*[ /])?octavo ((?:export|import|handover) /[^\n]*)$", text, re.MULTILINE)
    assert len(found) >= 8
    for line in found:
        parser.parse_args(shlex.split(line.partition(" >>")[0]))
    named = set(re.findall(r"`(--[a-z-]+)", text))
    known = "".join(each.format_help() for each in commands.choices.values()) + "--resync"
    assert not [option for option in named if option not in known]


class _Left(Exception):
    """Ends a demo that has written its logs and has shown nothing yet."""


def _leave(_: Stage) -> None:
    raise _Left


def words(text: str) -> Counter[str]:
    """The words of a drawn table, wherever its lines break; numbers are from the run, and are all the same here."""
    return Counter(re.sub(r"0x[0-9a-f]{8}|[\d,]+", "N", text).replace("─", "").split())


def test_the_readme_shows_what_the_tour_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (block,) = [block for block in blocks("README.md") if block.content.startswith("partition ")]
    keeping.write(tmp_path)
    crash.show(Stage(), tmp_path)
    drawn = capsys.readouterr().out.partition("   partition ")
    assert words(block.content) == words("".join(drawn[1:]).partition("\n  for report in")[0])
