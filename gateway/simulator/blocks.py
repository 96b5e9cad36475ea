"""The pool of KV cache blocks: how many are free, who holds how many, and which free ones still hold a known
prefix.

Knows nothing of requests, queues or time. After vLLM's `v1/core/block_pool.py` (0.33.0): one null block is
never given out, and a block whose content is cached but which nobody holds is free: it is found again by its
key, or evicted, longest unused first, when plain free blocks run out.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

BlockKey = Hashable


class Holding:
    """Blocks that one request holds: all of them counted, the leading full ones with the key of their
    content.
    """

    __slots__ = ("blocks", "keys")

    def __init__(self) -> None:
        self.blocks = 0
        # One entry for each sealed block; None where another block already holds the same content.
        self.keys: list[BlockKey | None] = []


class Hit(NamedTuple):
    """Leading blocks found by content: all of them, and those of them that must first leave the free pool."""

    blocks: int
    idle: int


NO_HIT = Hit(0, 0)


class BlockPool:
    """Counts blocks; `caching` decides whether content is remembered after its holder let go.

    Callers ask `free` before they take: taking more than is free is a fault of the caller and raises
    ValueError.
    """

    def __init__(self, num_blocks: int, *, caching: bool = False) -> None:
        if num_blocks < 2:
            raise ValueError("a pool needs the null block and at least one more")
        self.usable = num_blocks - 1
        self.free = self.usable
        self.caching = caching
        self._holders: dict[BlockKey, int] = {}
        self._idle: dict[BlockKey, None] = {}

    @property
    def used(self) -> int:
        """Blocks held by somebody."""
        return self.usable - self.free

    def find(self, keys: Sequence[BlockKey]) -> Hit:
        """How many leading blocks of this content are in the pool."""
        if not self.caching:
            return NO_HIT
        found = idle = 0
        for key in keys:
            if key in self._idle:
                idle += 1
            elif key not in self._holders:
                break
            found += 1
        return Hit(found, idle)

    def share(self, holding: Holding, keys: Sequence[BlockKey]) -> None:
        """Let `holding` hold the blocks with these keys, all of them found before, ahead of any block of its
        own.
        """
        for key in keys:
            if key in self._idle:
                del self._idle[key]
                self._holders[key] = 1
                self.free -= 1
            else:
                self._holders[key] += 1
            holding.keys.append(key)
        holding.blocks += len(keys)

    def take(self, holding: Holding, count: int) -> None:
        """Give `count` fresh blocks, evicting cached content that nobody holds where plain free blocks run
        out.
        """
        if count > self.free:
            raise ValueError(f"{count} blocks asked for, {self.free} free")
        self.free -= count
        holding.blocks += count
        while len(self._idle) > self.free:
            del self._idle[next(iter(self._idle))]

    def seal(self, holding: Holding, keys: Sequence[BlockKey]) -> None:
        """The next blocks of `holding` are full now and hold this content."""
        if not self.caching:
            return
        for key in keys:
            if key in self._holders or key in self._idle:
                holding.keys.append(None)
            else:
                self._holders[key] = 1
                holding.keys.append(key)

    def release(self, holding: Holding) -> None:
        """Take everything back, tail first, so that the start of a prefix is evicted last."""
        self.free += holding.blocks - len(holding.keys)
        for key in reversed(holding.keys):
            if key is None:
                self.free += 1
            elif self._holders[key] > 1:
                self._holders[key] -= 1
            else:
                del self._holders[key]
                self._idle[key] = None
                self.free += 1
        holding.blocks = 0
        holding.keys.clear()


def blocks_for(tokens: int, block_size: int) -> int:
    """Whole blocks that so many tokens take."""
    return -(-tokens // block_size)
