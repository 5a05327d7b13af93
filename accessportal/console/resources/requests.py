"""The requests: the queue of those who decide (``queue``), and every list by which an operator looks for one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Described, Search
from accessportal.catalog import queries as catalog
from accessportal.console.bulk import Prospect
from accessportal.console.folding import folded
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Right, Row
from accessportal.console.resources.all_requests import MORE, PERSON, found, near_accounts, told
from accessportal.console.resources.queue import DECIDED_BY_ME, PENDING, STATE, UNDECIDABLE, WAITING, WHO
from accessportal.directory import queries as directory
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import InvalidRequest, PortalError
from accessportal.kernel.pages import Page
from accessportal.web.exporting import exported
from accessportal.web.names import Names
from accessportal.web.request_deeds import APPROVE, DENY, END, RETRY
from accessportal.web.stand_in_deeds import named

_SUGGESTIONS = 5
_MOST_PAGES_OF_PEOPLE = 5
_PEOPLE_PAGE = 200
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cells of one request need besides it; ``in_place_of``: the name of the approver in whose place the reader decides."""

    described: Described
    in_place_of: str = ""


ASKS_FOR = Column("Asks for", "console/cells/asks_for.html", "col-what")
HOLDS = Column("Holds", "console/cells/asks_for.html", "col-what")
HOW = Column("By which rule", "console/cells/how.html", "col-context")
TIME = Column("Time", "console/cells/time_left.html", "col-time")
TROUBLE = Column("What is in the way", "console/cells/trouble.html", "col-context")

_HOLDING = (WHO, HOLDS, TIME)


class Requests(Resource):
    name = "requests"
    singular = "request"
    plural = "Requests"
    icon = "inbox"
    about = "Decide what waits, see what is active, find what is stuck."
    right = Right.DECIDERS
    portal_page = "request"
    line_template = "console/requests/line.html"
    prospects_template = "console/requests/prospects.html"
    box = Parameter("Person, group, account, ticket or request id", placeholder="Person, account, ticket…")
    columns = (WHO, ASKS_FOR, STATE)
    file_columns = exported(
        "request_id",
        "status",
        "kind",
        ("title", lambda request: queries.title_of(request=request)),
        "subject_id",
        "requested_by",
        "asked_through",
        "reason",
        "ticket_id",
        "duration_seconds",
        "requested_at",
        "expires_at",
        ("approved_by", "approvals"),
        "decided_by",
        "in_place_of",
        "decided_at",
        "decision_reason",
        "granted_at",
        "ended_by",
        "revoked_at",
        "rule_name",
        "target",
        "scope",
        "extends",
        "comments",
        "work",
        "work_attempts",
        "work_error",
    )
    opens_on = ("waiting", "pending", "active", "all")
    notice_template = "console/requests/found.html"
    patterns = (
        WAITING,
        PENDING,
        DECIDED_BY_ME,
        Pattern(
            name="active",
            is_live=True,
            label="Active",
            fetch=lambda ask: queries.list_active(**ask.part_seen),
            columns=_HOLDING,
            empty_title="Nobody holds access through the portal now",
            empty_hint="Granted requests appear here until their access is proved gone.",
        ),
        Pattern(
            name="ending",
            is_live=True,
            label="Ending soon",
            fetch=lambda ask: queries.list_ending_soon(**ask.part_seen),
            columns=_HOLDING,
            empty_title="Nothing ends within the hour",
            empty_hint="Look under “Active” for everything that is held.",
        ),
        Pattern(
            name="stuck",
            is_live=True,
            label="Stuck",
            fetch=lambda ask: queries.list_stuck(**ask.part_seen),
            columns=(WHO, HOLDS, TROUBLE),
            row_deeds=("retry",),
            tally=lambda ask: queries.count_stuck(actor=ask.actor, now=ask.now),
            empty_title="Nothing is stuck",
            empty_hint="A grant or revocation that fails or is more than a minute late stands here with its last error. "
            "Who waits in line for a sandbox or an account does not: their turn comes.",
        ),
        UNDECIDABLE,
        Pattern(
            name="unreadable",
            label="Unreadable",
            fetch=lambda ask: queries.list_unreadable(**ask.part_seen),
            goes_on=True,
            empty_title="Every request that waits or is active can be read",
            empty_hint="An item into which another program wrote what makes no sense is named here, and on every list that meets it.",
        ),
        Pattern(
            name="all",
            label="All requests",
            fetch=found,
            parameter=PERSON,
            more=MORE,
            columns=(WHO, ASKS_FOR, HOW, STATE),
            empty_title="No such request",
            empty_hint="Check the spelling, or ask for less; what ended long ago was purged.",
        ),
        Pattern(
            name="id",
            label="Request",
            fetch=lambda ask: Page((queries.get(request_id=ask.parameter, actor=ask.actor, now=ask.now),)),
            parameter=Parameter("Request", "its whole id"),
            is_tab=False,
            empty_title="No such request",
            empty_hint="Check the id.",
        ),
    )
    deeds = (APPROVE, DENY, END, RETRY)

    def read(self, key: str, actor: Actor, now: datetime) -> AccessRequest:
        return queries.get(request_id=key, actor=actor, now=now)

    def title(self, record: AccessRequest) -> str:
        return f"{queries.title_of(request=record)} for {record.subject_id}"

    def load_many(self, keys: Sequence[str], ask: Ask) -> Mapping[str, AccessRequest | PortalError]:
        return queries.get_many(request_ids=keys, actor=ask.actor, book=ask.book)

    def described_together(self, prospects: Sequence[Prospect]) -> dict[str, Any]:
        return {"folds": folded(prospects)}

    def rows(self, items: Sequence[AccessRequest], ask: Ask) -> list[Row]:
        of_stand_in = ask.pattern == "waiting" and not ask.actor.is_operator
        return [Row(one.request_id, one, Seen(_described(one), _in_place_of(one, ask) if of_stand_in else "")) for one in items]

    def notice(self, pattern: Pattern, ask: Ask) -> Mapping[str, Any]:
        if pattern.name == "waiting":
            standing_in = () if ask.actor.is_operator else ask.book.stand_ins_of(ask.actor)
            return {"decides": True, "standing_in": named(standing_in, ask.book)}
        return told(ask) if pattern.name == "all" else {}

    def find(self, text: str, ask: Ask) -> tuple[str, Mapping[str, str]]:
        Right.READERS.require(ask.actor)
        if "@" in text or text.startswith("/"):
            return "all", {"q": fold_email(text)}
        if _UUID.fullmatch(text):
            return "id", {"q": text.lower()}
        account = catalog.find_account(account=text)
        if account is not None:
            return "all", {"account": account.account_id}
        if queries.search(search=Search(ticket_id=text), actor=ask.actor, now=ask.now, limit=1).items:
            return "all", {"ticket": text}
        named = _named_subjects(text)
        if len(named) == 1 and not near_accounts(text):
            return "all", {"q": named[0]}
        raise InvalidRequest(_suggest(text, named), code="nothing_found", field="find")


