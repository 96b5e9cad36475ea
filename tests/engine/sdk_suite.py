"""What a user of the OpenAI SDK does, as checks that run under any version of it: `python sdk_suite.py
BASE_URL`.

Prints one JSON object: the SDK's version, and for each check "ok" or what went wrong. Uses nothing of the
gateway.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import openai

HELLO: list[Any] = [{"role": "user", "content": "hello world"}]
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["rome", "bonn"]}},
    "required": ["city"],
    "additionalProperties": False,
}
# Strict, since a model with random weights fills anything that it is left with.
WEATHER: list[Any] = [
    {"type": "function", "function": {"name": "weather", "strict": True, "parameters": CITY}}
]
FORCED = {"type": "function", "function": {"name": "weather"}}
COLOR = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}


def chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=8, temperature=0)
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8


def chat_stream(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=8, temperature=0, stream=True)
    )
    whole = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=8, temperature=0)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "length"
    assert all(c.usage is None for c in chunks)


def chat_stream_usage(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=HELLO, max_tokens=8, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8


def completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt="hello world", max_tokens=6)
    assert answer.choices[0].text
    assert answer.usage is not None


def completions_stream(client: openai.OpenAI) -> None:
    chunks = list(
        client.completions.create(model="tiny", prompt=["hello", "world"], max_tokens=6, stream=True)
    )
    assert {choice.index for c in chunks for choice in c.choices} == {0, 1}


def tools(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, tools=WEATHER, tool_choice=FORCED, max_tokens=200, temperature=0
    )
    calls = answer.choices[0].message.tool_calls
    assert calls
    assert calls[0].function.name == "weather"
    assert json.loads(calls[0].function.arguments)["city"] in ("rome", "bonn")


def tools_stream(client: openai.OpenAI) -> None:
    chunks = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        tools=WEATHER,
        tool_choice=FORCED,
        max_tokens=200,
        temperature=0,
        stream=True,
    )
    names = [
        call.function.name for c in chunks for choice in c.choices for call in choice.delta.tool_calls or []
    ]
    assert "weather" in names


def json_schema(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        max_tokens=200,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "color", "schema": COLOR, "strict": True},
        },
    )
    assert json.loads(answer.choices[0].message.content or "")["color"] in ("red", "blue")


def logprobs(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=4, logprobs=True, top_logprobs=2
    )
    found = answer.choices[0].logprobs
    assert found is not None
    assert found.content is not None
    assert len(found.content) == 4


def two_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=4, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8


def stop_strings(client: openai.OpenAI) -> None:
    whole = (
        client.completions.create(model="tiny", prompt="hello", max_tokens=20, temperature=0).choices[0].text
    )
    stop = whole[6:9]
    cut = client.completions.create(model="tiny", prompt="hello", max_tokens=20, temperature=0, stop=[stop])
    assert cut.choices[0].finish_reason == "stop"
    assert stop not in cut.choices[0].text


def responses(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="tiny", input="hello world", max_output_tokens=12)
    assert answer.output
    assert answer.usage is not None


def responses_stream(client: openai.OpenAI) -> None:
    kinds = [
        event.type
        for event in client.responses.create(model="tiny", input="hello", max_output_tokens=12, stream=True)
    ]
    assert kinds[0] == "response.created"
    assert kinds[-1] in ("response.completed", "response.incomplete")
    assert "response.output_text.delta" in kinds


def models(client: openai.OpenAI) -> None:
    assert "tiny" in [model.id for model in client.models.list().data]


def unknown_model(client: openai.OpenAI) -> None:
    try:
        client.chat.completions.create(model="nope", messages=HELLO)
    except openai.NotFoundError as error:
        assert "nope" in error.message  # noqa: PT017 -- this file runs without pytest
    else:
        raise AssertionError("no error came")


def bad_parameter(client: openai.OpenAI) -> None:
    try:
        client.chat.completions.create(model="tiny", messages=HELLO, temperature=-1)
    except openai.BadRequestError as error:
        assert "temperature" in error.message  # noqa: PT017 -- this file runs without pytest
    else:
        raise AssertionError("no error came")


def unknown_fields_pass(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        max_tokens=8,
        extra_body={"min_tokens": 8, "top_k": 1, "made_up": {"a": [1]}},
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8


CHECKS: tuple[Callable[[openai.OpenAI], None], ...] = (
    chat, chat_stream, chat_stream_usage, completions, completions_stream, tools, tools_stream, json_schema,
    logprobs, two_choices, stop_strings, responses, responses_stream, models, unknown_model, bad_parameter,
    unknown_fields_pass,
)  # fmt: skip


def run(base_url: str) -> dict[str, str]:
    """Every check's result."""
    results = {"version": openai.__version__}
    with openai.OpenAI(base_url=f"{base_url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        for check in CHECKS:
            try:
                check(client)
                results[check.__name__] = "ok"
            except Exception as error:  # noqa: BLE001 -- every failure is a result
                results[check.__name__] = f"{type(error).__name__}: {error}"
    return results


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1])))
