"""Which tokens of a usage are billed as what: uncached prompt, cached prompt, output. Knows no prices.

OpenAI-shaped usage counts cached tokens inside the prompt and reasoning tokens inside the completion;
charging either a second time is a recurrent bug of cost trackers, so the split is made here and nowhere else.
"""

from typing import NamedTuple

from gateway.wire.usage import Usage

INCONSISTENT = "usage_inconsistent"


class BilledTokens(NamedTuple):
    """`uncached + cached` is the whole prompt; `output` includes reasoning and is None where it is not
    known.
    """

    uncached: int
    cached: int
    output: int | None
    inconsistent: bool

    @property
    def prompt(self) -> int:
        """All prompt tokens."""
        return self.uncached + self.cached


def billed_tokens(usage: Usage | None, *, generates: bool = True) -> BilledTokens | None:
    """The split; None where the prompt's tokens are unknown.

    A cached count that is not reported is no cached token. More cached than prompt is clamped to the prompt
    and marked inconsistent, as is any negative count. `generates=False` is for paths without output
    (embeddings, rerank): there a missing completion count means 0.
    """
    if usage is None or usage.prompt is None:
        return None
    prompt = max(usage.prompt, 0)
    cached = min(max(usage.cached or 0, 0), prompt)
    output = usage.completion if generates else (usage.completion or 0)
    return BilledTokens(
        prompt - cached,
        cached,
        None if output is None else max(output, 0),
        usage.inconsistent or _contradicts(usage),
    )


def _contradicts(usage: Usage) -> bool:
    counts = (usage.prompt or 0, usage.cached or 0, usage.completion or 0, usage.reasoning or 0)
    prompt, cached, completion, reasoning = counts
    too_many = cached > prompt or (usage.completion is not None and reasoning > completion)
    return too_many or min(counts) < 0
