"""Write docs/compatibility.md."""

from tests.clients.document import DOCUMENT, render

DOCUMENT.write_text(render())
