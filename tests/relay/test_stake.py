"""What an attempt holds is given back whatever becomes of it; what it teaches, it teaches once."""

from bench import Bench

from gateway.relay.stake import Stake
from gateway.routing.budgets import HOUR
from gateway.wire.usage import Usage

REPORTED = Usage(prompt=100, completion=40, source="reported")


def test_blocks_are_reserved_and_released(bench: Bench) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted)
    book = bench.parts.view.books["a"]
    stake = Stake(bench.parts, admitted, attempt, 1_000_000)
    stake.take()
    assert (len(book), book.promised_blocks) == (1, bench.local.need.blocks)
    assert bench.parts.counters.inflight["a"] == 1
    stake.give_back(0)
    assert (len(book), book.promised_blocks, book.prefill_backlog) == (0, 0, 0)
    assert bench.parts.counters.inflight["a"] == 0


def test_a_promise_is_settled_by_what_was_spent(bench: Bench) -> None:
    admitted = bench.admit()
    budgets, wall = bench.parts.view.budgets, bench.parts.wall()
    for spent, total in ((700_000, 700_000), (None, 1_700_000), (0, 1_700_000)):
        stake = Stake(bench.parts, admitted, bench.attempt(admitted, bench.far), None)
        stake.take()
        stake.give_back(spent)
        # Where nobody can say what was spent, what was promised counts.
        assert budgets.spent("serverless", HOUR, wall) == total


def test_a_longer_answer_than_expected_holds_more(bench: Bench) -> None:
    admitted = bench.admit(max_tokens=500, stream=True)
    attempt = bench.attempt(admitted)
    book = bench.parts.view.books["a"]
    stake = Stake(bench.parts, admitted, attempt, None)
    stake.take()
    before, backlog = book.promised_blocks, book.prefill_backlog
    stake.progress(1)
    assert book.prefill_backlog < backlog
    stake.progress(60)
    assert book.promised_blocks > before
    stake.give_back(0)
    assert book.promised_blocks == 0


def test_a_whole_answer_teaches_lengths_and_an_estimate_does_not(bench: Bench) -> None:
    lengths = bench.parts.view.lengths

    def learn(usage: Usage | None) -> int:
        admitted = bench.admit()
        attempt = bench.attempt(admitted, usage=usage, content_events=40, first_event_at=bench.times[0])
        attempt.ended_at = bench.times[0] + 1
        Stake(bench.parts, admitted, attempt, None).learn()
        return int(lengths.expected_output("tiny", max_tokens=None, quantile=0.5))

    unknown = learn(None)
    assert learn(Usage(prompt=100, completion=40, source="estimated")) == unknown
    assert [learn(REPORTED) for _ in range(64)][-1] < unknown


def test_a_full_queue_ahead_is_not_taken_for_a_slow_engine(bench: Bench) -> None:
    admitted = bench.admit(stream=True)
    attempt = bench.attempt(admitted, usage=REPORTED, content_events=40)
    stake = Stake(bench.parts, admitted, attempt, None)
    stake.take()
    bench.pass_time(0.5)
    attempt.first_event_at = bench.times[0]
    bench.pass_time(1.0)
    attempt.ended_at = bench.times[0]
    stake.give_back(0)
    rate = bench.parts.view.books["a"].decode_rate
    stake.learn()
    assert bench.parts.view.books["a"].decode_rate != rate
