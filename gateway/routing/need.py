"""What one request will take from an engine: tokens, and blocks of that engine's size."""

from typing import NamedTuple

from gateway.routing.reservations import blocks_for

# vLLM's default block size on CUDA (contract §4.5), used until an engine has told its own.
BLOCK_SIZE_UNKNOWN = 16


class Need(NamedTuple):
    """Tokens per choice and blocks over all choices."""

    prompt_tokens: int
    expected_output: int
    choices: int
    block_size: int
    blocks: int


def need_of(prompt_tokens: int, expected_output: int, choices: int, block_size: int | None) -> Need:
    """The need on an engine with this block size."""
    size = block_size or BLOCK_SIZE_UNKNOWN
    blocks = choices * blocks_for(prompt_tokens + expected_output, size)
    return Need(prompt_tokens, expected_output, choices, size, blocks)
