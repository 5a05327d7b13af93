"""Attributes that PynamoDB has not, or not as we need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pynamodb.attributes import Attribute, MapAttribute
from pynamodb.constants import MAP


class FreeMapAttribute(Attribute[Mapping[str, Any]]):
    """A map whose names others choose: PynamoDB's own takes ``self`` and ``_user_instantiated`` for arguments."""

    attr_type = MAP

    def serialize(self, value: Mapping[str, Any]) -> Any:
        return MapAttribute().serialize(value)

    def deserialize(self, value: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = MapAttribute().deserialize(value)
        return found
