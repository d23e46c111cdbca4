"""Measure memory and start-up, which need a fresh process."""

from __future__ import annotations

import tempfile
from statistics import median
from typing import Final

from benchmarks.fresh import run_fresh
from benchmarks.measure import Result, tell, within
from benchmarks.records.shapes import segments

_MAX_RESIDENT_MIB: Final = 256
_FIRST_ANSWER_S: Final = 1.0
_ALL_COMPILED_S: Final = 6.0
_FIRST_USES: Final = 5  # rounds at most, as each takes half a minute


def resident_memory(*, scale: int) -> list[Result]:
    """Measure how much memory it takes to decode a mapped segment in chunks, not counting the pages of the file."""
    results = []
    for data_set in segments(scale):
        size = data_set.path.stat().st_size
        name = f"resident memory to decode {size / 2**30:.2g} GiB, {data_set.codec}"
        tell(name)
        told = run_fresh("segment", str(data_set.path), OCTAVO_KERNELS="compiled")
        assert told["count"] == data_set.count
        results.append(within(name, told["added_mib"], _MAX_RESIDENT_MIB, "MiB"))
    return results


def first_use(*, scale: int, repeat: int) -> list[Result]:
    """Measure the first use on a machine: the seconds to the first columns, and until everything is compiled."""
    tell("first use")
    large = segments(scale)[0].path
    first: dict[str, list[float]] = {"a batch of one record": [], "a mapped segment": []}
    compiled = []
    for _ in range(min(repeat, _FIRST_USES)):
        for name, arguments in zip(first, (("arrow",), ("segment", str(large))), strict=True):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                told = run_fresh("start", *arguments, OCTAVO_KERNELS="auto", OCTAVO_CACHE_DIR=folder)
                first[name].append(told["seconds"])
                run_fresh("start", "everything", OCTAVO_CACHE_DIR=folder)  # waits for what is being compiled
        with tempfile.TemporaryDirectory() as folder:
            compiled.append(run_fresh("start", "everything", OCTAVO_CACHE_DIR=folder)["seconds"])
    return [
        *(
            within(f"first useful answer, new machine, {name}", median(taken), _FIRST_ANSWER_S, "s")
            for name, taken in first.items()
        ),
        within("everything compiled, new machine", median(compiled), _ALL_COMPILED_S, "s"),
    ]


def start_up(*, repeat: int) -> list[Result]:
    """Measure the seconds from the first import to the first batch, decoded to objects and to Arrow."""
    tell("start-up")
    plain = [run_fresh("start", "objects") for _ in range(repeat)]
    loaded = {module for told in plain for module in told["heavy"]}
    with tempfile.TemporaryDirectory() as folder:
        arrow = [run_fresh("start", "arrow", OCTAVO_KERNELS="interpreted") for _ in range(repeat)]
        afresh = run_fresh("start", "arrow", OCTAVO_KERNELS="compiled", OCTAVO_CACHE_DIR=folder)
        cached = [
            run_fresh("start", "arrow", OCTAVO_KERNELS="compiled", OCTAVO_CACHE_DIR=folder) for _ in range(repeat)
        ]
    client = median(run_fresh("start", "kafka-python")["seconds"] for _ in range(repeat))
    return [
        Result(
            name=f"heavy modules imported for one batch of objects{''.join(f', {name}' for name in sorted(loaded))}",
            ratio=0.0 if loaded else 1.0,
            ours=len(loaded),
            peer=0,
            unit="modules",
            target=1.0,
        ),
        *(
            Result(
                name=f"start-up, {name} vs kafka-python, objects",
                ratio=client / taken,
                ours=taken,
                peer=client,
                unit="s",
            )
            for name, taken in (
                ("objects", median(told["seconds"] for told in plain)),
                ("Arrow, interpreted", median(told["seconds"] for told in arrow)),
                ("Arrow, kernels from the cache", median(told["seconds"] for told in cached)),
                ("Arrow, kernels compiled afresh", afresh["seconds"]),
            )
        ),
    ]
