"""What every page has to satisfy: nothing overflows, and everything can be read."""

from __future__ import annotations

from typing import Final

from tests.browser.chromium import Page

# Texts whose contrast with the colour behind them is less than 4.5 (WCAG AA). Colours are painted to be compared: they
# may be given in any form, and may be transparent.
_LOW_CONTRAST: Final = """
(() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const painted = (colors) => {
    pen.clearRect(0, 0, 1, 1);
    for (const color of colors) { pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const bright = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length) continue;
    const behind = [];
    for (let each = e; each; each = each.parentElement) behind.unshift(getComputedStyle(each).backgroundColor);
    const a = bright(painted(behind)), b = bright(painted([...behind, getComputedStyle(e).color]));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(e.className + " " + e.textContent.slice(0, 20) + " " + contrast.toFixed(2));
  }
  return found.slice(0, 10);
})()
"""
_BEYOND: Final = (
    "[...document.querySelectorAll('body *')].filter(e => e.getClientRects().length"
    " && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
)


def assert_looks_right(page: Page, *, width: int, dark: bool) -> None:
    """Nothing reaches beyond the width, texts can be told from what is behind them, and dark is dark."""
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.run(_BEYOND) == []
    assert page.run(_LOW_CONTRAST) == []
    lightness = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    assert (max(lightness) < 60) == dark
