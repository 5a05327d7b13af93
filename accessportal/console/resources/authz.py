"""Approvals and relationships within scopes: who has them and until when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.authz import operations, queries
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Ledger, caller_of, read_scope
from accessportal.authz.states import DIRECT, Approval, Relationship, Scope
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section, filled
from accessportal.console.views import list_url
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.counts import counted
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest, NotFound
from accessportal.kernel.pages import Page
from accessportal.store.keys import join_key, split_key
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import DeedForm, DurationField, line

Record = Approval | Relationship
# Of a share each: with what else a page reads they are the most that one may.
_MOST_READS = 8
_SOON_SECONDS = 7 * 86_400
SCOPE = Parameter("Scope", "tenant:acme-corp")
_BELOW = Parameter("and all below it", input_type="checkbox", required=False, name="below")
_WITHIN = Parameter("Ends within", "Ends within, like 7d", required=False)

_LASTING = ("expires_at", "ttl_seconds", "refreshed_at", "held_until", "metadata")


class ExtendForm(DeedForm):
    aliases: ClassVar[Mapping[str, str]] = {"ttl_seconds": "duration"}

    duration = DurationField(
        label="For how long, from now",
        required=False,
        help_text="Like 30m, 8h or 2d. Empty: as long as the scope’s policy says.",
        widget=line(placeholder="8h"),
    )


def end_in_words(record: Record) -> str:
    return f"until {record.expires_at:%-d %b %Y %H:%M} UTC" if record.expires_at else "without an end"


def key_of(record: Record) -> str:
    """What addresses its page."""
    return join_key(record.scope, *record.names)


def counts_url(scope: Scope, *, of: str = "", is_wide: bool = False, cursor: str = "") -> str:
    """Where how much is in a scope is counted: of one kind of records, or both."""
    given = {"of": of, "below": "yes" if is_wide else "", "cursor": cursor}
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{reverse('admin:console_scopes_counts', args=[scope])}?{query}"


def may_write(actor: Actor) -> Decision:
    if caller_of(actor).may_write:
        return allow("Operators may.")
    return refuse("Only operators grant, extend and revoke here. You may look.", code="authz_read_only")


def _may(_record: Record, actor: Actor, _now: datetime) -> Decision:
    return may_write(actor)


def _extend(ledger: Ledger[Any], record: Record, data: Data, actor: Actor, now: datetime) -> Told:
    granted = operations.extend(ledger, record.scope, record.names, ttl_seconds=data["duration"], caller=caller_of(actor), now=now)
    return Told(" ".join((f"It counts {end_in_words(granted.record)}.", *granted.warnings)))


def _revoke(ledger: Ledger[Any], record: Record, _data: Data, actor: Actor, now: datetime) -> Told:
    operations.revoke(ledger, record.scope, record.names, caller=caller_of(actor), now=now)
    url = list_url(RECORDS[f"{ledger.word}s"], "holder", record.scope, more={"holder": record.names[0]})
    return Told("It was revoked: every check says no from now on.", url)


def _what_revoking_does(record: Record) -> str:
    requests = len(record.held_until.keys() - {DIRECT})
    also = f" {counted(requests, 'request holds', 'requests hold')} it, and lose it as well." if requests else ""
    return f"{title_of(record)}, in {record.scope}: from now on every check says no.{also}"


def _deeds(ledger: Ledger[Any]) -> tuple[Deed[Any], ...]:
    extend: Deed[Record] = Deed(
        name="extend",
        label="Extend",
        question=lambda record: f"Extend {title_of(record)}?",
        explain=lambda record: f"It counts {end_in_words(record)} now. The new end may be sooner or later, within the scope’s policy.",
        may=_may,
        run=partial(_extend, ledger),
        form=ExtendForm,
    )
    revoke: Deed[Record] = Deed(
        name="revoke",
        label="Revoke",
        question=lambda record: f"Revoke {title_of(record)}?",
        explain=_what_revoking_does,
        may=_may,
        run=partial(_revoke, ledger),
        is_for=lambda actor, _book: may_write(actor).allowed,
        stands_on=lambda record: " ".join(sorted(record.held_until)),
        is_destructive=True,
        is_bulk=True,
    )
    return extend, revoke


def title_of(record: Record) -> str:
    """``alice: GET on document-1``; ``alice → editor → document-1``."""
    one, two, three = record.names
    return f"{one}: {three} on {two}" if isinstance(record, Approval) else f"{one} → {two} → {three}"


def _filled(fetch: Callable[..., Page[Any]], ask: Ask) -> Page[Any]:
    return filled(partial(fetch, caller=caller_of(ask.actor), now=ask.now), ask, most_reads=_MOST_READS)


def _in_scope(ledger: Ledger[Any], ask: Ask) -> Page[Any]:
    scope = read_scope(ask.parameter, field="q")
    return _filled(partial(queries.list_in_scope, ledger, scope, is_wide=bool(ask.more["below"])), ask)


def _of_holder(ledger: Ledger[Any], ask: Ask) -> Page[Any]:
    return _filled(partial(queries.list_of_holder, ledger, read_scope(ask.parameter, field="q"), ask.more["holder"]), ask)


def _of_target(ledger: Ledger[Any], ask: Ask) -> Page[Any]:
    target = tuple(ask.more[name] for name in ledger.kind.target_fields)
    return _filled(partial(queries.list_of_target, ledger, read_scope(ask.parameter, field="q"), target), ask)


def _ending(ledger: Ledger[Any], ask: Ask) -> Page[Any]:
    seconds = parse_duration(ask.parameter, field="q") if ask.parameter else _SOON_SECONDS
    page = _filled(partial(queries.list_ending, ledger, until=ask.now + timedelta(seconds=seconds)), ask)
    return Page(tuple(sorted(page.items, key=lambda record: record.expires_at)), page.next_cursor, page.unreadable)


def _patterns(ledger: Ledger[Any], holder: str, targets: Sequence[Parameter], *, who: str) -> tuple[Pattern, ...]:
    several = f"{ledger.word}s"
    hint = "What is over is on no list. Its history stays in the audit log."
    return (
        Pattern(
            name="ending",
            label="Ending soon",
            fetch=partial(_ending, ledger),
            goes_on=True,
            is_by_time=True,
            parameter=_WITHIN,
            bulk=("revoke",),
            empty_title="Nothing ends so soon",
            empty_hint=f"Here are the {several} of all scopes that end within a week, or the time that you give, like 30d.",
        ),
        Pattern(
            name="scope",
            label="In a scope",
            fetch=partial(_in_scope, ledger),
            goes_on=True,
            parameter=SCOPE,
            more=(_BELOW,),
            bulk=("revoke",),
            empty_title=f"No {several} in this scope",
            empty_hint=hint,
        ),
        Pattern(
            name="holder",
            label=f"Of one {holder.lower()}",
            fetch=partial(_of_holder, ledger),
            parameter=SCOPE,
            more=(Parameter(holder, "alice@example.com", name="holder"),),
            bulk=("revoke",),
            empty_title=f"This {holder.lower()} has none here",
            empty_hint=f"Names are told apart by every letter, and scopes hold nothing for each other. {hint}",
        ),
        Pattern(
            name="target",
            label=who,
            fetch=partial(_of_target, ledger),
            parameter=SCOPE,
            more=tuple(targets),
            bulk=("revoke",),
            empty_title="Nobody in this scope",
            empty_hint=f"Names are told apart by every letter. {hint}",
        ),
    )


def _columns(who: str, what: str) -> tuple[Column, ...]:
    return (
        Column(who, "console/authz/cell_name.html", "col-who"),
        Column(what, "console/authz/cell_what.html", "col-what"),
        Column("Scope", "console/authz/cell_scope.html", "col-context"),
        Column("Until", "console/authz/cell_until.html", "col-time"),
    )


class _Records(Resource):
    """What approvals and relationships have in common."""

    ledger: ClassVar[Ledger[Any]]
    notice_template = "console/authz/notice.html"
    headline_template = "console/authz/headline.html"
    sections = (
        Section("Who holds it", "console/authz/holders.html"),
        Section("What happened", "web/latest_events.html"),
        Section("Facts", "console/authz/facts.html", is_aside=True),
    )

    def read(self, key: str, actor: Actor, now: datetime) -> Record:
        absent = NotFound(f"There is no such {self.singular}.", code=f"{self.ledger.word}_not_found")
        match split_key(key):
            case (scope, one, two, three):
                names = one, two, three
            case _:
                raise absent
        try:
            record: Record = queries.get_record(self.ledger, read_scope(scope), names, caller=caller_of(actor), now=now)
        except InvalidRequest as error:
            raise absent from error
        return record

    def title(self, record: Record) -> str:
        return title_of(record)

    def rows(self, items: Sequence[Record], ask: Ask) -> list[Row]:
        return [Row(key_of(record), record) for record in items]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        is_ending, is_in_scope = pattern.name == "ending", pattern.name == "scope" and ask.parameter
        return {
            "about": self.about,
            "grant_url": f"admin:console_{self.name}_grant" if may_write(ask.actor).allowed else "",
            "scope": "" if is_ending else ask.parameter,
            "note": "Each page begins with what ends soonest on it; a later page may hold what ends sooner." if is_ending else "",
            "counts_url": self._counts_url(ask) if is_in_scope else "",
            "is_wide": bool(ask.more.get("below")),
        }

    def _counts_url(self, ask: Ask) -> str:
        return counts_url(read_scope(ask.parameter, field="q"), of=self.ledger.word, is_wide=bool(ask.more["below"]))

    def details(self, record: Record, ask: Ask) -> dict[str, Any]:
        return {
            "holders": [(name, from_epoch(int(at)) if at else None) for name, at in sorted(record.held_until.items())],
            "names": list(zip(self.ledger.fields, record.names, strict=True)),
            "granted_by": record.granted_by if isinstance(record, Approval) else record.created_by,
            **latest_of(record),
        }


class Approvals(_Records):
    name = "approvals"
    singular = "scoped approval"
    plural = "Scoped approvals"
    icon = "stamp"
    about = "Which service, bot or person may do what on which resource, within one scope and until when."
    ledger = APPROVALS
    columns = _columns("Identity", "May")
    file_columns = exported("scope", "identity", "resource", "action", "granted_by", "granted_at", *_LASTING)
    patterns = _patterns(
        APPROVALS,
        "Identity",
        (Parameter("Resource", "docs/plan", name="resource"), Parameter("Action", "GET", name="action")),
        who="Who may",
    )
    deeds = _deeds(APPROVALS)


class Relationships(_Records):
    name = "relationships"
    singular = "relationship"
    plural = "Relationships"
    icon = "waypoints"
    about = "Who stands in which relation to what, within one scope and until when. Trust and membership carry over chains."
    ledger = RELATIONSHIPS
    columns = _columns("Subject", "Is")
    file_columns = exported("scope", "subject", "relation", "object", "relation_type", "created_by", "created_at", *_LASTING)
    patterns = _patterns(RELATIONSHIPS, "Subject", (Parameter("Object", "document-123", name="object"),), who="Who stands to")
    deeds = _deeds(RELATIONSHIPS)


RECORDS: dict[str, _Records] = {one.name: one for one in (Approvals(), Relationships())}
