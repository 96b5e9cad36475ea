"""Names are resolved once: aliases are the model, no name is the only model."""

from gateway.api.catalogue import Catalogue
from gateway.routing.view import ModelTargets

ONE = ModelTargets("one")
TWO = ModelTargets("two")


def test_models_and_aliases_resolve_to_the_model() -> None:
    catalogue = Catalogue({"one": ONE, "two": TWO}, {"one": "one", "first": "one", "two": "two"}, {})
    assert catalogue.resolve("first") is catalogue.resolve("one") is ONE
    assert catalogue.resolve("two") is TWO


def test_unknown_names_resolve_to_nothing() -> None:
    catalogue = Catalogue({"one": ONE}, {"one": "one"}, {})
    for name in ("", "One", "one ", "one/../two"):
        assert catalogue.resolve(name) is None


def test_no_name_is_the_only_model_and_none_of_several() -> None:
    assert Catalogue({"one": ONE}, {"one": "one"}, {}).resolve(None) is ONE
    assert Catalogue({"one": ONE, "two": TWO}, {}, {}).resolve(None) is None
