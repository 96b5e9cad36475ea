"""Facts of requests: read, never judged."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.wire.body import BadBody, JsonObject
from gateway.wire.paths import PATHS, Path, find
from gateway.wire.request import (
    LOCAL_ONLY_FIELDS,
    VLLM_ONLY_FIELDS,
    Peek,
    ask_for_usage,
    peek,
    peek_form,
)

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
HELLO = [{"role": "user", "content": "hello world"}]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "role", "image_url", "include_usage"]), inner
        )
    ),
    max_leaves=8,
)


def path_of(path: str) -> Path:
    found = find("POST", path)
    assert found is not None
    return found


def body_of(**members: Any) -> JsonObject:
    return JsonObject.parse(json.dumps(members).encode())


def seen(path: str = CHAT, **members: Any) -> Peek:
    return peek(body_of(**members), path_of(path))


def test_a_plain_chat_request() -> None:
    assert seen(model="tiny", messages=HELLO, max_tokens=5, stream=True) == Peek(
        model="tiny", stream=True, max_tokens=5, text_bytes=11, affinity_text="hello world"
    )


# --- Model, stream, counts ---


@pytest.mark.parametrize("members", [{}, {"model": None}, {"model": ""}])
def test_a_missing_model_is_vllms_default(members: dict[str, Any]) -> None:
    assert seen(**members).model is None


@pytest.mark.parametrize("model", [5, True, ["tiny"], {"a": 1}])
def test_a_model_that_is_no_text_is_refused(model: object) -> None:
    with pytest.raises(BadBody, match="must be a string") as caught:
        seen(model=model)
    assert caught.value.param == "model"


def test_a_model_with_half_a_character_is_refused() -> None:
    with pytest.raises(BadBody, match="Unicode") as caught:
        peek(JsonObject.parse(b'{"model": "a\\ud800"}'), path_of(CHAT))
    assert caught.value.param == "model"


@pytest.mark.parametrize(
    ("stream", "expected"), [(True, True), (False, False), ("yes", False), (1, False), (None, False)]
)
def test_only_true_streams(stream: object, expected: bool) -> None:
    assert seen(stream=stream).stream is expected


def test_a_path_without_streams_has_none() -> None:
    assert not seen(EMBEDDINGS, input="a", stream=True).stream
    assert not seen("/v1/messages/count_tokens", messages=HELLO, stream=True).stream


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 3, "max_tokens": 7}, 3),
        ({"max_completion_tokens": None, "max_tokens": 7}, 7),
        ({"max_output_tokens": 6}, 6),
        ({"max_tokens": "abc"}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": 1.5}, None),
        ({"max_tokens": 0}, None),
        ({"max_tokens": -1}, None),
        ({}, None),
    ],
)
def test_the_output_limit_is_known_where_it_is_a_whole_number(
    members: dict[str, Any], expected: int | None
) -> None:
    assert seen(**members).max_tokens == expected


def test_completions_have_a_limit_of_16_unless_told_otherwise() -> None:
    assert seen(COMPLETIONS, prompt="a").max_tokens == 16
    assert seen(COMPLETIONS, prompt="a", max_tokens=None).max_tokens is None
    assert seen(CHAT, messages=HELLO).max_tokens is None


def test_small_integers_are_read_or_left_at_vllms_default() -> None:
    good = seen(min_tokens=4, priority=-2, n=3)
    assert (good.min_tokens, good.priority, good.choices) == (4, -2, 3)
    bad = seen(min_tokens="4", priority=1.5, n="3")
    assert (bad.min_tokens, bad.priority, bad.choices) == (0, 0, 1)
    worse = seen(min_tokens=-1, priority=False, n=0)
    assert (worse.min_tokens, worse.priority, worse.choices) == (0, 0, 1)


@pytest.mark.parametrize(
    ("members", "choices", "prompts"),
    [
        ({"prompt": "a"}, 1, 1),
        ({"prompt": ["a", "b"]}, 2, 2),
        ({"prompt": ["a", "b"], "n": 3}, 6, 2),
        ({"prompt": ["a", "b"], "n": 2, "best_of": 4}, 8, 2),
        ({"prompt": [1, 2, 3]}, 1, 1),
        ({"prompt": [[1, 2], [3]], "n": 2}, 4, 2),
        ({"prompt": []}, 1, 1),
        ({"prompt": {}}, 1, 1),
        ({"prompt": None, "n": 2}, 2, 1),
    ],
)
def test_choices_count_sequences_over_all_prompts(
    members: dict[str, Any], choices: int, prompts: int
) -> None:
    found = seen(COMPLETIONS, **members)
    assert (found.choices, found.prompts) == (choices, prompts)


# --- Size of the prompt ---


@pytest.mark.parametrize(
    ("path", "members", "text_bytes"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "é北😀"}]}, 9),
        (
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "text"}]}]},
            3,
        ),
        (CHAT, {"messages": [{"role": "user", "content": ["abc", "de"]}]}, 5),
        (
            CHAT,
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
                ]
            },
            3,
        ),
        (CHAT, {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "bc"}]}, 3),
        (CHAT, {"messages": [], "tools": [{"a": 1}]}, len('[{"a": 1}]')),
        (COMPLETIONS, {"prompt": "abc", "suffix": "de"}, 5),
        (COMPLETIONS, {"prompt": ["abc", "de"]}, 5),
        (COMPLETIONS, {"prompt": [1, 2, 3]}, 0),
        (EMBEDDINGS, {"input": ["abc", "de"]}, 5),
        ("/v1/responses", {"input": "abc", "instructions": "de"}, 5),
        (
            "/v1/responses",
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "abc"}]}]},
            3,
        ),
        ("/v1/messages", {"system": [{"type": "text", "text": "ab"}], "messages": HELLO}, 13),
        (
            "/v1/messages",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "content": [{"type": "text", "text": "abc"}]}],
                    }
                ]
            },
            3,
        ),
        ("/v1/rerank", {"query": "ab", "documents": ["c", {"text": "de"}]}, 5),
        ("/v1/score", {"text_1": "ab", "text_2": ["c", "d"]}, 4),
        (CHAT, {"messages": "not a list"}, 10),
        (CHAT, {"messages": 5, "tools": None}, 4),
        (CHAT, {"messages": [5, None, True, 1.5]}, 0),
    ],
)
def test_text_is_weighed_in_bytes(path: str, members: dict[str, Any], text_bytes: int) -> None:
    assert seen(path, **members).text_bytes == text_bytes


@pytest.mark.parametrize(
    ("path", "members", "tokens"),
    [
        (COMPLETIONS, {"prompt": [10, 11, 12]}, 3),
        (COMPLETIONS, {"prompt": [[10, 11], [12]]}, 3),
        (COMPLETIONS, {"prompt": "abc"}, None),
        (COMPLETIONS, {"prompt": ["abc"]}, None),
        (COMPLETIONS, {"prompt": []}, None),
        (COMPLETIONS, {"prompt": [[]]}, None),
        (COMPLETIONS, {"prompt": [True]}, None),
        (EMBEDDINGS, {"input": [[1, 2], [3, 4]]}, 4),
        (CHAT, {"messages": HELLO, "input": [1], "prompt": [1]}, None),
    ],
)
def test_token_ids_are_counted(path: str, members: dict[str, Any], tokens: int | None) -> None:
    assert seen(path, **members).token_ids == tokens


def test_pictures_and_sounds_are_counted_and_not_weighed() -> None:
    parts = [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}},
        {"type": "input_audio", "input_audio": {"data": "A" * 5000}},
        {"image_url": "data:" + "A" * 5000},
        {"type": "image", "source": {"data": "A" * 5000}},
    ]
    found = seen(messages=[{"role": "user", "content": parts}])
    assert (found.images, found.text_bytes) == (4, 12)


def test_the_deepest_body_that_parses_can_be_weighed() -> None:
    depth = 800
    content = '{"content":' * depth + '"abc"' + "}" * depth
    body = JsonObject.parse(f'{{"messages":[{content}]}}'.encode())
    assert peek(body, path_of(CHAT)).text_bytes == 3


# --- Affinity ---


@pytest.mark.parametrize(
    ("path", "members", "text"),
    [
        (
            CHAT,
            {
                "messages": [
                    {"role": "system", "content": "be kind"},
                    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                    {"role": "assistant", "content": "later"},
                ]
            },
            "be kind\nhi",
        ),
        ("/v1/messages", {"system": "be kind", "messages": HELLO}, "be kind\nhello world"),
        ("/v1/responses", {"instructions": "be kind", "input": "hi"}, "be kind\nhi"),
        ("/v1/responses", {"input": HELLO}, "hello world"),
        (COMPLETIONS, {"prompt": "abc"}, "abc"),
        (COMPLETIONS, {"prompt": ["abc", "de"]}, "abc"),
        (COMPLETIONS, {"prompt": [10, 11]}, "10 11"),
        (COMPLETIONS, {"prompt": [[10, 11], [12]]}, "10 11"),
        (COMPLETIONS, {"prompt": []}, ""),
        (CHAT, {"messages": []}, ""),
        (CHAT, {"messages": [None, {"role": "user"}]}, ""),
        (CHAT, {}, ""),
    ],
)
def test_affinity_is_the_start_of_the_prompt(path: str, members: dict[str, Any], text: str) -> None:
    assert seen(path, **members).affinity_text == text


def test_the_next_turn_has_the_same_affinity() -> None:
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    longer = [*turns, {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}]
    assert seen(messages=turns).affinity_text == seen(messages=longer).affinity_text == "s\nu"


def test_affinity_looks_at_the_first_kibibyte_only() -> None:
    long = "x" * 5000
    assert seen(messages=[{"role": "user", "content": long + "a"}]).affinity_text == "x" * 1024
    assert len(seen(COMPLETIONS, prompt=list(range(100_000))).affinity_text) < 2048
    assert len(seen(messages=[{"role": "system", "content": "a"}] * 10_000).affinity_text) <= 1024


def test_half_a_character_does_not_get_into_the_affinity() -> None:
    body = JsonObject.parse(b'{"messages": [{"role": "user", "content": "a\\ud800b"}]}')
    found = peek(body, path_of(CHAT))
    assert found.affinity_text.encode() == b"a?b"
    assert found.text_bytes == 5


# --- Fields that stay ---


@pytest.mark.parametrize(
    ("path", "members", "local_only"),
    [
        (CHAT, {"structured_outputs": {"regex": "a+"}}, ("structured_outputs",)),
        (CHAT, {"guided_json": None, "structured_outputs": {}}, ()),
        (CHAT, {"guided_choice": ["a", "b"]}, ("guided_choice",)),
        (CHAT, {"kv_transfer_params": {"do_remote_prefill": True}}, ("kv_transfer_params",)),
        (CHAT, {"prompt_logprobs": 0}, ("prompt_logprobs",)),
        (CHAT, {"return_token_ids": False, "use_beam_search": False, "mm_payload": "tensors"}, ()),
        (CHAT, {"add_generation_prompt": True, "continue_final_message": False}, ()),
        (CHAT, {"add_generation_prompt": False}, ("add_generation_prompt",)),
        (CHAT, {"chat_template_kwargs": {"enable_thinking": False}}, ("chat_template_kwargs",)),
        (CHAT, {"response_format": {"type": "json_schema"}}, ()),
        (CHAT, {"response_format": {"type": "structural_tag"}}, ("response_format",)),
        (CHAT, {"priority": 1, "top_k": 5, "min_tokens": 2}, ()),
        (COMPLETIONS, {"prompt": [1, 2]}, ("prompt",)),
        (COMPLETIONS, {"prompt": ["a"]}, ()),
        (EMBEDDINGS, {"input": [[1]]}, ("input",)),
        (EMBEDDINGS, {"messages": HELLO}, ("messages",)),
        ("/v1/rerank", {"documents": ["a"]}, ()),
    ],
)
def test_fields_without_which_the_answer_would_be_another(
    path: str, members: dict[str, Any], local_only: tuple[str, ...]
) -> None:
    assert seen(path, **members).local_only_fields == local_only


def test_fields_that_an_endpoint_does_not_know_are_named_in_their_order() -> None:
    found = seen(top_k=None, model="m", temperature=0, priority=0, guided_json=None)
    assert found.vllm_fields == ("top_k", "priority", "guided_json")


def test_the_lists_hold_nothing_that_openai_has() -> None:
    openai = {
        "model", "messages", "prompt", "input", "stream", "stream_options", "max_tokens", "n", "best_of",
        "max_completion_tokens", "temperature", "top_p", "stop", "seed", "logprobs", "top_logprobs",
        "logit_bias", "tools", "tool_choice", "response_format", "user", "metadata", "reasoning_effort",
        "parallel_tool_calls", "frequency_penalty", "presence_penalty", "store", "service_tier", "suffix",
        "echo", "dimensions", "encoding_format",
    }  # fmt: skip
    assert not openai & VLLM_ONLY_FIELDS
    assert LOCAL_ONLY_FIELDS < VLLM_ONLY_FIELDS


# --- Asking for usage (F27) ---


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("absent", {"include_usage": True}),
        (None, {"include_usage": True}),
        ({}, {"include_usage": True}),
        ({"include_usage": False}, {"include_usage": True}),
        ({"include_usage": None}, {"include_usage": True}),
        ({"continuous_usage_stats": True}, {"continuous_usage_stats": True, "include_usage": True}),
        ({"x": {"y": [1]}}, {"x": {"y": [1]}, "include_usage": True}),
    ],
)
def test_usage_is_asked_for_and_other_options_stay(options: Any, expected: dict[str, Any]) -> None:
    given_options = {} if options == "absent" else {"stream_options": options}
    body = body_of(model="m", stream=True, **given_options)
    assert not peek(body, path_of(CHAT)).usage_asked
    edited = json.loads(body.edited(ask_for_usage(body)))
    assert edited == {"model": "m", "stream": True, "stream_options": expected}


@pytest.mark.parametrize(
    "members",
    [
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": "yes"}},
        {"stream": True, "stream_options": "wrong"},
        {"stream": True, "stream_options": []},
        {"stream": True, "stream_options": 0},
        {"stream": False},
        {"stream": "yes"},
        {},
        {"stream_options": {"include_usage": False}},
    ],
)
def test_what_is_asked_for_already_or_is_the_engines_to_refuse_is_left_alone(members: dict[str, Any]) -> None:
    assert ask_for_usage(body_of(**members)) == {}


def test_options_that_cannot_be_edited_are_left_alone() -> None:
    body = JsonObject.parse(b'{"stream": true, "stream_options": {"a": 1, "a": 2}}')
    assert ask_for_usage(body) == {}


def test_numbers_in_the_options_keep_their_spelling() -> None:
    body = JsonObject.parse(b'{"stream":true,"stream_options":{"a":1e999,"b":1.10}}')
    assert body.edited(ask_for_usage(body)) == (
        b'{"stream":true,"stream_options":{"a":1e999,"b":1.10,"include_usage":true}}'
    )


@pytest.mark.parametrize("kind", ["responses", "messages", "embeddings"])
def test_other_kinds_have_no_stream_options(kind: str) -> None:
    assert ask_for_usage(body_of(stream=True), kind) == {}


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"include_usage": True}, True),
        ({"include_usage": 1}, True),
        ({"include_usage": "yes"}, True),
        ({"include_usage": False}, False),
        ({"include_usage": None}, False),
        ({"include_usage": 0}, False),
        ({}, False),
        (None, False),
        ("include_usage", False),
    ],
)
def test_usage_that_vllm_would_send_is_known_as_asked_for(options: Any, asked: bool) -> None:
    assert seen(stream=True, stream_options=options).usage_asked is asked


# --- Anything ---


@given(
    st.sampled_from(PATHS),
    st.dictionaries(
        st.sampled_from(
            [
                "messages",
                "prompt",
                "input",
                "system",
                "instructions",
                "stream",
                "stream_options",
                "max_tokens",
                "n",
                "best_of",
                "tools",
                "documents",
                "query",
                "priority",
                "min_tokens",
                "response_format",
                "chat_template",
                "guided_json",
                "add_generation_prompt",
            ]
        ),
        ANYTHING,
    ),
)
def test_no_body_makes_reading_fail(path: Path, members: dict[str, Any]) -> None:
    body = body_of(**members)
    found = peek(body, path)
    assert found.choices >= found.prompts >= 1
    assert found.text_bytes >= 0
    assert found.min_tokens >= 0
    assert found.max_tokens is None or found.max_tokens >= 1
    assert set(found.local_only_fields) <= {*members}
    found.affinity_text.encode()
    edits = ask_for_usage(body, path.kind)
    options = json.loads(body.edited(edits)).get("stream_options")
    assert not edits or options["include_usage"] is True


# --- Forms ---

TRANSCRIPTIONS = "/v1/audio/transcriptions"


def form(*parts: tuple[str, bytes]) -> bytes:
    sent = b"".join(
        b"--xYz\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), value)
        for head, value in parts
    )
    return sent + b"--xYz--\r\n"


AUDIO = (
    'name="file"; filename="a; name=\\"model\\".wav"\r\nContent-Type: audio/wav',
    b'\x00\r\n\r\n; name="model"\r\n',
)


def test_a_form_tells_its_model_behind_its_file() -> None:
    body = form(AUDIO, ('name="model"', b"whisper"), ('name="stream"', b"true"))
    assert peek_form(body, path_of(TRANSCRIPTIONS)) == Peek(model="whisper", stream=True)


@pytest.mark.parametrize(
    "body",
    [
        form(AUDIO),
        form(('name="model"', b"")),
        form(('name="model_name"', b"x")),
        b"",
        b"\r\n",
        b"--xYz",
        b'--xYz\r\nContent-Disposition: form-data; name="model"\r\n\r\ncut',
        b'not a form; name="model"\r\n\r\nx\r\n',
    ],
)
def test_a_form_without_a_model_has_none(body: bytes) -> None:
    assert peek_form(body, path_of(TRANSCRIPTIONS)) == Peek()


def test_a_forms_model_must_be_text() -> None:
    with pytest.raises(BadBody) as caught:
        peek_form(form(('name="model"', b"\xff")), path_of(TRANSCRIPTIONS))
    assert caught.value.param == "model"


@given(st.binary(max_size=80))
def test_whatever_else_a_form_holds_its_model_is_found(data: bytes) -> None:
    assume(b"\r\n--xYz" not in data)
    body = form(('name="file"; filename="a"', data), ('name="model"', b"m"))
    assert peek_form(body, path_of(TRANSCRIPTIONS)).model == "m"


@given(st.binary(max_size=80), st.sampled_from([b"", b"--b\r\n", b'--b\r\n; name="model"\r\n\r\n']))
def test_no_bytes_make_reading_a_form_fail(data: bytes, head: bytes) -> None:
    with suppress(BadBody):
        peek_form(head + data + b"\r\n--b--\r\n", path_of(TRANSCRIPTIONS))