def _in_place_of(request: AccessRequest, ask: Ask) -> str:
    """The list has looked up before who they are to it."""
    if ask.book.is_approver(request, ask.actor.name):
        return ""
    one = ask.book.in_place_of(request, ask.actor)
    return Names(ask.book.directory)(one.approver) if one is not None else ""


def _described(request: AccessRequest) -> Described:
    return replace(queries.describe(request=request), title=queries.title_of(request=request))


def _named_subjects(text: str) -> list[str]:
    """Groups and people that are called so, in any spelling of the letters; of people the first thousand are looked through."""
    wanted = " ".join(text.split()).casefold()
    found = [group.group_id for group in directory.tree().groups.values() if wanted in {group.name.casefold(), group.group_id.strip("/")}]
    cursor: str | None = None
    for _ in range(_MOST_PAGES_OF_PEOPLE):
        page = directory.list_people(cursor=cursor, limit=_PEOPLE_PAGE)
        found += [person.key for person in page.items if _is_called(person.name, wanted)]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _is_called(name: str, wanted: str) -> bool:
    """By the whole name, or a part of it."""
    words = name.casefold().split()
    return bool(wanted) and (wanted == " ".join(words) or wanted in words)


def _suggest(text: str, named: Sequence[str]) -> str:
    """What was probably meant, when the box found no person and no account."""
    near = near_accounts(text)
    near += [person.key for person in directory.list_people(prefix=fold_email(text), limit=_SUGGESTIONS).items]
    near += [subject for subject in named if subject not in near][:_SUGGESTIONS]
    kinds = "Type an e-mail address, a group’s name or path, an account’s name or 12 digits, a ticket, or a request’s whole id."
    remedy = f"Did you mean {', '.join(near)}?" if near else kinds
    return f"Nothing is called “{text[:60]}”. {remedy}"
