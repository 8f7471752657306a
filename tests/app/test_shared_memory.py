"""The failures that processes share, and what a worker leaves to the process that replaces it."""

import os

import pytest

from semsearch.app.shared_memory import ERROR_BYTES, Handover, SharedFailures


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and newer
def test_a_process_reads_what_another_one_wrote_last() -> None:
    handover = Handover()
    assert handover.read() is None
    for content in (b"a longer content", b"another"):
        child = os.fork()
        if child == 0:
            handover.write(content)
            os._exit(0)
        os.waitpid(child, 0)
        assert handover.read() == content


@pytest.mark.parametrize("content", [b"0123", b"01234567", b"0123456789"])
def test_content_without_room_for_all_of_it_is_not_read_as_something_else(content: bytes) -> None:
    handover = Handover(room=8)
    handover.write(b"abcdefgh")
    handover.write(content)
    assert handover.read() == (content if len(content) <= 8 else b"")


def test_content_of_which_a_killed_process_wrote_a_part_is_not_read() -> None:
    handover = Handover()
    handover.write(b"the version")
    handover._memory[-1:] = b"x"  # beyond the content: nothing is wrong
    assert handover.read() == b"the version"
    handover._memory[45:46] = b"x"
    assert handover.read() == b""


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and newer
def test_failures_of_a_process_are_counted_for_all_and_the_last_error_is_there_until_a_success() -> None:
    shared = SharedFailures()
    assert (shared.failures, shared.error, shared.waiting) == (0, None, 0)
    for error in ("first", "ż" * ERROR_BYTES):
        child = os.fork()
        if child == 0:
            shared.fail(error)
            shared.waiting = 7
            os._exit(0)
        os.waitpid(child, 0)
    assert (shared.failures, shared.error, shared.waiting) == (2, "ż" * (ERROR_BYTES // 2), 7)
    shared.succeed()
    assert (shared.failures, shared.error) == (2, None)
