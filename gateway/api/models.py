"""GET /v1/models: what clients may ask for, merged over targets. A model whose engines are all away stays
listed."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.api.catalogue import Catalogue
from gateway.api.errors import rejection
from gateway.routing.view import EngineSnapshot, ModelTargets


class ModelList:
    """The list, and one card by name. `created` is the gateway's start in epoch seconds: targets disagree on
    it."""

    def __init__(self, catalogue: Catalogue, snapshots: Mapping[str, EngineSnapshot], created: int) -> None:
        self._catalogue, self._snapshots, self._created = catalogue, snapshots, created

    def list(self) -> bytes:
        """All models and aliases, in OpenAI's shape."""
        names = self._catalogue.names
        cards = [self._card(name, self._catalogue.models[model]) for name, model in names.items()]
        return json.dumps({"object": "list", "data": cards}).encode()

    def one(self, name: str) -> bytes:
        """One card. Raises Rejected (404)."""
        model = self._catalogue.names.get(name)
        if model is None:
            raise rejection("model_not_found", name[:200], param="model")
        return json.dumps(self._card(name, self._catalogue.models[model])).encode()

    def _card(self, name: str, targets: ModelTargets) -> dict[str, Any]:
        lengths = [self._snapshots[e].max_model_len for e in targets.engines]
        known = [length for length in lengths if length is not None]
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "spillgate",
            "root": targets.name,
            "max_model_len": max(known, default=None),
        }
