"""How many files `octavo serve` may open: as many as the system allows, which it does not always say."""

from __future__ import annotations

import resource

import pytest

from octavo.cli.serve import _raise_limit

LINUX = (1024, 524_288)
MAC = (256, resource.RLIM_INFINITY)


@pytest.mark.parametrize(
    ("limits", "largest", "expected"),
    [
        (LINUX, 1 << 20, (524_288, 524_288)),
        ((524_288, 524_288), 1 << 20, None),
        ((1024, 4096), 1 << 20, (4096, 4096)),
        ((4096, 4096), 1 << 20, None),  # and it may not be raised above that
        (MAC, 10_240, (10_240, resource.RLIM_INFINITY)),
        ((20_000, resource.RLIM_INFINITY), 20_000, None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 10_240, None),
    ],
)
def test_the_limit_is_raised(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], largest: int, expected: tuple[int, int] | None
) -> None:
    """largest: what the system accepts"""
    made: list[tuple[int, int]] = []

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        if wanted[0] == resource.RLIM_INFINITY or wanted[0] > largest:
            raise ValueError("not allowed to raise maximum limit")
        if limits[1] != resource.RLIM_INFINITY and wanted[0] > limits[1]:
            raise ValueError("current limit exceeds maximum limit")
        made.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    _raise_limit()
    assert made == ([] if expected is None else [expected])
