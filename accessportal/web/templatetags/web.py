"""Tags for times, states and names, in every template without loading them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accessportal.access_requests import queries
from accessportal.access_requests.kind import Kind, kind_named
from accessportal.access_requests.states import AccessRequest, Approver, Status
from accessportal.audit.states import AuditEvent
from accessportal.identity import drafts
from accessportal.kernel.actors import part_of_the_portal
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import format_duration
from accessportal.kernel.ids import is_request_id
from accessportal.leases.states import Lease
from accessportal.rules.tickets import example_of, head_of
from accessportal.web import tally
from accessportal.web.events import Line, line_of
from accessportal.web.facts import facts_of
from accessportal.web.presenting import Phase, holder, phase_of, seconds_after_end, words_for_lateness, words_for_length, words_for_time

register = template.Library()
register.filter("is_request", is_request_id)
register.filter("holder", holder)
register.filter("decider", part_of_the_portal)
register.filter("facts", facts_of)
register.filter("ticket_head", head_of)

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOW_SECONDS = 600
_NAMED_PEOPLE = 4
_ROLE_HELP = {
    "reader": "is in the group and sees who else is",
    "contributor": "like reader; other programs may let contributors do more",
    "admin": "also manages the group and every group below: members, roles, new groups; approves who joins",
}
register.filter("role_help", lambda role: _ROLE_HELP.get(role, ""))


@register.simple_tag
def moment(at: datetime | None, style: str = "short") -> SafeString | str:
    """Write a ``<time>``: UTC from the server, the viewer's zone once ``times.js`` has run. ``style`` is ``short`` (day and minute),
    ``exact`` (with seconds) or ``ago`` (``12 min ago``)."""
    if at is None:
        return "—"
    utc = at.astimezone(UTC)
    title = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" data-moment="{}" title="{}">{}</time>', utc.isoformat(), style, title, _fallback(utc, style))


def _fallback(utc: datetime, style: str) -> str:
    if style == "ago":
        return f"{words_for_time((SystemClock().now() - utc).total_seconds())} ago"
    return f"{utc.day} {utc:%b %H:%M:%S} UTC" if style == "exact" else f"{utc.day} {utc:%b %H:%M} UTC"


@register.simple_tag(takes_context=True)
def state(context: template.Context, request: AccessRequest) -> SafeString:
    """The pill: a word, a shape and a colour."""
    return pill(phase_of(request, _now(context)))


def pill(phase: Phase) -> SafeString:
    return format_html('<span class="state {}" title="{}">{}</span>', phase.tone, phase.sentence, phase.word)


@register.simple_tag(takes_context=True)
def left(context: template.Context, request: AccessRequest) -> SafeString:
    """How long the access still lasts, ticking."""
    seconds = request.time_left(_now(context)).total_seconds()
    return format_html('<b data-left="{}">{}</b>', request.expires_at.astimezone(UTC).isoformat(), words_for_time(seconds))


@register.simple_tag(takes_context=True)
def fuse(context: template.Context, request: AccessRequest) -> SafeString:
    """The same as a bar that burns down. ``<progress>``, because a width would need an inline style."""
    if request.status is not Status.ACTIVE:
        return SafeString("")
    seconds = int(request.time_left(_now(context)).total_seconds())
    total = max(request.duration_seconds, seconds, 1)
    low = SafeString(" data-low") if seconds < min(_LOW_SECONDS, total // 4) else ""
    return format_html(
        '<progress class="fuse" max="{}" value="{}" data-fuse="{}" data-low-below="{}" aria-label="Time left"{}></progress>',
        total,
        seconds,
        request.expires_at.astimezone(UTC).isoformat(),
        min(_LOW_SECONDS, total // 4),
        low,
    )


@register.simple_tag(takes_context=True)
def typed_by(context: template.Context) -> SafeString:
    """The field that has a form kept for its person when the session is over (``identity.drafts``)."""
    actor, request = context.get("actor"), context.get("request")
    if actor is None or request is None:
        return SafeString("")
    kept = SafeString(" data-kept") if drafts.is_shown(request) else ""
    return format_html('<input type="hidden" name="{}" value="{}"{}>', drafts.TYPED_BY, drafts.sign(actor.name), kept)


@register.simple_tag(takes_context=True)
def approvals(context: template.Context) -> dict[str, Any]:
    """What the bar says of the requests that wait for the person; empty for nobody."""
    actor, request = context.get("actor"), context.get("request")
    return {} if actor is None or request is None else tally.last_told(request, actor)


@register.filter
def duration(seconds: int | None) -> str:
    """``8 h``, ``2 h 30 min``."""
    return format_duration(seconds) if seconds is not None else "—"


@register.simple_tag(takes_context=True)
def length(context: template.Context, request: AccessRequest) -> SafeString | str:
    """How long it was asked for; by its end, as far as that is known, where it came of one and is no length that people type."""
    if request.duration_seconds % 60 and phase_of(request, _now(context)).code == "active":
        return format_html("until {}", moment(request.expires_at))
    return words_for_length(request.duration_seconds)


@register.filter
def after_end(moment: datetime, request: AccessRequest) -> str:
    """How long after the end of the request something was: ``4.2 s after the end``."""
    return f"{words_for_lateness(seconds_after_end(moment, request))} after the end"


@register.filter
def account_digits(account_id: str) -> str:
    """An account id in groups of four, easier to compare."""
    return " ".join(account_id[start : start + 4] for start in range(0, len(account_id), 4))


@register.filter
def short_id(identifier: str) -> str:
    """The two ends of a long id; the whole one belongs beside it in a ``title``."""
    return identifier if len(identifier) <= 13 else f"{identifier[:8]}…{identifier[-4:]}"


@register.filter
def short_ids(text: str) -> str:
    """``text`` with each UUID in it as :func:`short_id` has it; the whole text belongs beside it in a ``title``."""
    return _UUID.sub(lambda found: short_id(found[0]), text)


@register.filter
def marked(name: str, text: str) -> SafeString:
    """``name`` with the first place where it contains ``text`` marked."""
    at = name.casefold().find(text.casefold()) if text else -1
    if at < 0:
        return format_html("{}", name)
    return format_html("{}<mark>{}</mark>{}", name[:at], name[at : at + len(text)], name[at + len(text) :])


@register.filter
def people(approvers: tuple[Approver, ...]) -> str:
    """``Bob Ito, Mei Chen and 5 more``."""
    names = [approver.name or approver.email for approver in approvers]
    if len(names) <= _NAMED_PEOPLE:
        return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{', '.join(names[: _NAMED_PEOPLE - 1])} and {len(names) - _NAMED_PEOPLE + 1} more"


@register.filter
def told(events: Iterable[AuditEvent]) -> list[Line]:
    return [line_of(event) for event in events]


@register.filter
def spent(lease: Lease) -> str:
    """``12.40 USD``."""
    return f"{lease.spent / 100:,.2f} {lease.spent_unit}"


@register.filter
def ticket_example(pattern: str) -> str:
    """``CHG-4711``; the pattern where no example can be made of it."""
    return example_of(pattern) or pattern


@register.filter
def ordinal(number: int) -> str:
    """``1st``, ``22nd``, ``13th``."""
    end = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{end}"


def _now(context: Any) -> datetime:
    now = context.get("now")
    return now if isinstance(now, datetime) else SystemClock().now()


@register.filter
def title_of(request: AccessRequest) -> str:
    """What is asked for, in one line."""
    return queries.title_of(request=request)


@register.filter
def kind_of(request: AccessRequest) -> Kind:
    """The kind of access that is asked for, with its words."""
    return kind_named(request.kind)


@register.filter
def pages_of(kind: Kind, name: str) -> list[str]:
    """Where the part ``name`` of a page is for this kind: in a template of its own, or in that of all kinds."""
    return [f"portal/kinds/{kind.name}/{name}.html", f"portal/kinds/{name}.html"]
