"""Promises are kept, counted and given back, in any order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.reservations import ReservationBook, blocks_for


def make(book: ReservationBook, **changes: Any) -> Any:
    wants: dict[str, Any] = {
        "prompt_tokens": 100, "expected_output": 60, "max_output": 600, "choices": 1, "block_size": 32,
        "streams": True, "now": 0.0,
    }  # fmt: skip
    return book.reserve(**(wants | changes))


def test_a_request_is_promised_what_it_will_hold_at_its_end() -> None:
    book = ReservationBook()
    make(book)
    make(book, choices=2)
    assert book.promised_blocks == 5 + 10


def test_held_blocks_follow_the_stream() -> None:
    book = ReservationBook()
    reservation = make(book)
    assert book.held_blocks(0.0) == 4
    reservation.streamed = 40
    assert book.held_blocks(0.0) == 5


def test_a_request_that_does_not_stream_is_assumed_to_decode_at_the_learned_rate() -> None:
    book = ReservationBook()
    for _ in range(200):
        book.learn_decode_rate(100, 1.0)
    make(book, streams=False, expected_output=320)
    assert book.held_blocks(0.0) == 4
    assert 6 <= book.held_blocks(1.0) <= 7
    assert book.held_blocks(99.0) == blocks_for(420, 32)


def test_outgrowing_never_passes_the_callers_limit() -> None:
    book = ReservationBook()
    reservation = make(book, max_output=90)
    book.outgrow(reservation, 500)
    assert reservation.expected_output == 90
    assert book.promised_blocks == blocks_for(190, 32)


def test_releasing_twice_gives_back_once() -> None:
    book = ReservationBook()
    reservation = make(book)
    book.release(reservation)
    book.release(reservation)
    assert (book.promised_blocks, len(book), book.prefill_backlog, book.finished) == (0, 0, 0, 1)


@given(
    st.lists(st.tuples(st.sampled_from(["start", "token", "grow", "end"]), st.integers(0, 400)), max_size=80)
)
def test_any_interleaving_ends_at_zero_and_sums_what_is_open(steps: list[tuple[str, int]]) -> None:
    book = ReservationBook()
    live: list[Any] = []
    for step, size in steps:
        match step:
            case "start":
                live.append(make(book, prompt_tokens=size))
            case "token" if live:
                book.first_token(live[size % len(live)])
            case "grow" if live:
                book.outgrow(live[size % len(live)], size)
            case "end" if live:
                book.release(live.pop(size % len(live)))
        assert book.promised_blocks == sum(r.peak_blocks() for r in live)
        assert book.prefill_backlog == sum(r.prompt_tokens for r in live if not r.has_first_token)
    for reservation in live:
        book.release(reservation)
    assert (book.promised_blocks, len(book), book.prefill_backlog) == (0, 0, 0)
