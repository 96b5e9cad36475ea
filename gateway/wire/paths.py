"""The paths of the data plane, one row each. Knows what a path is for; knows nothing of who serves it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Path:
    """One method and path.

    `generates`: it decodes tokens from a text prompt, so its need of KV cache can be told from the body.
    `streams`: the body's `stream` has a meaning there. `on_endpoints`: per-token endpoints have it too, in
    the same shape. `anthropic`: its bodies have Anthropic's shape. `form`: its body is a multipart form and
    no JSON object. `engine_path`: where vLLM serves it.
    """

    method: str
    path: str
    kind: str
    generates: bool
    streams: bool
    on_endpoints: bool
    anthropic: bool = field(default=False, kw_only=True)
    form: bool = field(default=False, kw_only=True)
    summary: str = field(kw_only=True)
    engine_path: str = field(kw_only=True)


def _post(
    path: str,
    kind: str,
    summary: str,
    *,
    generates: bool = False,
    streams: bool = False,
    on_endpoints: bool = False,
    anthropic: bool = False,
    form: bool = False,
    engine_path: str | None = None,
) -> Path:
    return Path(
        "POST", path, kind, generates, streams, on_endpoints,
        anthropic=anthropic, form=form, summary=summary, engine_path=engine_path or path,
    )  # fmt: skip


# Pooling tasks, tokenising and transcription stay on engines: endpoints differ in shape, model or tokenizer.
PATHS: tuple[Path, ...] = (
    _post(
        "/v1/chat/completions", "chat", "Answer a conversation.",
        generates=True, streams=True, on_endpoints=True,
    ),
    _post(
        "/v1/completions", "completions", "Continue a text.",
        generates=True, streams=True, on_endpoints=True,
    ),
    _post(
        "/v1/responses", "responses", "Answer in the Responses format.",
        generates=True, streams=True, on_endpoints=True,
    ),
    _post("/v1/embeddings", "embeddings", "Turn texts into vectors.", on_endpoints=True),
    _post(
        "/v1/messages", "messages", "Answer a conversation in Anthropic's format.",
        generates=True, streams=True, anthropic=True,
    ),
    _post(
        "/v1/messages/count_tokens", "messages", "Count the tokens of a conversation in Anthropic's format.",
        anthropic=True,
    ),
    _post("/v1/rerank", "rerank", "Order documents by their relevance to a query."),
    _post("/v1/score", "score", "Score pairs of texts."),
    # vLLM has this one outside /v1 only (contract §2.1).
    _post("/v1/classify", "classify", "Classify texts.", engine_path="/classify"),
    _post("/classify", "classify", "Classify texts."),
    _post("/pooling", "pooling", "Give a model's pooled hidden states."),
    _post("/tokenize", "tokenize", "Turn a text or conversation into token ids."),
    _post("/detokenize", "detokenize", "Turn token ids into text."),
    _post("/v1/audio/transcriptions", "transcription", "Write down what is said.", streams=True, form=True),
)  # fmt: skip

_BY_NAME = {(path.method, path.path): path for path in PATHS}


def find(method: str, path: str) -> Path | None:
    """The row of this method and path (exact, upper-case method), or None."""
    return _BY_NAME.get((method, path))
