"""Generate the pages of the reference: Markdown with directives that Sphinx fills from the docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from exported import description, exported_names, is_alias, is_shown_as_base


def pages(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each page: one for the module and its exceptions, and one for each other name."""
    name = module.__name__
    page = [f"# {name}", _directive("py:module", name), _directive("markdown", "", inspect.getdoc(module) or "")]
    values = {one: getattr(module, one) for one in exported_names(module)}
    exceptions = {one: value for one, value in values.items() if _is_exception(value)}
    others = {one: value for one, value in values.items() if one not in exceptions}
    if others:
        rows = [f"| {{py:obj}}`{one} <{name}.{one}>` | {_summary(one, value)} |" for one, value in others.items()]
        page.append("\n".join(["| name | what it is |", "|---|---|", *rows]))
        page.append(_directive("toctree", "", "\n".join([":hidden:", "", *(f"{name}/{one}" for one in others)])))
    page += [_documented(f"{name}.{one}", value) for one, value in exceptions.items()]
    yield f"{name}.md", "\n\n".join(page)
    for one, value in others.items():
        yield f"{name}/{one}.md", f"# {one}\n\n{_documented(f'{name}.{one}', value)}"


def _is_exception(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _documented(name: str, value: object) -> str:
    if is_alias(name.rpartition(".")[2], value):
        alias = _directive("eval-rst", "", f".. autodata:: {name}\n   :no-value:")
        if not inspect.isclass(value):
            return alias
        return f"{alias}\n\n{_documented(f'{value.__module__}.{value.__name__}', value)}"
    if not inspect.isclass(value):
        return _directive("eval-rst", "", f".. autofunction:: {name}")
    lines = [f".. autoclass:: {name}"]
    if _is_exception(value):  # its base classes are on the same page, so inherited members are not repeated
        lines = [f".. autoexception:: {name}", "   :no-inherited-members:"]
    if any(map(is_shown_as_base, vars(value).get("__orig_bases__", value.__bases__))):
        lines.append("   :show-inheritance:")
    return _directive("eval-rst", "", "\n".join(lines))


def _summary(name: str, value: object) -> str:
    """Return the first paragraph of the description as one line, for a cell of a table."""
    paragraph, _, _ = description(name, value).partition("\n\n")
    return " ".join(paragraph.split()).replace("|", r"\|")


def _directive(name: str, argument: str, content: str = "") -> str:
    return f"````{{{name}}} {argument}\n{content}\n````"
