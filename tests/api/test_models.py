"""The model list: every name that may be asked for, with the window that is known."""

import json
from dataclasses import replace

import pytest

from gateway.api.catalogue import Catalogue
from gateway.api.errors import Rejected
from gateway.api.models import ModelList
from gateway.routing.view import EngineSnapshot, EngineState, ModelTargets

TARGETS = ModelTargets("tiny", engines=("a", "b"))
CATALOGUE = Catalogue({"tiny": TARGETS}, {"tiny": "tiny", "small": "tiny"}, {})


def models(*lengths: int | None) -> ModelList:
    snapshots = {n: EngineSnapshot(n, max_model_len=length) for n, length in zip("ab", lengths, strict=True)}
    return ModelList(CATALOGUE, snapshots, 1_800_000_000)


def test_aliases_are_listed_with_their_root() -> None:
    listed = json.loads(models(512, 1024).list())
    assert listed["object"] == "list"
    assert [(c["id"], c["root"], c["max_model_len"]) for c in listed["data"]] == [
        ("tiny", "tiny", 1024),
        ("small", "tiny", 1024),
    ]
    assert {c["created"] for c in listed["data"]} == {1_800_000_000}


@pytest.mark.parametrize(("lengths", "known"), [((None, None), None), ((None, 7), 7)])
def test_an_unknown_window_is_null_and_not_0(lengths: tuple[int | None, ...], known: int | None) -> None:
    assert json.loads(models(*lengths).one("small"))["max_model_len"] == known


def test_a_model_whose_engines_are_away_stays_listed() -> None:
    away = replace(EngineSnapshot("a"), state=EngineState.UNREACHABLE)
    only = Catalogue({"tiny": ModelTargets("tiny", engines=("a",))}, {"tiny": "tiny"}, {})
    assert json.loads(ModelList(only, {"a": away}, 0).list())["data"][0]["id"] == "tiny"


def test_another_name_is_a_404() -> None:
    with pytest.raises(Rejected) as refused:
        models(1, 1).one("tiny2")
    assert refused.value.answer.status == 404
