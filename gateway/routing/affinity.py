"""Which engine last served a prompt prefix: its prefix cache probably still holds it.

A bounded memory of hashes; knows nothing of what the engine's cache really holds.
"""

from collections import OrderedDict

_REMEMBERED = 16_384


class AffinityBook:
    """Prefix hash -> engine name, least recently used forgotten first."""

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._size = size
        self._engines: OrderedDict[int, str] = OrderedDict()

    def engine_for(self, key: int | None) -> str | None:
        """The engine that served this prefix last, or None."""
        return None if key is None else self._engines.get(key)

    def served(self, key: int | None, engine: str) -> None:
        """This engine now holds the prefix."""
        if key is None:
            return
        self._engines[key] = engine
        self._engines.move_to_end(key)
        if len(self._engines) > self._size:
            self._engines.popitem(last=False)
