"""A decision in words that a person understands. The only place that composes them."""

from gateway.routing.decision import Candidate, Decision, Hold, Local, Overflow, Shed
from gateway.routing.reasons import MEANING

_LABELS = {
    "needed_blocks": "needs {} blocks",
    "committed_blocks": "{} promised or held",
    "capacity_blocks": "of {} that may be",
    "waiting": "{} waiting",
    "predicted_ttft_seconds": "first token in about {} s",
    "signal_age_seconds": "signals {} s old",
    "expected_usd": "expected cost {} USD",
    "budget_left_usd": "{} USD of budget left",
}


def explain(decision: Decision) -> str:
    """One sentence for the choice, then one for each candidate."""
    parts = [
        f"{_choice(decision)}: {MEANING[decision.reason]} ({decision.reason}), policy {decision.policy!r}."
    ]
    if decision.shadowed is not None:
        parts.append(f"Shadow policy: in force it would have left for {decision.shadowed}.")
    parts += [_candidate(c) for c in decision.candidates]
    return " ".join(parts)


def _choice(decision: Decision) -> str:
    match decision.route:
        case Local(engine=name):
            return f"Served by engine {name!r}"
        case Overflow(endpoint=name, remote_model=model):
            return f"Sent to endpoint {name!r} as {model!r}"
        case Shed(status=status):
            return f"Refused with {status}"
        case Hold():
            return "Held until an engine admits it"


def _candidate(candidate: Candidate) -> str:
    verdict = "admits it" if candidate.verdict is None else f"no, {candidate.verdict}"
    known = [_LABELS[key].format(_figure(value)) for key, value in candidate.numbers if value is not None]
    return (
        f"{candidate.target}: {verdict} ({', '.join(known)})." if known else f"{candidate.target}: {verdict}."
    )


def _figure(value: float) -> str:
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"
