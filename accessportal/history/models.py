"""The AccessHistory items and their keys."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex

from accessportal.store.base import PortalModel, register


class PersonIndex(GlobalSecondaryIndex["HistoryItem"]):
    """The rows of one person, group or track, in the order of those of a thing."""

    class Meta:
        index_name = "PersonIndex"
        projection = AllProjection()

    person_place = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)


@register
class HistoryItem(PortalModel):
    """An interval, the mark of how far an entity's events were read, or how far all is: its keys tell which. An interval lies under its
    thing, in the part ``open``; when it is over, in those of the months (or years) that it touches. A row begins with its part."""

    base_table_name = "AccessHistory"
    # Of schema 1 each part lay under a hash key of its own.
    known_schema = 2

    class Meta:
        table_name = "AccessHistory"
        billing_mode = "PAY_PER_REQUEST"

    place = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)
    person_place = UnicodeAttribute(null=True)
    told = UnicodeAttribute()
    revision = NumberAttribute(null=True)

    person_index = PersonIndex()
