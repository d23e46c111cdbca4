"""What becomes of a change of a log that was interrupted."""

from pathlib import Path

import pytest

from octavo.errors import Closed, LogError
from octavo.log.names import TopicPartition
from octavo.log.ownership.owner import Owner
from octavo.log.writing.unfinished import NOT_UNDOABLE, SETTLED, ChangeNote


@pytest.fixture
def change(tmp_path: Path) -> ChangeNote:
    return ChangeNote(TopicPartition("events", 0), Owner(tmp_path))


def test_a_change_that_can_be_undone_is_undone_once(change: ChangeNote) -> None:
    undone: list[int] = []
    change.unfinished = 7
    change.settle(undone.append)
    change.settle(undone.append)
    assert undone == [7]
    assert (change.unfinished, change.failure) == (SETTLED, None)
    change.check_open()


def test_any_other_change_is_a_failure(change: ChangeNote) -> None:
    change.unfinished = NOT_UNDOABLE
    change.settle(lambda _: pytest.fail("it cannot be undone"))
    assert change.failure is not None
    with pytest.raises(LogError, match="events-0 takes no more since a change of it was interrupted"):
        change.check_open()


def test_an_undoing_that_is_interrupted_is_not_tried_again(change: ChangeNote) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    change.unfinished = 7
    with pytest.raises(KeyboardInterrupt):
        change.settle(interrupted)
    change.settle(lambda _: pytest.fail("it may be half undone"))
    assert change.failure is not None


def test_an_earlier_failure_stays(change: ChangeNote) -> None:
    change.unfinished = 7
    with pytest.raises(OSError, match="the disk"), change.or_fail():
        raise OSError("the disk is gone")
    change.settle(lambda _: pytest.fail("the log has failed"))
    assert str(change.failure) == "the disk is gone"


def test_a_closed_log_takes_no_changes(change: ChangeNote) -> None:
    change.is_open = False
    with pytest.raises(Closed, match="events-0 is closed"):
        change.check_open()
