"""What is sent to a target: the client's bytes, but for the few members that must differ. Knows no
sockets."""

import json

from gateway.relay.admitted import Admitted
from gateway.routing.decision import Local, Overflow, Route
from gateway.routing.fleet_view import FleetView
from gateway.upstreams.base import Exchange, UpstreamLimits
from gateway.wire.request import ask_for_usage


def exchange_for(admitted: Admitted, route: Route, view: FleetView, n: int) -> Exchange:
    """The exchange of attempt `n`. Its request id is unique per attempt: vLLM takes it as the id of the
    generation."""
    deadlines = admitted.policy.deadlines
    model = _model_at(admitted, route, view)
    return Exchange(
        method=admitted.path.method,
        path=admitted.path.engine_path if isinstance(route, Local) else admitted.path.path,
        body=_body(admitted, route, model),
        headers=admitted.headers,
        limits=UpstreamLimits(
            connect=deadlines.connect, first_byte=deadlines.first_byte, between_reads=deadlines.between_events
        ),
        stream=admitted.streams,
        model=model,
        request_id=admitted.request_id if n == 1 else f"{admitted.request_id}-{n}",
    )


def _model_at(admitted: Admitted, route: Route, view: FleetView) -> str:
    match route:
        case Local(engine=engine):
            targets = view.models[admitted.facts.model]
            return targets.engine_names.get(engine, targets.name)
        case Overflow(remote_model=model):
            return model


def _body(admitted: Admitted, route: Route, model: str) -> bytes:
    """Untouched where the engine knows the model by the client's name and usage was asked for. An endpoint's
    own edits (model name, fields that it does not know) are made by the endpoint."""
    if admitted.parsed is None:
        return admitted.body
    edits: dict[str, str] = {}
    if isinstance(route, Local) and admitted.requested_model != model:
        edits["model"] = json.dumps(model)
    if admitted.streams and not admitted.peek.usage_asked and admitted.path.kind in ("chat", "completions"):
        edits |= ask_for_usage(admitted.parsed)
    return admitted.parsed.edited(edits, ()) if edits else admitted.body
