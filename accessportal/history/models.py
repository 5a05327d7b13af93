"""The AccessHistory items and their keys."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex

from accessportal.store.base import PortalModel, register


class PersonIndex(GlobalSecondaryIndex["HistoryItem"]):
    """The rows of one person, group or track, in the parts in which those of a thing lie."""

    class Meta:
        index_name = "PersonIndex"
        projection = AllProjection()

    person_place = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)


@register
class HistoryItem(PortalModel):
    """An interval, the mark of how far an entity's events were read, or how far all is: its keys tell which. An interval lies under its
    thing and ``open``; when it is over, under its thing and each month (or year) that it touches."""

    base_table_name = "AccessHistory"

    class Meta:
        table_name = "AccessHistory"
        billing_mode = "PAY_PER_REQUEST"

    place = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)
    person_place = UnicodeAttribute(null=True)
    told = UnicodeAttribute()
    revision = NumberAttribute(null=True)

    person_index = PersonIndex()
