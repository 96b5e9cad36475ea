"""Places of values and keys, also of those that are not there."""

from gateway.config.locate import Place, Places

PLACES = Places(
    "f",
    keys={("a",): Place(1, 1), ("a", "b"): Place(2, 3)},
    values={(): Place(1, 1), ("a",): Place(2, 3), ("a", "b"): Place(2, 6)},
    spellings={("a", "b"): "0.40"},
)


def test_a_value_and_its_key_have_different_places() -> None:
    assert PLACES.of_value(("a", "b")) == (2, 6)
    assert PLACES.of_key(("a", "b")) == (2, 3)


def test_what_is_not_there_stands_where_its_surroundings_do() -> None:
    assert PLACES.of_value(("a", "missing", 3)) == (2, 3)
    assert PLACES.of_key(("a", "missing")) == (2, 3)
    assert Places("empty").of_value(("x",)) == (1, 1)


def test_a_spelling_is_kept_as_written() -> None:
    assert PLACES.spelling(("a", "b")) == "0.40"
    assert PLACES.spelling(("a",)) is None
