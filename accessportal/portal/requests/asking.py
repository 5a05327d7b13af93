"""What the forms of all kinds share: what a query may fill in, and what would happen if the form were sent now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.access_requests import queries
from accessportal.access_requests.kind import KINDS, Kind, kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Preview
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import zone_named
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.texts import LONGEST_REASON
from accessportal.rules.states import Effect
from accessportal.web.forms import MAX_DURATION, MAX_NAME, MAX_TICKET
from accessportal.web.presenting import Tone, typed_duration

LATELY = 25
"""So many requests tell what somebody asks for lately."""
_MOST_AGAIN = 3
_COMMON = {"duration": MAX_DURATION, "ticket_id": MAX_TICKET, "reason": LONGEST_REASON, "extends": MAX_NAME, "zone": MAX_NAME}


@dataclass(frozen=True, slots=True)
class Again:
    """A form filled in like an earlier request; ``subject`` is the group that it was for, if one."""

    title: str
    subject: str
    duration_seconds: int
    url: str


def plain(kind: Kind, given: Mapping[str, Any]) -> dict[str, str]:
    """One value a name, cut to what the form takes: a preview never judges more than that."""
    limits = _COMMON | dict.fromkeys(kind.fields.names, MAX_NAME)
    return {name: str(given[name])[:limit] for name, limit in limits.items() if name in given}


def target_of(held: AccessRequest) -> dict[str, str]:
    """A request's target and subject, as the form's fields would say it."""
    subject = {"subject": held.subject_id} if held.subject_id.startswith("/") else {}
    return queries.asked(request=held) | subject


def _is_typed(held: AccessRequest) -> bool:
    """Whether its length is one that people type, and did not come of a time of day (``until 18:00``) or of the end of what it extends."""
    return held.duration_seconds % 60 == 0


def _length_again(held: AccessRequest) -> int:
    """How long it was asked for; where nobody would type that, the longest of the kind's lengths that is no longer."""
    if _is_typed(held):
        return held.duration_seconds
    lengths = sorted(map(parse_duration, kind_named(held.kind).fields.lengths))
    return max((one for one in lengths if one <= held.duration_seconds), default=lengths[0])


def again_url(held: AccessRequest) -> str:
    """The form of its kind, filled in like this request. The ticket is left out: it belonged to that time."""
    kind = kind_named(held.kind)
    fresh = {name: value for name, value in target_of(held).items() if name not in kind.fields.continued}
    given = {**fresh, "duration": typed_duration(_length_again(held)), "reason": held.reason}
    return f"{reverse('new_request', args=[kind.name])}?{urlencode(given)}"


def offered_kinds(book: ApproverBook) -> dict[str, Kind]:
    """The kinds that this portal has, by name."""
    return {name: kind for name, kind in KINDS.items() if kind.fields.is_offered(book.rules.values())}


def again(lately: Iterable[AccessRequest]) -> list[Again]:
    """Forms filled in like the newest of these requests, each once: like the one that has a length which people type, if any."""
    found: dict[tuple[str, str], AccessRequest] = {}
    for one in lately:
        key = queries.title_of(request=one), one.subject_id if one.subject_id.startswith("/") else ""
        if key not in found or (_is_typed(one) and not _is_typed(found[key])):
            found[key] = one
    return [Again(*key, _length_again(one), again_url(one)) for key, one in islice(found.items(), _MOST_AGAIN)]


