"""What a decision may look at in one request."""

from dataclasses import dataclass
from typing import Literal

OverflowWish = Literal["never", "allow", "only"]


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """One request, reduced to what deciding needs. Tokens are estimates until an engine has counted them.

    `max_tokens` is the caller's limit on output (None: not given). `choices` is `n` (or best_of).
    `overflow_wish` comes from the request header; `key` is the client key's name, never its secret.
    `local_only_fields` are body fields that no per-token endpoint can honour without changing the answer's
    meaning.
    """

    model: str
    prompt_tokens: int
    max_tokens: int | None
    choices: int = 1
    prompts: int = 1
    min_tokens: int = 0
    stream: bool = False
    priority: int = 0
    key: str | None = None
    overflow_wish: OverflowWish = "allow"
    affinity_key: int | None = None
    generates: bool = True
    endpoint_can_serve: bool = True
    local_only_fields: tuple[str, ...] = ()

    @property
    def prompt_tokens_each(self) -> int:
        """Tokens of one prompt, taken as equally long."""
        return -(-self.prompt_tokens // self.prompts)
