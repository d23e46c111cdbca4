"""Correct the leader epochs of batches: no checksum covers them."""

from __future__ import annotations

from bisect import bisect_left

from octavo.inspect.salvage.order import Chain, heaviest
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.records.layout import MAX_INT32, NO_LEADER_EPOCH


def restore_epochs(chain: Chain, known: LeaderEpochs) -> None:
    """Correct leader epochs that contradict the batches around them: epochs never decrease.

    `known` are the epochs of the source's checkpoint, if it can be read. It has every epoch before a batch has it, so
    it decides about an epoch that only the last batch has. A wrong epoch becomes the one that the checkpoint has for
    the offset, if that fits, and otherwise that of the batch before.
    """
    runs = [run for run in chain.runs if run.epoch >= 0 or run.epoch < -1]
    # Epochs that do not decrease are like intervals that increase, once the number of the run is part of them.
    items = [(run.epoch * len(runs) + at, run.epoch * len(runs) + at, run.count) for at, run in enumerate(runs)]
    chosen = [at for at in heaviest(items) if runs[at].epoch >= 0]
    latest = known.latest
    if latest is not None and len(chosen) > 1 and chosen[-1] == len(runs) - 1 and runs[-1].count == 1:
        chosen = chosen[:-1] if runs[-1].epoch > latest.epoch else chosen
    for at in sorted(set(range(len(runs))) - set(chosen)):
        if runs[at].count > 1:
            continue  # several batches agree, and this is no damage
        if not chosen:  # no batch has an epoch, and this one has one that there is not
            runs[at].written_epoch = NO_LEADER_EPOCH
            continue
        place = bisect_left(chosen, at)
        before = runs[chosen[max(place - 1, 0)]].epoch
        behind = runs[chosen[place]].epoch if place < len(chosen) else MAX_INT32
        epoch = known.epoch_for_offset(runs[at].base)
        runs[at].written_epoch = epoch if epoch is not None and before <= epoch <= behind else before
