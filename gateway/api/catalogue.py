"""The names that clients may ask for, resolved once: aliases, models, their targets and policies."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.routing.policy import Policy
from gateway.routing.view import ModelTargets


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`names` maps every model name and alias to its model."""

    models: Mapping[str, ModelTargets]
    names: Mapping[str, str]
    policies: Mapping[str, Policy]

    def resolve(self, name: str | None) -> ModelTargets | None:
        """The model of this name or alias. No name means the only model, where there is only one (as vLLM
        does)."""
        if name is None:
            return next(iter(self.models.values())) if len(self.models) == 1 else None
        model = self.names.get(name)
        return None if model is None else self.models[model]
