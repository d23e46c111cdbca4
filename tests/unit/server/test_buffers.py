"""Buffers that are used again, and the bound for requests that are arriving."""

from __future__ import annotations

import os

import pytest

from octavo.server.buffers import LARGEST, SMALLEST, BufferPool, RequestMemory


def test_a_buffer_that_was_given_back_is_used_again() -> None:
    pool = BufferPool()
    buffer = pool.take(SMALLEST + 1)
    assert len(buffer) == 2 * SMALLEST
    pool.give_back(buffer)
    assert pool.take(2 * SMALLEST) is buffer
    assert pool.take(2 * SMALLEST) is not buffer


def test_large_buffers_and_many_are_not_kept() -> None:
    pool = BufferPool()
    large = pool.take(LARGEST + 1)
    pool.give_back(large)
    assert pool.take(LARGEST + 1) is not large
    several = [pool.take(LARGEST) for _ in range(20)]
    for buffer in several:
        pool.give_back(buffer)
    again = [pool.take(LARGEST) for _ in range(20)]
    assert sum(buffer in several for buffer in again) == (32 << 20) // LARGEST


def test_requests_are_let_in_as_long_as_there_is_any_room() -> None:
    memory = RequestMemory(100, 60)
    assert memory.take(60)
    assert memory.take(60)  # passes the limit
    assert not memory.take(1)
    memory.give_back(60)
    assert memory.take(1)


def test_a_system_that_does_not_tell_its_memory_has_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    memory = RequestMemory(0, 1)
    assert memory.take(1 << 30)
    assert not memory.take(1 << 30)


def test_without_a_limit_there_is_still_one() -> None:
    memory = RequestMemory(-1, 100 << 20)
    assert memory.take(1 << 60)
    assert not memory.take(1)
