"""What a newer version of the portal wrote: named as unreadable where it is read, and never overwritten.

See docs/decisions/0046-made-by-a-newer-version.md.
"""

from __future__ import annotations

from typing import TypeVar

from pynamodb.expressions.condition import Condition

from accessportal.store.base import PortalModel

M = TypeVar("M", bound=PortalModel)


class NewerItem(ValueError):
    """A newer version of the portal made it: this one leaves it alone."""


def known(item: M) -> M:
    """:raises NewerItem: for an item that this version may misread."""
    if (item.schema_version or 0) > item.known_schema:
        raise NewerItem(f"its schema is {item.schema_version:.0f}, and {item.known_schema} is known here")
    return item


def not_newer(model: type[PortalModel]) -> Condition:
    """The condition of every write: no item of a newer version is changed, whoever has read it before."""
    mark = model.schema_version
    condition: Condition = mark.does_not_exist() | (mark <= model.known_schema)
    return condition
