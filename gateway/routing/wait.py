"""Time to first token, predicted: the prefill work ahead of a request over the rate at which the engine does
it.

The rate is learned per engine from requests that have finished their prefill. Knows nothing of KV blocks.
"""

_WEIGHT = 0.1
# Foreign requests in the queue have prompts we never saw; this is taken for each until own prompts give a
# mean.
_PROMPT_UNKNOWN = 512.0


class PrefillRate:
    """One engine's prefill rate in tokens per second; None until a first token has been timed."""

    def __init__(self) -> None:
        self.tokens_per_second: float | None = None
        self.mean_prompt = _PROMPT_UNKNOWN

    def learn(self, *, tokens_ahead: int, prompt_tokens: int, seconds: float) -> None:
        """A first token came `seconds` after dispatch, with `tokens_ahead` of others' prefill before its own
        prompt."""
        if seconds <= 0 or prompt_tokens <= 0:
            return
        seen = (tokens_ahead + prompt_tokens) / seconds
        if self.tokens_per_second is None:
            self.tokens_per_second = seen
        else:
            self.tokens_per_second += _WEIGHT * (seen - self.tokens_per_second)
        self.mean_prompt += _WEIGHT * (prompt_tokens - self.mean_prompt)

    def predicted_ttft(self, *, backlog: int, foreign_waiting: int, prompt_tokens: int) -> float | None:
        """Seconds to this request's first token, or None while no rate is known."""
        if not self.tokens_per_second:
            return None
        ahead = backlog + foreign_waiting * self.mean_prompt
        return (ahead + prompt_tokens) / self.tokens_per_second
