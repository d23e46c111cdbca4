"""The frame of a page: title, styles, script, and what the page may do."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib import resources
from typing import Final

from octavo import __version__

MARK: Final = "<!doctype html>\n<!-- Written by Octavo -->\n"  # how every page begins
_LONGEST: Final = 600  # characters of a text that comes from data


def text(said: str) -> str:
    """Escape text for HTML, also in attributes. Unprintable characters become visible; long text is shortened."""
    shown = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    return escape("".join(each if each.isprintable() else ascii(each)[1:-1] for each in shown))


def document(title: str, body: str, *, styles: tuple[str, ...], script: str) -> str:
    """Return a whole page. `styles` and `script` name files of this package; `body` is HTML."""
    style = "\n".join(_resource(name) for name in styles)
    code = _resource(script)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(code)}; base-uri 'none'; form-action 'none'"
    )
    return (
        f"{MARK}"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="Octavo {__version__}">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{code}</script>\n</body>\n</html>\n"
    )


@cache
def _resource(name: str) -> str:
    return resources.files("octavo.inspect.pages").joinpath(name).read_text("utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