def helpers(kind: Kind, actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """For somebody whom no rule of this kind serves: the groups that would change that, and whom to ask."""
    subject = queries.seeker_of(kind=kind.name, given={}, actor=actor, book=book).subject
    rules = [rule for rule in book.rules.values() if rule.kind == kind.name and rule.effect is Effect.ALLOW]
    return {"ways_in": queries.ways_in(rules=rules, subject=subject, book=book), "operators": queries.operators(book=book)}


def foresee(kind: Kind, given: Mapping[str, Any], actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """Return the preview, or why there is none yet: ``hint`` (nothing chosen) or ``trouble`` (something can't be read). Without a duration
    it is that of the rule's usual one."""
    text = {name: value.replace("\0", "").strip() for name, value in plain(kind, given).items()}
    now = book.now
    if not all(text.get(name) for name in kind.fields.needed):
        return {"hint": kind.fields.hint, "chips": _chips(kind, None)}
    seconds, trouble = _seconds(text.get("duration", ""), now.astimezone(zone_named(text.get("zone", ""))))
    impossible = {"tone": Tone.STOP, "headline": "Not possible like this"}
    try:
        foreseen = _ask_preview(kind, text, seconds, actor, book)
    except Conflict as error:  # several accounts carry the name
        return impossible | {"trouble": error.message, "chips": _chips(kind, None)}
    if not trouble and seconds is None and not text.get("extends") and foreseen.default_duration_seconds:
        seconds = foreseen.default_duration_seconds
        foreseen = replace(foreseen, duration_seconds=seconds)
    verdict = impossible if trouble else _verdict(foreseen)
    ends_at = now + timedelta(seconds=seconds) if seconds is not None and seconds <= foreseen.max_duration_seconds else None
    typed: dict[str, Any] = {"typed": text, "chips": _chips(kind, foreseen), "misses": _folded(foreseen.misses)}
    if foreseen.default_duration_seconds:
        typed["usual"] = typed_duration(foreseen.default_duration_seconds)
    return verdict | typed | {"preview": foreseen, "trouble": trouble, "ends_at": ends_at, "now": now}


def _folded(misses: Iterable[tuple[str, tuple[str, ...]]]) -> list[tuple[list[str], tuple[str, ...]]]:
    """The rules that say no for the same reasons together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, reasons in misses:
        found.setdefault(reasons, []).append(name)
    return [(names, reasons) for reasons, names in found.items()]


@dataclass(frozen=True, slots=True)
class Chip:
    """A length to press. ``is_refused``: typing it is refused, too."""

    typed: str
    seconds: int
    is_refused: bool


def _chips(kind: Kind, foreseen: Preview | None) -> list[Chip]:
    """Those of the kind, then the rule's usual length if it is another one: what is there already stays where it is."""
    usual = [foreseen.default_duration_seconds] if foreseen is not None and foreseen.default_duration_seconds else []
    lengths = dict.fromkeys((*map(parse_duration, kind.fields.lengths), *usual))
    longest = foreseen.longest_by_any_rule_seconds if foreseen is not None else 0
    return [Chip(typed_duration(seconds), seconds, is_refused=bool(longest) and seconds > longest) for seconds in lengths]


def _verdict(preview: Preview) -> dict[str, Any]:
    if preview.outcome == "at_once":
        return {"tone": Tone.LIVE, "headline": "Approved at once"}
    if preview.outcome == "needs_approval":
        return {"tone": Tone.WAIT, "headline": "Needs one approval" if preview.quorum == 1 else f"Needs {preview.quorum} approvals"}
    return {"tone": Tone.STOP, "headline": "Not possible like this"}


def _ask_preview(kind: Kind, text: Mapping[str, str], seconds: int | None, actor: Actor, book: ApproverBook) -> Preview:
    return queries.preview(
        kind=kind.name,
        subject_id=text.get("subject") or None,
        target={name: text.get(name, "") for name in kind.fields.names if name != "subject"},
        duration_seconds=seconds,
        ticket_id=text.get("ticket_id") or None,
        extends=queries.get(request_id=text["extends"], actor=actor, now=book.now, book=book) if text.get("extends") else None,
        actor=actor,
        book=book,
    )


def _seconds(text: str, now: datetime) -> tuple[int | None, str]:
    try:
        return (parse_duration(text, now=now), "") if text else (None, "")
    except PortalError as error:
        return None, error.message
