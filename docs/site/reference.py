"""The pages of the reference, as Markdown with directives that Sphinx fills from the docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from exported import description, exported_names, is_shown_as_base


def pages(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the place and text of each page: one for the module and, for a package, one for each name in it."""
    name = module.__name__
    names = exported_names(module)
    page = [f"# {name}", _directive("py:module", name), _directive("markdown", "", inspect.getdoc(module) or "")]
    if names:
        rows = [
            f"| {{py:obj}}`{one} <{name}.{one}>` | {_summary(description(one, getattr(module, one)))} |"
            for one in names
        ]
        page.append("\n".join(["| name | what it is |", "|---|---|", *rows]))
    if not hasattr(module, "__path__"):
        page += [_documented(module, one) for one in names]
    elif names:
        page.append(_directive("toctree", "", "\n".join([":hidden:", "", *(f"{name}/{one}" for one in names)])))
        for one in names:
            yield f"{name}/{one}.md", f"# {one}\n\n{_documented(module, one)}"
    yield f"{name}.md", "\n\n".join(page)


def _documented(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    options = ""
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        if any(map(is_shown_as_base, vars(value).get("__orig_bases__", value.__bases__))):
            options = "\n   :show-inheritance:"
    else:
        kind = "autofunction" if inspect.isroutine(value) else "autodata"
    return _directive("eval-rst", "", f".. {kind}:: {module.__name__}.{name}{options}")


def _summary(text: str) -> str:
    """Return the first paragraph, for a cell of a table."""
    paragraph, _, _ = text.partition("\n\n")
    return " ".join(paragraph.split()).replace("|", r"\|")


def _directive(name: str, argument: str, content: str = "") -> str:
    return f"````{{{name}}} {argument}\n{content}\n````"
