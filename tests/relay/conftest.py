"""The parts of a gateway that does not run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench, Sink
from stack import ENVIRON, write_config

from gateway.api.assemble import catalogue_of
from gateway.api.intake import Intake
from gateway.app import build
from gateway.config.load import load
from gateway.relay.parts import RelayParts


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    config = load(write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1"), ENVIRON)
    times = [1000.0]
    gateway = build(config, clock=lambda: times[0], wall=lambda: 1_800_000_000 + times[0])
    sink = Sink()
    built = gateway.parts
    parts = RelayParts(
        built.view, built.targets, sink, built.counters, built.engine_rates, built.clock, built.wall
    )
    yield Bench(parts, sink, Intake(catalogue_of(config), built.view.lengths, built.clock), times)
    gateway.journal.close()
    gateway.store.close()
