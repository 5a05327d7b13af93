"""The demo's directory: a small company as a tree of groups, and its people. Made once; what somebody changed afterwards stays.

Whether something was made before is asked of the audit log, which remembers what was taken away again.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.queries.book import Book
from accessportal.directory.states import ROOT, GroupRole, group_entity, person_entity
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict

_ACTOR = system("demo")
_FOUNDER = "olga@example.com"


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """``group`` is the one that Identity Center knows them in, empty for somebody whom no rule serves. ``part`` is what to try
    as them; without one they can't sign in."""

    email: str
    name: str
    group: str
    part: str = ""


PEOPLE = (
    DemoPerson("alice@example.com", "Alice Archer", "/engineering/payments", "asks for access"),
    DemoPerson("bob@example.com", "Bob Baker", "/security", "decides requests"),
    DemoPerson("sam@example.com", "Sam Suzuki", "/security", "decides requests, the second of two"),
    DemoPerson("mei@example.com", "Mei Marino", "/security", "decides requests, and is admin of /engineering"),
    DemoPerson("mallory@example.com", "Mallory Moss", "", "is served by no rule"),
    DemoPerson(_FOUNDER, "Olga Orlov", "/portal/operators", "runs the portal, and is admin of all groups"),
    DemoPerson("ana@example.com", "Ana Almeida", "/portal/auditors", "reads everything"),
    DemoPerson("priya@example.com", "Priya Pillai", "/data", "decides for the data team, and has much to decide"),
)
COLLEAGUES = (
    DemoPerson("tom@example.com", "Tom Turner", "/engineering/platform"),
    DemoPerson("nina@example.com", "Nina Novak", "/engineering/payments/ledger"),
    DemoPerson("femi@example.com", "Femi Falade", "/engineering/platform/networking"),
    DemoPerson("ines@example.com", "Inês Iglesias", "/finance"),
    DemoPerson("carl@example.com", "Carl Crane", "/contractors"),
    DemoPerson("rosa@example.com", "Rosa Ricci", "/engineering/platform"),
    DemoPerson("viktor@example.com", "Viktor Voss", "/engineering/web"),
    DemoPerson("wen@example.com", "Wen Wu", "/engineering/web"),
    DemoPerson("yusuf@example.com", "Yusuf Yilmaz", "/engineering/mobile"),
    DemoPerson("zoe@example.com", "Zoe Zimmer", "/engineering/mobile"),
    DemoPerson("carla@example.com", "Carla Costa", "/data/analytics"),
    DemoPerson("deepak@example.com", "Deepak Desai", "/data/analytics"),
    DemoPerson("elin@example.com", "Elin Ek", "/data"),
)

# Parents first.
GROUPS = {
    "/engineering": "Everybody who builds",
    "/engineering/payments": "Takes money in and pays it out: cards, payouts, refunds",
    "/engineering/payments/ledger": "The books behind the payments",
    "/engineering/payments/ledger/reports": "What the finance people read",
    "/engineering/payments/on-call": "Whoever is woken up this week",
    "/engineering/platform": "What all others build on, and whom they call at night",
    "/engineering/platform/networking": "Networks and names",
    "/engineering/web": "The storefront and the checkout in browsers",
    "/engineering/mobile": "The apps, and what they talk to",
    "/data": "Keeps the lake and the warehouse, and decides who reads them",
    "/data/analytics": "Reports, forecasts and the numbers behind them",
    "/security": "Decides who gets into production",
    "/security/response": "Whoever acts when something happens",
    "/finance": "Books, taxes and the close of the year",
    "/support": "Answers customers",
    "/contractors": "People of other companies, for as long as their contract lasts",
    "/portal": "The portal's own roles",
    "/portal/operators": "Run the portal: they see everything, and decide where nobody else can",
    "/portal/auditors": "See everything and change nothing",
}

# Besides the group of each person above, where everybody is contributor unless this says otherwise.
_ROLES = {
    ("mei@example.com", "/engineering"): GroupRole.ADMIN,
    ("sam@example.com", "/security/response"): GroupRole.ADMIN,
    ("bob@example.com", "/security/response"): GroupRole.CONTRIBUTOR,
    ("priya@example.com", "/data"): GroupRole.ADMIN,
    ("tom@example.com", "/engineering/platform"): GroupRole.ADMIN,
    ("ines@example.com", "/finance"): GroupRole.ADMIN,
    ("ines@example.com", "/engineering/payments/ledger/reports"): GroupRole.READER,
    ("nina@example.com", "/engineering/payments/on-call"): GroupRole.CONTRIBUTOR,
    ("carl@example.com", "/contractors"): GroupRole.READER,
}


def ensure_directory(clock: Clock) -> None:
    """Found the directory, with Olga as admin of the root unless somebody else is, and make the demo's groups, people and roles. Cognito is
    left to the sweep: to wait for it after each of some fifty changes would take long."""
    with operations.following_later():
        _ensure_founded(clock)
        for group_id, description in GROUPS.items():
            _ensure_group(group_id, description, clock)
        for one in (*PEOPLE, *COLLEAGUES):
            _ensure_person(one, clock)


def _ensure_founded(clock: Clock) -> None:
    founder = next(one for one in PEOPLE if one.email == _FOUNDER)
    try:
        operations.found_directory(
            admin_email=founder.email,
            admin_name=founder.name,
            operator_group=settings.OPERATOR_GROUP,
            auditor_group=settings.AUDITOR_GROUP,
            actor=_ACTOR,
            now=clock.now(),
        )
    except Conflict as error:
        if error.code != "directory_founded":
            raise


def _ensure_group(group_id: str, description: str, clock: Clock) -> None:
    parent_id = group_id.rpartition("/")[0] or ROOT
    was_made = queries.find_group(group_id=group_id) or audit.history(group_entity(group_id), limit=1).items
    if was_made or queries.find_group(group_id=parent_id) is None:
        return
    name = group_id.rpartition("/")[2].replace("-", " ").capitalize()
    operations.create_group(group_id=group_id, name=name, description=description, actor=_ACTOR, now=clock.now())


def _ensure_person(one: DemoPerson, clock: Clock) -> None:
    roles = {group_id: role for (email, group_id), role in _ROLES.items() if email == one.email}
    if one.group:
        roles.setdefault(one.group, GroupRole.CONTRIBUTOR)
    wanted = [group_id for group_id in sorted(roles) if queries.find_group(group_id=group_id) is not None]
    if queries.find_person(email=one.email) is None:
        if audit.history(person_entity(one.email), limit=1).items:
            return
        first = wanted[0] if wanted else None
        role = roles[first] if first else None
        operations.create_person(email=one.email, name=one.name, group_id=first, role=role, actor=_ACTOR, now=clock.now())
    were_there = _groups_ever(one.email)
    for group_id in wanted:
        if group_id not in were_there:
            operations.grant_membership(email=one.email, group_id=group_id, role=roles[group_id], actor=_ACTOR, now=clock.now())


def _groups_ever(email: str) -> frozenset[str]:
    """Every group that the person is or was in: somebody taken out must not come back at the next start."""
    present = {membership.group_id for membership in Book().held_by(email)[1]}
    return frozenset(present | {event.scope for event in audit.chain_of(person_entity(email)) if event.scope})
