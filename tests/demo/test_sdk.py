"""The SDK as the demo uses it: no retries, errors raised, streams read to their end."""

from pathlib import Path

import openai
import pytest
from stack import running_stack
from streams import delta, error_object, says, target

from gateway.demo.sdk import openai_client

pytestmark = pytest.mark.anyio


async def test_an_answer_is_read_to_its_end(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as stack, openai_client(stack.url) as ask:
        await stack.ready()
        await ask("tiny", "hello", 5)
        [row] = stack.rows()
        assert (row["outcome"], row["stream"]) == ("ok", True)


async def test_what_fails_is_raised_once_with_the_targets_words(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as stack, openai_client(stack.url) as ask:
        with pytest.raises(openai.NotFoundError):
            await ask("nope", "hello", 5)
        assert len(stack.rows()) == 1


async def test_the_sdk_sees_an_error_inside_a_stream(tmp_path: Path) -> None:
    """F10: the raised error carries the target's own message."""
    async with (
        target(says(delta("a"), error_object(500, "slow down"))) as engine,
        running_stack(tmp_path, engine=engine.url) as stack,
        openai_client(stack.url) as ask,
    ):
        await stack.ready()
        with pytest.raises(openai.APIError, match="slow down"):
            await ask("tiny", "hello", 5)
