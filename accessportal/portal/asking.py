"""What the forms of all kinds share: what a query may fill in, and what would happen if the form were sent now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Preview
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.texts import LONGEST_REASON
from accessportal.web.forms import MAX_DURATION, MAX_NAME, MAX_TICKET
from accessportal.web.presenting import Tone, typed_duration

Chips = tuple[tuple[str, str, int], ...]
_COMMON = {"duration": MAX_DURATION, "ticket_id": MAX_TICKET, "reason": LONGEST_REASON, "extends": MAX_NAME}


@dataclass(frozen=True, slots=True)
class FormOf:
    """The form of one kind. ``target`` are its fields that name what is asked for; ``hint`` stands while one is empty.

    ``has_subject``: whether it has a field for whom the access is, beside the person who asks. ``is_open``: the target may be
    left empty. ``continued``: the part of the target that only an extension has.
    """

    kind: str
    target: tuple[str, ...]
    has_subject: bool
    hint: str
    chips: Chips
    usual: str
    is_open: bool = False
    continued: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return reverse(f"new_{self.kind}")

    @property
    def preview_url(self) -> str:
        return reverse(f"preview_{self.kind}")

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that say who is to get what."""
        return (*self.target, *self.continued, *(("subject",) if self.has_subject else ()))

    def plain(self, given: Mapping[str, Any]) -> dict[str, str]:
        """One value a name, cut to what the form takes: a preview never judges more than that."""
        limits = _COMMON | dict.fromkeys(self.names, MAX_NAME)
        return {name: str(given[name])[:limit] for name, limit in limits.items() if name in given}

    def target_of(self, held: AccessRequest) -> dict[str, str]:
        """A request's target and subject, as the form's fields would say it."""
        subject = {"subject": held.subject_id} if held.subject_id.startswith("/") else {}
        return queries.asked(request=held) | subject

    def again_url(self, held: AccessRequest) -> str:
        """The form, filled in like this request. The ticket is left out: it belonged to that time."""
        fresh = {name: value for name, value in self.target_of(held).items() if name not in self.continued}
        given = {**fresh, "duration": typed_duration(held.duration_seconds), "reason": held.reason}
        return f"{self.url}?{urlencode(given)}"


FORMS = {
    form.kind: form
    for form in (
        FormOf(
            kind="aws_account",
            target=("account", "permission_set"),
            has_subject=True,
            hint="Choose an account and a permission set to see who decides, and how long it may last.",
            chips=(("30m", "30 min", 1800), ("1h", "1 h", 3600), ("4h", "4 h", 14_400), ("8h", "8 h", 28_800)),
            usual="1h",
        ),
        FormOf(
            kind="group",
            target=("group", "role"),
            has_subject=False,
            hint="Choose a group and a role to see who decides, and how long it may last.",
            chips=(("1h", "1 h", 3600), ("8h", "8 h", 28_800), ("1d", "1 d", 86_400), ("5d", "5 d", 432_000)),
            usual="8h",
        ),
        FormOf(
            kind="sandbox",
            target=("name_prefix",),
            has_subject=False,
            hint="",
            chips=(("1h", "1 h", 3600), ("2h", "2 h", 7200), ("4h", "4 h", 14_400), ("8h", "8 h", 28_800)),
            usual="2h",
            is_open=True,
            continued=("continues",),
        ),
    )
}


def foresee(form: FormOf, given: Mapping[str, Any], actor: Actor) -> dict[str, Any]:
    """The preview, or why there is none yet: ``hint`` (nothing chosen) or ``trouble`` (something can't be read).

    Without a duration it is that of the rule's usual one, which ``usual`` says as it would be typed.
    """
    text = {name: value.replace("\0", "").strip() for name, value in form.plain(given).items()}
    now = SystemClock().now()
    if not form.is_open and not all(text.get(name) for name in form.target):
        return {"hint": form.hint}
    seconds, trouble = _seconds(text.get("duration", ""))
    impossible = {"tone": Tone.STOP, "headline": "Not possible like this"}
    try:
        foreseen = _ask_preview(form, text, seconds, actor, now)
    except Conflict as error:  # several accounts carry the name
        return impossible | {"trouble": error.message}
    if not trouble and seconds is None and not text.get("extends") and foreseen.default_duration_seconds:
        seconds = foreseen.default_duration_seconds
        foreseen = replace(foreseen, duration_seconds=seconds)
    verdict = impossible if trouble else _verdict(foreseen)
    ends_at = now + timedelta(seconds=seconds) if seconds is not None and seconds <= foreseen.max_duration_seconds else None
    typed = {"typed_account": text.get("account", "")}
    if foreseen.default_duration_seconds:
        typed["usual"] = typed_duration(foreseen.default_duration_seconds)
    return verdict | typed | {"preview": foreseen, "trouble": trouble, "ends_at": ends_at, "now": now}


def _verdict(preview: Preview) -> dict[str, Any]:
    if preview.outcome == "at_once":
        return {"tone": Tone.LIVE, "headline": "Approved at once"}
    if preview.outcome == "needs_approval":
        return {"tone": Tone.WAIT, "headline": "Needs one approval" if preview.quorum == 1 else f"Needs {preview.quorum} approvals"}
    return {"tone": Tone.STOP, "headline": "Not possible like this"}


def _ask_preview(form: FormOf, text: Mapping[str, str], seconds: int | None, actor: Actor, now: datetime) -> Preview:
    return queries.preview(
        kind=form.kind,
        subject_id=text.get("subject") or None,
        target={name: text.get(name, "") for name in (*form.target, *form.continued)},
        duration_seconds=seconds,
        ticket_id=text.get("ticket_id") or None,
        extends=queries.get(request_id=text["extends"], actor=actor, now=now) if text.get("extends") else None,
        actor=actor,
        now=now,
    )


def _seconds(text: str) -> tuple[int | None, str]:
    try:
        return (parse_duration(text), "") if text else (None, "")
    except PortalError as error:
        return None, error.message
