"""The closing members of a stream, as vLLM 0.32 sends them with and without usage."""

from gateway.wire.tail import with_closing_members

FINISH = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"engine"},"finish_reason":"length"}]}\n\n'
USAGE = (
    b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":4,"total_tokens":7}'
    b',"system_fingerprint":"vllm-0.32.0-6e3f"}\n\n'
)
PLAIN = FINISH.replace(b"]}\n", b'],"system_fingerprint":"vllm-0.32.0-6e3f"}\n')


def test_the_last_chunk_is_as_it_would_have_been_without_usage() -> None:
    assert with_closing_members(FINISH, USAGE) == PLAIN


def test_a_usage_chunk_that_closes_nothing_changes_nothing() -> None:
    bare = b'data: {"choices":[],"usage":{"prompt_tokens":4}}\n\n'
    assert with_closing_members(FINISH, bare) == FINISH


def test_events_of_another_shape_stay_as_they_are() -> None:
    assert with_closing_members(FINISH, b"data: nonsense\n\n") == FINISH
    assert with_closing_members(b": comment\n\n", USAGE) == b": comment\n\n"
    assert with_closing_members(FINISH, b'data: {"choices":[]}\n\n') == FINISH
