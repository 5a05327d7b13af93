"""A kind of access that is not shipped: a door of the building for a person, by day or by night. It shows what a further kind costs."""

from __future__ import annotations

from accessportal.access_requests.kind import Kind
from tests.access_requests.trial_kind.fields import FIELDS
from tests.access_requests.trial_kind.grant import DoorGrant
from tests.access_requests.trial_kind.target import DoorTarget
from tests.access_requests.trial_kind.terms import DoorTerms

DOOR = Kind(DoorTarget(), DoorTerms, DoorGrant(), FIELDS)
