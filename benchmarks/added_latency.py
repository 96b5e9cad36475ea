"""What the gateway adds to a request's time: the same requests in turn to an engine and through a gateway.

    python benchmarks/added_latency.py --engine http://127.0.0.1:18000 --gateway http://127.0.0.1:8080

Both must serve `--model`. Requests go one at a time, A B A B, so that a machine that slows down slows both.
Printed are medians in milliseconds and their ratio; quote them from one run on one machine.
"""

import argparse
import asyncio
import statistics
import sys
import time

import httpx


async def timed(client: httpx.AsyncClient, url: str, body: dict[str, object]) -> tuple[float, float]:
    """Seconds to the first body byte, and in all."""
    start = time.perf_counter()
    first = 0.0
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        async for _ in answer.aiter_raw():
            first = first or time.perf_counter() - start
    return first, time.perf_counter() - start


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", required=True)
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=16)
    asked = parser.parse_args()
    for stream in (False, True):
        body = {
            "model": asked.model, "messages": [{"role": "user", "content": "hello world"}], "temperature": 0,
            "max_tokens": asked.max_tokens, "stream": stream,
        }  # fmt: skip
        direct: list[tuple[float, float]] = []
        through: list[tuple[float, float]] = []
        async with httpx.AsyncClient(timeout=60) as client:
            for turn in range(asked.requests + 10):
                pair = await timed(client, asked.engine, body), await timed(client, asked.gateway, body)
                if turn >= 10:  # the first ones warm connections and caches
                    direct.append(pair[0])
                    through.append(pair[1])
        for column, name in enumerate(("first byte", "whole")):
            a = statistics.median(t[column] for t in direct) * 1000
            b = statistics.median(t[column] for t in through) * 1000
            kind = "streamed" if stream else "plain"
            sys.stdout.write(f"{kind:9} {name:10} direct {a:8.3f} ms  gateway {b:8.3f} ms")
            sys.stdout.write(f"  added {b - a:6.3f} ms  x{b / a:.3f}\n")


if __name__ == "__main__":
    asyncio.run(main())
