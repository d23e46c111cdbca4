"""Drive a headless Chromium by its DevTools protocol, over two pipes.

The protocol needs no library: a message is JSON that ends with a zero byte. The browser reads from its descriptor 3 and
writes to 4. Nothing listens on a port, and the browser ends with the pipes.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_PATIENCE: Final = 60.0  # seconds for an answer
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # which root may not have, and a container may not allow; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)
_KEYS: Final = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class Browser:
    """A running Chromium."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        # A shell moves the pipes to the numbers that Chromium expects.
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._unread = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """Open a file in a new tab of this size."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session, target)
        page.resize(width, height)
        page.prefer(dark=dark)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.go_to(path.absolute().as_uri())
        return page

    def call(self, method: str, parameters: Mapping[str, object] | None = None, session: str = "") -> dict[str, Any]:
        """Send a command and return its answer. Events that come meanwhile are kept."""
        self._number += 1
        number = self._number
        message: dict[str, object] = {"id": number, "method": method, "params": dict(parameters or {})}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self.events.append(answer)

    def wait_for(self, event: str, session: str) -> dict[str, Any]:
        """Wait until an event has come, and return it."""
        while True:
            for each in self.events:
                if each.get("method") == event and each.get("sessionId") == session:
                    self.events.remove(each)
                    return dict(each["params"])
            self.events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("Chromium has not answered" if not ready else "Chromium has ended")
            self._unread += data
        message, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(message))

    def close(self) -> None:
        """End the browser."""
        try:
            self.call("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target

    def call(self, method: str, parameters: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send a command to this tab."""
        return self._browser.call(method, parameters, self._session)

    def go_to(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        self.call("Page.navigate", {"url": url})
        self._browser.wait_for("Page.loadEventFired", self._session)

    def resize(self, width: int, height: int) -> None:
        """Give the tab a size in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, *, dark: bool) -> None:
        """Make the dark or the light look the preferred one."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"features": [scheme]})

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        done = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def center(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view, and return its center."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'nearest'});"
            "const b = e.getClientRects()[0]; return [b.x + Math.min(b.width, 30) / 2, b.y + b.height / 2]; })()"
        )
        return float(box[0]), float(box[1])

    def hover(self, selector: str) -> None:
        """Move the mouse to an element."""
        x, y = self.center(selector)
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def hover_at(self, x: float, y: float) -> None:
        """Move the mouse to a place."""
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, selector: str) -> None:
        """Click on an element."""
        x, y = self.center(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", event)

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            code = _KEYS[key]
            event: dict[str, object] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            if key == "Enter":
                event["text"] = "\r"
            self.call("Input.dispatchKeyEvent", {"type": "keyDown", **event})
            self.call("Input.dispatchKeyEvent", {"type": "keyUp", **event})

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save what the tab shows as a PNG file."""
        shot = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self) -> list[str]:
        """Return the addresses that the tab has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("method") == "Network.requestWillBeSent" and event.get("sessionId") == self._session
        ]

    def complaints(self) -> list[str]:
        """Return the errors and warnings of scripts, and of the content security policy."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(str(event["params"]["entry"]["text"]))
        return found

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", {"targetId": self._target})
        self._browser.events = [each for each in self._browser.events if each.get("sessionId") != self._session]
