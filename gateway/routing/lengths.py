"""How long outputs and prompts turn out to be, learned online per model.

Output: the last few hundred finished lengths, as an exact sorted sample; a quantile of it is the expectation,
and for a request that already streamed n tokens, the quantile of those that were longer than n. Prompt: bytes
per token. Stream: tokens per event, since vLLM packs several tokens into a chunk at times.
"""

from bisect import bisect_right, insort
from collections import deque
from math import ceil

_SAMPLE = 512
# Below this many finished requests a quantile says nothing; the caller's own limit is reserved instead.
_ENOUGH = 8
# English text under BPE vocabularies of 32k to 200k has 3 to 5 bytes a token; fewer bytes a token reserves
# more.
_BYTES_PER_TOKEN_UNKNOWN = 3.0
# Output reserved where neither the caller limits it nor any request has finished yet.
_OUTPUT_UNKNOWN = 1024
_WEIGHT = 0.1


class _ModelLengths:
    def __init__(self) -> None:
        self.recent: deque[int] = deque()
        self.ordered: list[int] = []
        self.bytes_per_token = _BYTES_PER_TOKEN_UNKNOWN
        self.prompts_seen = 0
        self.tokens_per_event = 1.0

    def add(self, tokens: int) -> None:
        if len(self.recent) == _SAMPLE:
            del self.ordered[bisect_right(self.ordered, self.recent.popleft()) - 1]
        self.recent.append(tokens)
        insort(self.ordered, tokens)


class LengthLearner:
    """Lengths of every model. Unknown models answer with the documented priors."""

    def __init__(self) -> None:
        self._models: dict[str, _ModelLengths] = {}

    def expected_output(
        self, model: str, *, max_tokens: int | None, quantile: float, streamed: int = 0
    ) -> int:
        """Tokens per choice that a request will have made at its end, at `quantile` of what was seen, never
        above max_tokens.

        With too little seen: max_tokens, or a prior where the caller set none. `streamed` conditions on what
        is out already; when nothing seen was that long, half as much again is expected.
        """
        known = self._models.get(model)
        ordered = known.ordered if known else []
        if len(ordered) < _ENOUGH:
            expected = max_tokens if max_tokens is not None else max(_OUTPUT_UNKNOWN, ceil(streamed * 1.5))
        else:
            longer = bisect_right(ordered, streamed) if streamed else 0
            rest = len(ordered) - longer
            at = longer + min(rest - 1, ceil(rest * quantile) - 1 if quantile < 1 else rest - 1)
            expected = ordered[max(longer, at)] if rest else ceil(streamed * 1.5) + 1
        return expected if max_tokens is None else min(expected, max_tokens)

    def prompt_tokens(self, model: str, text_bytes: int) -> int:
        """Tokens of a prompt of `text_bytes` bytes, at least 1."""
        known = self._models.get(model)
        ratio = known.bytes_per_token if known else _BYTES_PER_TOKEN_UNKNOWN
        return max(1, ceil(text_bytes / ratio))

    def tokens_per_event(self, model: str) -> float:
        """Tokens that one content event of this model's streams carries on average."""
        known = self._models.get(model)
        return known.tokens_per_event if known else 1.0

    def learn_output(self, model: str, tokens_per_choice: int) -> None:
        """One request finished by itself with this many tokens per choice."""
        self._of(model).add(tokens_per_choice)

    def learn_prompt(self, model: str, text_bytes: int, tokens: int) -> None:
        """An engine counted a prompt: the first count is taken as it is, later ones move the mean."""
        if text_bytes <= 0 or tokens <= 0:
            return
        known = self._of(model)
        ratio = text_bytes / tokens
        weight = _WEIGHT if known.prompts_seen else 1.0
        known.bytes_per_token += weight * (ratio - known.bytes_per_token)
        known.prompts_seen += 1

    def learn_events(self, model: str, events: int, tokens: int) -> None:
        """A stream of `events` content events carried `tokens` tokens by its usage."""
        if events > 0 and tokens > 0:
            known = self._of(model)
            known.tokens_per_event += _WEIGHT * (tokens / events - known.tokens_per_event)

    def _of(self, model: str) -> _ModelLengths:
        return self._models.setdefault(model, _ModelLengths())
