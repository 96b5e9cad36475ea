"""Needs are whole blocks."""

from gateway.routing.need import BLOCK_SIZE_UNKNOWN, need_of


def test_blocks_are_whole_and_counted_for_each_choice() -> None:
    assert need_of(100, 1, 1, 32).blocks == 4
    assert need_of(96, 0, 3, 32).blocks == 9


def test_an_unknown_block_size_is_taken_as_vllms_default() -> None:
    assert need_of(16, 1, 1, None).block_size == BLOCK_SIZE_UNKNOWN
    assert need_of(16, 1, 1, None).blocks == 2
