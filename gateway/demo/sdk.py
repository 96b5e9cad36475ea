"""The OpenAI SDK as the demo's clients use it. Imported only when the demo runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openai import AsyncOpenAI

from gateway.demo.traffic import Ask


@asynccontextmanager
async def openai_client(base_url: str) -> AsyncIterator[Ask]:
    """A client that does not retry: what fails once is shown as failed."""
    async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key="demo", max_retries=0, timeout=60) as client:

        async def ask(model: str, text: str, max_tokens: int) -> None:
            stream = await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": text}], max_tokens=max_tokens, stream=True
            )
            async for _ in stream:
                pass

        yield ask
