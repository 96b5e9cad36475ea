"""The demo's configuration: what a user would write for these parts, as YAML text. Starts nothing."""

from typing import NamedTuple

MODEL = "llama-3.1-8b"
BIG_MODEL = "llama-3.1-70b"
ADMIN_KEY = "SPILLGATE_DEMO_ADMIN_KEY"
ENDPOINT_KEY = "SPILLGATE_DEMO_ENDPOINT_KEY"


class Addresses(NamedTuple):
    """Where the demo's parts listen, and the boot log of the engine that cannot start."""

    engine_a: str
    engine_b: str
    engine_c: str
    endpoint: str
    boot_log: str
    ledger: str


def config_text(at: Addresses, capacity: float) -> str:
    """spillgate.yaml of the demo.

    `capacity` (work units per second) is what the simulated engine can sustain: its step times are known.
    Return ramps and holds are scaled to the demo's length, which is a minute of a day."""
    return f"""\
listen: {{host: 127.0.0.1, port: 0}}
ledger: {{url: "sqlite:///{at.ledger}"}}
policies: policies
admin: {{key: "${{{ADMIN_KEY}}}"}}
scrape: {{interval: 250ms, timeout: 1s}}

engines:
  - name: l4-a
    url: {at.engine_a}
    gpu: {{type: L4, count: 1}}
    cost: {{usd_per_hour: 0.80, overhead_usd_per_hour: 0.05, capacity_work_units_per_second: {capacity:.0f}}}
  - name: l4-b
    url: {at.engine_b}
    gpu: {{type: L4, count: 1}}
    cost: {{usd_per_hour: 0.80, overhead_usd_per_hour: 0.05, capacity_work_units_per_second: {capacity:.0f}}}
  - name: l4-c
    url: {at.engine_c}
    gpu: {{type: L4, count: 1}}
    boot_log: {at.boot_log}

endpoints:
  - name: serverless
    kind: openai
    base_url: {at.endpoint}
    api_key: ${{{ENDPOINT_KEY}}}
    region: eu-north1
    budget: {{usd_per_hour: 5}}

models:
  - name: {MODEL}
    aliases: [llama]
    engines: [l4-a, l4-b]
    overflow:
      - endpoint: serverless
        model: vendor/{MODEL}
        price: {{input: 0.20, cached_input: 0.10, output: 0.60}}
    policy: demo
  - name: {BIG_MODEL}
    engines: [l4-c]
    overflow:
      - endpoint: serverless
        model: vendor/{BIG_MODEL}
        price: {{input: 0.40, cached_input: 0.20, output: 0.70}}
    policy: demo
"""


def policy_text(seconds: float) -> str:
    """The demo's policy: balanced, with its ramps shortened to the length of the demo."""
    ramp = max(1.0, seconds / 10)
    return f"""\
name: demo
admit:
  headroom: {{reserve: expected, quantile: 0.5, limit: 0.95}}
  queue: {{max_waiting: 4}}
  preemption: {{max: 0, window: {ramp:.1f}s, hold: {ramp / 2:.1f}s}}
  signal: {{stale_after: 2s, when_stale: own_reservations}}
return: {{ramp: {ramp:.1f}s, floor: 0.05}}
deadlines: {{connect: 1s, first_byte: 20s, between_events: 20s, client_stall: 10s}}
"""
