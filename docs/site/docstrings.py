"""A Sphinx extension that reads Octavo's docstrings, which are Markdown, and its comments after attributes."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from docutils.utils import new_document
from exported import by_name, description, is_shown_as_base, packages
from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from octavo.log.clients import ported_calls

_NAME: Final = re.compile(r"([A-Za-z_]\w*)((?:\.\w+)*)")
_PARAMETER: Final = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*)((?: \(.*?\)|, .*?|): )")
_ATTRIBUTE: Final = re.compile(r"^( +(?:self\.)?[A-Za-z]\w*(?:: | = )[^#\n]*  )# (?!noqa|type:)", re.MULTILINE)
# The docstrings that Python itself gives to a NamedTuple.
_BY_PYTHON: Final = ("Alias for field number ", "Create new instance of ")


class Markdown(SphinxDirective):
    """A directive whose content is Markdown. Code in it that names a member of the class or module becomes a link."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        document = new_document(self.get_source_info()[0], self.state.document.settings)
        paragraphs = "\n".join(self.content).split("\n\n")
        MystParser().parse("\n\n".join(map(_list_parameters, paragraphs)), document)
        for code in list(document.findall(nodes.literal)):
            if _NAME.fullmatch(code.astext()):
                _link(code, code.astext(), self.env)
        return list(document.children)


class LinkExported(SphinxTransform):
    """On all pages, turn code that is an exported name into a link to the reference."""

    default_priority = 500

    def apply(self, **options: Any) -> None:
        for code in list(self.document.findall(nodes.literal)):
            found = _NAME.fullmatch(code.astext())
            if found and found[1] in by_name() and not isinstance(code.parent, nodes.reference | nodes.title):
                _link(code, by_name()[found[1]] + found[2], self.env)


def _link(code: nodes.literal, target: str, env: BuildEnvironment) -> None:
    """Turn `code` into a link. It stays plain code if Sphinx does not find the target in the end."""
    if isinstance(code.parent, pending_xref):
        code.parent["reftarget"] = target
        return
    link = pending_xref("", refdoc=env.docname, refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
    link["py:module"] = env.ref_context.get("py:module")
    link["py:class"] = env.ref_context.get("py:class")
    code.replace_self(link)
    link += code


def _list_parameters(paragraph: str) -> str:
    """Turn a paragraph of lines such as `name: what it is` into a list. Indented lines continue the one before."""
    lines = paragraph.split("\n")
    if not all(_PARAMETER.match(line) or line.startswith("    ") for line in lines) or lines[0].startswith(" "):
        return paragraph
    return "\n".join(_PARAMETER.sub(r"- **\1**\2", line) if line[0] != " " else line[2:] for line in lines)


def _as_markdown(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = description(name.rpartition(".")[2], value).split("\n")
    if not any(lines) or lines[0].startswith(_BY_PYTHON):
        lines.clear()
    else:
        lines[:] = [".. markdown::", "", *(f"   {line}" for line in lines), ""]


def _leave_out(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members inherited from outside Octavo, and attributes of other clients that only raise an error."""
    if type(value).__module__ == ported_calls.__name__:
        return True
    for origin in ("fget", "__objclass__"):  # of a property: its function; of a method written in C: its class
        value = getattr(value, origin, value)
    is_code = inspect.isroutine(value) or inspect.isclass(value)
    return True if is_code and not str(value.__module__).startswith("octavo.") else None


def _show_bases(app: Sphinx, name: str, value: type, options: Any, bases: list[Any]) -> None:
    bases[:] = filter(is_shown_as_base, bases)


def _read_attribute_comments() -> None:
    """Make Sphinx use comments as in `x: int  # what it is` as descriptions, as if they began with `#:`."""
    for name, module in list(sys.modules.items()):
        if name.startswith("octavo.") and module.__file__ is not None:
            source = Path(module.__file__).read_text("utf-8")
            analyzer = ModuleAnalyzer(_ATTRIBUTE.sub(r"\1#: ", source), name, module.__file__)
            ModuleAnalyzer.cache["module", name] = analyzer


def setup(app: Sphinx) -> None:
    """Register the extension. Sphinx calls this function."""
    packages()  # imports all packages that the reference describes
    _read_attribute_comments()
    for kind in ("hex", "values"):  # names of block languages that only our tests know
        app.add_lexer(kind, TextLexer)
    app.add_directive("markdown", Markdown)
    app.add_transform(LinkExported)
    app.connect("autodoc-process-docstring", _as_markdown)
    app.connect("autodoc-skip-member", _leave_out)
    app.connect("autodoc-process-bases", _show_bases)
