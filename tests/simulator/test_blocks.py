"""The block pool: counts stay right in any order of calls, and cached content is found until evicted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.blocks import NO_HIT, BlockPool, Hit, Holding, blocks_for


def filled(pool: BlockPool, keys: list[str]) -> Holding:
    holding = Holding()
    pool.take(holding, len(keys))
    pool.seal(holding, keys)
    return holding


def test_one_block_of_the_pool_is_never_given_out() -> None:
    pool = BlockPool(4)
    assert pool.usable == 3
    with pytest.raises(ValueError, match="4 blocks asked for, 3 free"):
        pool.take(Holding(), 4)


def test_a_pool_without_a_usable_block_is_refused() -> None:
    with pytest.raises(ValueError, match="null block"):
        BlockPool(1)


def test_without_caching_nothing_is_remembered() -> None:
    pool = BlockPool(8)
    pool.release(filled(pool, ["a", "b"]))
    assert pool.find(["a", "b"]) == NO_HIT
    assert pool.free == 7


def test_released_content_is_free_and_still_found() -> None:
    pool = BlockPool(8, caching=True)
    pool.release(filled(pool, ["a", "b", "c"]))
    assert (pool.free, pool.used) == (7, 0)
    assert pool.find(["a", "b", "x"]) == Hit(blocks=2, idle=2)


def test_a_block_held_by_two_is_counted_once_and_freed_with_the_last() -> None:
    pool = BlockPool(8, caching=True)
    first, second = filled(pool, ["a", "b"]), Holding()
    pool.share(second, ["a"])
    assert pool.used == 2
    pool.release(first)
    assert (pool.used, pool.find(["a"])) == (1, Hit(1, 0))
    pool.release(second)
    assert pool.used == 0


def test_the_longest_unused_content_is_evicted_first_and_a_prefix_from_its_tail() -> None:
    pool = BlockPool(5, caching=True)
    pool.release(filled(pool, ["old-1", "old-2"]))
    pool.release(filled(pool, ["new-1", "new-2"]))
    pool.take(Holding(), 1)
    assert pool.find(["old-1", "old-2"]).blocks == 1
    assert pool.find(["new-1", "new-2"]).blocks == 2


def test_the_same_content_made_twice_is_remembered_once() -> None:
    pool = BlockPool(8, caching=True)
    first, second = filled(pool, ["a"]), filled(pool, ["a"])
    assert pool.used == 2
    pool.release(second)
    pool.release(first)
    assert (pool.used, pool.find(["a"])) == (0, Hit(1, 1))


@given(
    st.lists(st.tuples(st.sampled_from(["new", "drop"]), st.integers(0, 4), st.integers(0, 5)), max_size=60)
)
def test_free_and_held_always_add_up(calls: list[tuple[str, int, int]]) -> None:
    pool = BlockPool(10, caching=True)
    held: list[Holding] = []
    for call, family, length in calls:
        if call == "drop" and held:
            pool.release(held.pop(family % len(held)))
        elif call == "new":
            keys = [f"{family}-{index}" for index in range(length)]
            hit = pool.find(keys)
            if length - hit.blocks + hit.idle > pool.free:
                continue
            holding = Holding()
            pool.share(holding, keys[: hit.blocks])
            pool.take(holding, length - hit.blocks)
            pool.seal(holding, keys[hit.blocks :])
            held.append(holding)
        distinct = {key for holding in held for key in holding.keys if key is not None}
        private = sum(holding.blocks - sum(key is not None for key in holding.keys) for holding in held)
        assert pool.used == len(distinct) + private
        assert 0 <= pool.free <= pool.usable
    for holding in held:
        pool.release(holding)
    assert pool.free == pool.usable


@given(st.integers(1, 10_000), st.integers(1, 512))
def test_blocks_hold_all_tokens_and_no_block_is_empty(tokens: int, size: int) -> None:
    assert (blocks_for(tokens, size) - 1) * size < tokens <= blocks_for(tokens, size) * size
