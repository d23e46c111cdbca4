"""The tests that `make without-linux` leaves out of those that it runs, each with the reason."""

from __future__ import annotations

from typing import Final

_MEMORY: Final = "they ask /proc for the memory, the processor time or the open files of a broker"
_TELLS: Final = "the system tells who has a POSIX lock, and so the file need not"
_LOSES: Final = "a POSIX lock ends when its process closes any descriptor of the file"
_OWN: Final = "they show Linux's own way"
_GIVES_BACK: Final = "only Linux is asked to take the memory of LLVM's code back"

_BY_REASON: Final = {
    _GIVES_BACK: [
        "tests/unit/records/kernels/compilation/test_compiler_pages.py::test_code_is_given_back_and_runs_again",
    ],
    _OWN: [
        "tests/unit/server/test_poller.py::test_linux_has_its_own",
    ],
    _MEMORY: [
        "tests/server/test_fuzz.py::test_changed_conversations_hurt_nobody",
        "tests/server/test_hostile.py::test_two_thousand_idle_connections_take_little",
        "tests/server/test_hostile.py::test_what_a_bomb_took_is_given_back",
        "tests/server/test_hostile.py::test_a_request_takes_memory_as_it_arrives_and_not_as_it_is_announced",
        "tests/server/test_hostile.py::test_clients_that_do_not_read_what_they_fetch_take_little_and_give_it_back",
        "tests/server/test_hostile.py::test_clients_that_shut_down_their_side_while_they_wait_do_not_keep_the_broker_busy",
        "tests/server/test_hostile.py::test_when_descriptors_run_out_the_others_are_served_and_the_log_has_files",
    ],
    _TELLS: [
        "tests/unit/log/ownership/test_lock.py::test_an_owner_that_the_file_does_not_tell_is_another_process",
        "tests/unit/log/ownership/test_lock.py::test_a_lock_file_that_is_a_link_to_somebody_s_file_is_locked_and_not_overwritten",
        "tests/unit/log/ownership/test_lock.py::test_a_full_disk_does_not_keep_the_lock_from_being_taken",
    ],
    _LOSES: [
        "tests/unit/log/ownership/test_lock_lost.py::test_a_directory_that_is_copied_stays_locked",
    ],
}

LEFT_OUT: Final = {name: reason for reason, names in _BY_REASON.items() for name in names}
