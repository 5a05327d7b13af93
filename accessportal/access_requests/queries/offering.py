"""What rules offer somebody, and the way in where they offer nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accessportal.access_requests.config import current
from accessportal.access_requests.kinds.group.terms import MembershipAsked
from accessportal.access_requests.offers import Seeker, serving
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.subjects import subject_facts
from accessportal.access_requests.states import AccessRequest, Approver, Subject, WayIn
from accessportal.directory.queries import Named
from accessportal.directory.states import Group, GroupRole
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.rules.states import EVERYBODY, Rule

_MOST_WAYS = 5
_LESSER_FIRST = tuple(sorted(GroupRole, key=lambda role: role.rank))


def seeker_of(*, kind: str, given: Mapping[str, str], actor: Actor, book: ApproverBook, lately: Iterable[AccessRequest] = ()) -> Seeker:
    """Who fills in the form of a kind, for themselves or for a group (``subject`` of what is ``given``). Whom the directory does not let
    ask is served by no rule. ``lately``: their requests, newest first."""
    try:
        subject = subject_facts(given.get("subject") or None, actor, book=book)
    except (InvalidRequest, NotAllowed):
        subject = Subject(subject_id=actor.name, name=actor.name, groups=frozenset(), requester_name="")
    asked = (one.target for one in lately if one.kind == kind)
    return Seeker(
        subject=subject,
        served=serving(book.rules.values(), kind, subject) if subject.requester_name else (),
        decide=book.decide,
        given=given,
        lately=frozenset(str(value) for target in asked for value in target.values()),
    )


def kinds_served(*, kinds: Iterable[str], actor: Actor, book: ApproverBook) -> frozenset[str]:
    """Of which kinds some rule offers the actor, or a group of theirs, something."""
    seeker = seeker_of(kind="", given={}, actor=actor, book=book)
    return frozenset(kind for kind in kinds if seeker.subject.requester_name and serving(book.rules.values(), kind, seeker.subject))


def ways_in(*, rules: Iterable[Rule], subject: Subject, book: ApproverBook) -> tuple[WayIn, ...]:
    """The groups in which these rules would serve the subject, in the order of the rules; the first few."""
    names = dict.fromkeys(name for rule in rules for name in (*rule.subjects.groups, *rule.subjects.groups_only) if name != EVERYBODY)
    groups = book.directory.groups(names)
    found = [groups[name] for name in names if name in groups and groups[name].is_enabled]
    return tuple(WayIn(group.group_id, group.name, _role_to_ask_for(group, subject, book)) for group in found[:_MOST_WAYS])


def can_ask_to_join(*, group: Group, above: GroupRole | None, actor: Actor, book: ApproverBook) -> bool:
    """Whether some rule lets the actor ask for a role in the group, higher than ``above``."""
    seeker = seeker_of(kind="group", given={}, actor=actor, book=book)
    return bool(seeker.served) and bool(_role_to_ask_for(group, seeker.subject, book, above=above))


def admins_or_operators(*, group_id: str, book: ApproverBook) -> tuple[Approver, ...]:
    """Who can put somebody into the group."""
    return _in(Named(admins_of=group_id), book) or operators(book=book)


def operators(*, book: ApproverBook) -> tuple[Approver, ...]:
    """Whom to ask when nothing else helps."""
    return _in(Named(groups=(current().operator_group,)), book)


def _in(named: Named, book: ApproverBook) -> tuple[Approver, ...]:
    """Whom to write to. What they sign in with is nobody's business here."""
    people = book.directory.crowd(named, now=book.now).people
    return tuple(Approver(email=person.key, name=person.name or person.email, identity="") for person in people)


def _role_to_ask_for(group: Group, subject: Subject, book: ApproverBook, *, above: GroupRole | None = None) -> str:
    """The least, higher than ``above``, that some rule lets them ask for in the group; empty for none."""
    way = frozenset((*group.ancestors, group.group_id))
    for role in _LESSER_FIRST:
        if above is not None and role.rank <= above.rank:
            continue
        asked = MembershipAsked(group.group_id, group.name, way, role.value)
        if book.decide(subject.question(asked, duration_seconds=None, ticket_id=None)).allowed:
            return role.value
    return ""
