"""moto's DynamoDB and botocore with the same answers in less time, beside what the twin does for that (``twin/repairs_of_speed.py``).
``tests/unit/test_quick_moto.py`` compares all of it with moto as it comes."""

from __future__ import annotations

import functools
from typing import Any

import botocore.session
from botocore.loaders import Loader, create_loader
from botocore.parsers import BaseJSONParser

from tests.quick_botocore import quicken_botocore
from tests.quick_dynamodb import quicken_dynamodb

_Json: Any = BaseJSONParser
_structure = _Json._handle_structure


@functools.cache
def quicken_moto() -> None:
    """For the rest of this process."""
    vars(botocore.session)["create_loader"] = _same_loader
    _Json._handle_structure = _quick_structure
    quicken_dynamodb()
    quicken_botocore()


@functools.cache
def _loader(search_path: str | None) -> Loader:
    return create_loader(search_path)


def _same_loader(search_path: str | None = None) -> Loader:
    """Sessions share what they read of botocore's files: a client costs 15 ms then, and 110 otherwise."""
    loader: Any = _loader(search_path)
    # Each of boto3's sessions adds its folder once more.
    loader._search_paths[:] = dict.fromkeys(loader._search_paths)
    return loader  # type: ignore[no-any-return]


def _quick_structure(self: Any, shape: Any, value: Any) -> Any:
    """A value of DynamoDB has one of ten members; botocore looks for each of them."""
    if shape.name != "AttributeValue" or not value:
        return _structure(self, shape, value)
    ((kind, inner),) = value.items()
    return {kind: self._parse_shape(shape.members[kind], inner)}
