"""Who had what, as pages and files tell it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.catalog.queries import accounts_by_id
from accessportal.history.states import Answer, Held, ThingKind
from accessportal.kernel.pages import Page
from accessportal.web.exporting import exported
from accessportal.web.moments import to_text

USUAL_TIME = timedelta(days=90)
"""What somebody had is shown of so long, unless another time is asked for."""
FILE_COLUMNS = exported(
    "who",
    ("thing_kind", "interval.thing.kind"),
    ("thing", "interval.thing.name"),
    ("scope", "interval.thing.scope"),
    ("right", "interval.right"),
    ("through", lambda held: [one.thing.name for one in held.path]),
    "from_at",
    "over_at",
    ("until", "interval.until"),
    ("request_id", "interval.request_id"),
    ("rule", "interval.rule"),
    ("reason", "interval.reason"),
    ("asked_by", "interval.asked_by"),
    ("decided_by", "interval.decided_by"),
    ("proved_at", "interval.proved_at"),
    ("begun_how", "interval.begun_how"),
    ("ended_at", "interval.ended_at"),
    ("ended_by", "interval.ended_by"),
    ("gone_at", "interval.gone_at"),
    ("gone_how", "interval.gone_how"),
    ("entity", "interval.entity"),
    ("sequence", "interval.sequence"),
    ("gone_sequence", "interval.gone_sequence"),
)
_BY_ACCOUNT = (ThingKind.ACCOUNT, ThingKind.LEASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage(Page[Held]):
    """An answer as a list has it. ``at``: of what moment, or (``until``) from when to when; ``asked_url``: the list of what was asked for
    about the thing lately."""

    known_until: datetime
    at: datetime | None = None
    until: datetime | None = None
    unfollowed: tuple[str, ...] = ()
    asked_url: str = ""

    @property
    def remarks(self) -> tuple[str, ...]:
        known = f"Known up to {to_text(self.known_until)}: of what happened since, some may be missing."
        return (known, *(f"Incomplete: events of {name} could not be read." for name in self.unfollowed))


def page_of(answer: Answer, *, at: datetime | None = None, until: datetime | None = None) -> AnswerPage:
    page = answer.page
    return AnswerPage(
        page.items,
        page.next_cursor,
        page.unreadable,
        known_until=answer.known_until,
        at=at,
        until=until,
        unfollowed=answer.unfollowed,
    )


def names_of(held: Iterable[Held]) -> dict[str, str]:
    """What the accounts are called now, by their ids."""
    ids = {one.interval.thing.name for one in held if one.interval.thing.kind in _BY_ACCOUNT}
    return {account_id: account.name for account_id, account in accounts_by_id(ids).items()}
