"""Build the documentation site from the Markdown pages of this repository, and a reference of all exported names.

    python docs/site build/docs        # writes build/docs/html

Sphinx fills the reference from the docstrings. No network is used, and a warning is an error.
"""

from __future__ import annotations

import gc
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from exported import packages
from reference import pages
from sphinx.cmd.build import build_main

SITE: Final = Path(__file__).resolve().parent
ROOT: Final = SITE.parents[1]
PAGES: Final = ("*.md", "docs/*.md", "docs/formats/*.md")
CONTENTS: Final = {
    "Guides": "docs/*",
    "Formats": "docs/formats/*",
    "Reference": "reference/*",
    "Project": "[!i]*",  # all pages at the root except index
}


def build(folder: Path) -> int:
    """Build the site in `folder`; return Sphinx's exit code."""
    gc.disable()  # Sphinx keeps its objects until the end, so collecting garbage only costs time: a third of all
    sources, html, doctrees = parts = [folder / name for name in ("sources", "html", "doctrees")]
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)
    for page in (page for pattern in PAGES for page in ROOT.glob(pattern)):
        _write(sources / page.relative_to(ROOT), _text(page))
    for module in packages():
        for place, text in pages(module):
            _write(sources / "reference" / place, text)
    (sources / "README.md").rename(sources / "index.md")
    places = map(str, [sources, html, "--conf-dir", SITE, "--doctree-dir", doctrees])
    return build_main(["--fail-on-warning", "--quiet", *places])


def _text(page: Path) -> str:
    """Return the text of a page for the site.

    README.md becomes index.md, so links to it are changed. README.md itself also gets the table of contents.
    """
    text = re.sub(r"(?<=[(/])README\.md(?=[)#])", "index.md", page.read_text("utf-8"))
    if page.name != "README.md":
        return text
    parts = (f"```{{toctree}}\n:caption: {part}\n:hidden:\n:glob:\n\n{glob}\n```" for part, glob in CONTENTS.items())
    return "\n\n".join([text, *parts])


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
