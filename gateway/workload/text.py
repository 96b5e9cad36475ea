"""Prompt text of a wanted length, and how the fakes count it: four bytes are one token.

Does not know any real tokenizer; English text in common ones is near four bytes a token.
"""

BYTES_PER_TOKEN = 4
_PIECES = ("load ", "gate ", "plan ", "wire ", "disk ", "host ", "rack ", "port ")


def tokens_in(text_bytes: int) -> int:
    """Tokens that a fake engine or endpoint counts in so many bytes of text."""
    return -(-text_bytes // BYTES_PER_TOKEN)


def text_of(tokens: int, seed: int = 0) -> str:
    """ASCII text that counts as exactly `tokens` tokens; different seeds begin differently, so that no prefix
    is shared.
    """
    head = f"{seed:x} "
    size = tokens * BYTES_PER_TOKEN
    body = "".join(_PIECES[(seed + index) % len(_PIECES)] for index in range(size // 5 + 1))
    return (head + body)[:size]
