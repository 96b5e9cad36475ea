"""The policies that are always there: what the files of the same names in `policies/` say. Reads no file.

A file of the same name in the configured folder takes the place of one of these.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.routing.policy import Admit, OverflowRules, Policy
from gateway.routing.rules import HeadroomRule, QueueRule, TtftRule

SHIPPED: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            Policy(
                name="balanced",
                admit=Admit(queue=QueueRule(), ttft=TtftRule()),
                overflow=OverflowRules(
                    when=(
                        "headroom",
                        "queue",
                        "ttft",
                        "preempting",
                        "context",
                        "unreachable",
                        "booting",
                        "unbootable",
                    ),
                    spill_first="lowest_value",
                ),
            ),
            Policy(
                name="local-first",
                admit=Admit(headroom=HeadroomRule(limit=1.0), queue=QueueRule(max_waiting=32)),
                overflow=OverflowRules(
                    when=("headroom", "preempting", "context", "unreachable", "booting", "unbootable"),
                    prefer="listed",
                ),
            ),
            Policy(name="never-overflow", overflow=OverflowRules(when=()), pin="local"),
            Policy(name="handover", pin="overflow"),
        )
    }
)
