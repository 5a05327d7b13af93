"""Every resource of the console by its name."""

from __future__ import annotations

from accessportal.console.resource import Resource
from accessportal.console.resources.account_pool import POOL
from accessportal.console.resources.assignments import Assignments
from accessportal.console.resources.authz import RECORDS
from accessportal.console.resources.catalog import Accounts, PermissionSets
from accessportal.console.resources.drift import Differences
from accessportal.console.resources.events import Events
from accessportal.console.resources.evidence import Evidence
from accessportal.console.resources.former_people import FormerPeople
from accessportal.console.resources.groups import Groups
from accessportal.console.resources.history import History
from accessportal.console.resources.leases import Leases
from accessportal.console.resources.people import People
from accessportal.console.resources.requests import Requests
from accessportal.console.resources.rules import Rules
from accessportal.console.resources.sandboxes import Sandboxes, SandboxRuns
from accessportal.console.resources.scopes import Scopes
from accessportal.console.resources.stand_ins import StandIns
from accessportal.console.resources.tokens import Tokens

RESOURCES: dict[str, Resource] = {
    resource.name: resource
    for resource in (
        Requests(),
        StandIns(),
        Assignments(),
        Differences(),
        People(),
        FormerPeople(),
        Groups(),
        Rules(),
        Events(),
        Accounts(),
        PermissionSets(),
        Sandboxes(),
        SandboxRuns(),
        POOL,
        Leases(),
        Tokens(),
        *RECORDS.values(),
        Scopes(),
        History(),
        Evidence(),
    )
}
