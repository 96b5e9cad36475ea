"""vLLM's answers against what a real 0.32.0 sent, byte for byte."""

import json

from gateway.simulator import vllm_shapes as shapes

CREATED = 1796097756


def chunks(
    kind: str, *, usage_asked: bool = False, with_usage: bool = False
) -> tuple[str, shapes.ChunkWriter]:
    prefix = "chatcmpl" if kind == "chat" else "cmpl"
    head = shapes.stream_head(kind, f"{prefix}-b10bb779f7e34dd7", CREATED, "tiny")
    return head, shapes.ChunkWriter(kind, head, 0, 5, usage_asked=usage_asked, with_usage=with_usage)


def test_chat_chunks_are_those_of_the_real_engine() -> None:
    _, writer = chunks("chat")
    start = (
        b'data: {"id":"chatcmpl-b10bb779f7e34dd7","object":"chat.completion.chunk","created":1796097756,'
        b'"model":"tiny","choices":[{"index":0,"delta":'
    )
    assert writer.role() == start + (
        b'{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],'
        b'"prompt_token_ids":null,"prompt_text":null}\n\n'
    )
    assert writer.piece("lock", 1) == start + (
        b'{"content":"lock"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
    )
    assert writer.piece("rown", 5, "length") == start + (
        b'{"content":"rown"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],'
        b'"system_fingerprint":"vllm-0.32.0-8f47572c"}\n\n'
    )


def test_the_usage_chunk_takes_the_fingerprint_from_the_last_one() -> None:
    head, writer = chunks("chat", usage_asked=True)
    assert b"system_fingerprint" not in writer.piece("rown", 5, "length")
    assert shapes.usage_event(head, 5, 5).endswith(
        b'"choices":[],"usage":{"prompt_tokens":5,"total_tokens":10,"completion_tokens":5},'
        b'"system_fingerprint":"vllm-0.32.0-8f47572c"}\n\n'
    )


def test_continuous_usage_is_in_every_chunk() -> None:
    _, writer = chunks("chat", usage_asked=True, with_usage=True)
    assert writer.role().endswith(
        b'"finish_reason":null}],"usage":{"prompt_tokens":5,"total_tokens":5,"completion_tokens":0,'
        b'"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}\n\n'
    )
    assert writer.piece("lock", 1).endswith(
        b'"token_ids":null}],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1,'
        b'"completion_tokens_details":null}}\n\n'
    )


def test_completions_have_text_and_no_role() -> None:
    _, writer = chunks("completions", usage_asked=True)
    assert writer.role() == b""
    assert writer.piece("engine", 4, "length") == (
        b'data: {"id":"cmpl-b10bb779f7e34dd7","object":"text_completion","created":1796097756,"model":"tiny",'
        b'"choices":[{"index":0,"text":"engine","logprobs":null,"finish_reason":"length","stop_reason":null,'
        b'"prompt_token_ids":null,"token_ids":null}]}\n\n'
    )


def test_a_whole_chat_answer_is_that_of_the_real_engine() -> None:
    body = shapes.whole_body(
        "chat", "chatcmpl-854c270c1543dd90", 1796097742, "tiny", [("lock", "length")], 5, 8
    )
    assert body == (
        b'{"id":"chatcmpl-854c270c1543dd90","object":"chat.completion","created":1796097742,"model":"tiny",'
        b'"choices":[{"index":0,"message":{"role":"assistant","content":"lock","refusal":null,"annotations":null,'
        b'"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length",'
        b'"stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,'
        b'"system_fingerprint":"vllm-0.32.0-8f47572c","usage":{"prompt_tokens":5,"total_tokens":13,'
        b'"completion_tokens":8,"prompt_tokens_details":null,"completion_tokens_details":null},'
        b'"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,'
        b'"ec_transfer_params":null,"metrics":null}'
    )


def test_a_whole_completion_is_that_of_the_real_engine() -> None:
    body = shapes.whole_body("completions", "cmpl-1", 1, "tiny", [("nswer", "length")], 2, 6)
    assert body == (
        b'{"id":"cmpl-1","object":"text_completion","created":1,"model":"tiny","choices":[{"index":0,'
        b'"text":"nswer","logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,'
        b'"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,'
        b'"system_fingerprint":"vllm-0.32.0-8f47572c","usage":{"prompt_tokens":2,"total_tokens":8,'
        b'"completion_tokens":6,"prompt_tokens_details":null,"completion_tokens_details":null},'
        b'"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )


def test_the_error_event_of_a_dead_engine_has_spaces_as_the_real_one() -> None:
    assert shapes.error_event(shapes.ENGINE_DEAD) == (
        b'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root '
        b'cause.", "type": "InternalServerError", "param": null, "code": 500}}\n\n'
    )


def test_error_bodies_carry_the_status_as_a_number() -> None:
    assert shapes.error_body(500, shapes.ENGINE_DEAD, "InternalServerError") == (
        b'{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.",'
        b'"type":"InternalServerError","param":null,"code":500}}'
    )


def test_model_cards_name_the_root_and_the_window() -> None:
    cards = json.loads(shapes.models_body(("tiny", "alias"), "tiny", 7, 1024))["data"]
    assert [(card["id"], card["root"], card["parent"], card["max_model_len"]) for card in cards] == [
        ("tiny", "tiny", None, 1024),
        ("alias", "tiny", None, 1024),
    ]


def test_names_that_need_escaping_are_escaped() -> None:
    head = shapes.stream_head("chat", 'chatcmpl-"x"', 1, 'a"b')
    event = shapes.ChunkWriter("chat", head, 0, 1, usage_asked=False, with_usage=False).piece("hi", 1)
    parsed = json.loads(event.removeprefix(b"data: "))
    assert (parsed["id"], parsed["model"]) == ('chatcmpl-"x"', 'a"b')


def test_tokens_are_counted() -> None:
    assert json.loads(shapes.tokens_body(3, 1024)) == {
        "count": 3,
        "max_model_len": 1024,
        "tokens": [4, 4, 4],
        "token_strs": None,
    }
