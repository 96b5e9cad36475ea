"""A bounded memory of who served which prefix."""

from gateway.routing.affinity import AffinityBook


def test_the_last_engine_is_remembered_and_the_oldest_prefix_forgotten() -> None:
    book = AffinityBook(size=2)
    book.served(1, "a")
    book.served(2, "b")
    book.served(1, "c")
    book.served(3, "a")
    assert [book.engine_for(k) for k in (1, 2, 3)] == ["c", None, "a"]


def test_a_request_without_prefix_asks_and_teaches_nothing() -> None:
    book = AffinityBook()
    book.served(None, "a")
    assert book.engine_for(None) is None
