"""What can go wrong between the gateway and a target.

UpstreamError
├── Refused         never connected: refused, no such host, TLS failure            (outcome upstream_refused)
├── PoolFull        no connection came free in time: our own limit, not the target's (shed)
├── TimedOut        connect or first-byte limit passed                             (upstream_timeout)
├── Stalled         the body stopped coming                                        (upstream_stall)
├── Cut             reset, or end of file where more was promised                  (upstream_cut)
├── ProtocolBroken  not HTTP, not SSE, wrong length                                (upstream_protocol)
└── TooLarge        header block, body or event above its limit                    (upstream_too_large)

`sent` tells whether any request byte may have reached the target: what was never sent cannot be billed.
"""

from typing import ClassVar, Literal

UpstreamOutcome = Literal[
    "internal", "shed", "upstream_refused", "upstream_timeout", "upstream_stall", "upstream_cut",
    "upstream_protocol", "upstream_too_large",
]  # fmt: skip


class UpstreamError(Exception):
    """Base: `outcome` is the ledger's word; the text names no address, path or secret."""

    outcome: ClassVar[UpstreamOutcome] = "internal"

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Refused(UpstreamError):
    """Nothing was sent: the dial failed."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_refused"

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class PoolFull(UpstreamError):
    """Nothing was sent: every connection to the target was in use. Says nothing about the target's health."""

    outcome: ClassVar[UpstreamOutcome] = "shed"

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class TimedOut(UpstreamError):
    """The connect limit (`sent` false) or first-byte limit (`sent` true) passed."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_timeout"


class Stalled(UpstreamError):
    """Headers came, then nothing for longer than the limit between reads."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_stall"


class Cut(UpstreamError):
    """The connection broke before the answer was whole."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_cut"


class ProtocolBroken(UpstreamError):
    """The peer does not speak what it should."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_protocol"


class TooLarge(UpstreamError):
    """More bytes than the limit."""

    outcome: ClassVar[UpstreamOutcome] = "upstream_too_large"
