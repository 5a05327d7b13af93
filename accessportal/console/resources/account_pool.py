"""The pool of AWS accounts: each with its whole history of holders and cleanings, and what may be done by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from accessportal.access_requests.queries import ApproverBook
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section, filled
from accessportal.console.views import list_url
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page
from accessportal.leases import operations, queries
from accessportal.leases.states import SHARDS, Account, AccountState, Count
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import ACCOUNTS
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import ReasonForm
from accessportal.web.pool_forecast import Forecast, Supply, forecast, pace

# Some hundred hand-overs; older ones are on the page of its history.
_HOLDERS_FROM = 500
_PACE_OF = timedelta(days=7)
MOVED_ON = "account_moved_on"
POOL_NAME = Parameter("Pool", "Pool", required=False)
# Each in the colour that it has in the drawing of the pool, too (static/portal/portal.css).
WORDS = {
    AccountState.LEASED: ("Lent", "held"),
    AccountState.AVAILABLE: ("Free", "live"),
    AccountState.DIRTY: ("To be cleaned", "wait"),
    AccountState.INITIAL: ("New", "done"),
    AccountState.FAILED: ("Out of use", "stop"),
}
_EMPTY = {
    AccountState.LEASED: ("No account is lent", "Whoever borrows one stands here."),
    AccountState.AVAILABLE: ("No account is free", "Those that are cleaned come next; what becomes free goes to the first in line."),
    AccountState.DIRTY: ("Nothing is to be cleaned", "What is given back is cleaned before anybody else gets it."),
    AccountState.INITIAL: ("No account is new", "What comes into the pool is cleaned before anybody gets it."),
    AccountState.FAILED: (
        "No account is out of use",
        "What could not be cleaned, or is kept out of use, stands here with the reason.",
    ),
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One hand-over (``user``), or one cleaning (``certificate``), of an account. ``ended_at`` ``None``: it has not."""

    began_at: datetime
    fence: int
    user: str = ""
    lease: str = ""
    ended_at: datetime | None = None
    how: str = ""
    by: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)


_ENDS = {"account.given_back": "given back", "account.quarantined": "given back, and put out of use", "account.retired": "left the pool"}


def chapters_of(events: Iterable[AuditEvent]) -> list[Chapter]:
    """Every holder and every cleaning that the events tell of, newest first; ``events`` are oldest first, and may begin in the middle."""
    found: list[Chapter] = []
    for event in events:
        data, fence = event.data, int(event.data.get("fence") or 0)
        if data.get("certificate"):
            found.append(Chapter(event.at, fence, ended_at=event.at, by=event.actor, certificate=dict(data["certificate"])))
        if event.action in {"account.leased", "account.taken_back"}:
            again = "taken back by its last holder" if event.action == "account.taken_back" else ""
            found.append(Chapter(event.at, fence, user=str(data.get("user", "")), lease=str(data.get("lease", "")), how=again))
        elif event.action in _ENDS and data.get("lease"):
            _end(found, event)
    return found[::-1]


def _end(found: list[Chapter], event: AuditEvent) -> None:
    """The last hand-over ends; one that began before the first event is told by its end alone."""
    last = found.pop() if found and found[-1].user and found[-1].ended_at is None else None
    began = last or Chapter(event.at, int(event.data.get("fence") or 0), user=str(event.data.get("user", "")), lease=event.data["lease"])
    how = ", ".join(filter(None, (began.how, _ENDS[event.action])))
    found.append(replace(began, ended_at=event.at, how=how, by=event.actor))


def _fetch(state: AccountState | None, ask: Ask) -> Page[Account]:
    pools = (ask.parameter,) if ask.parameter else queries.list_pools()
    return filled(partial(_page, pools, state), ask, most_reads=2 * SHARDS * len(pools)) if pools else Page(())


def _page(pools: Sequence[str], state: AccountState | None, *, cursor: str | None, limit: int) -> Page[Account]:
    """A page of the pool that the cursor names; the last page of one goes on with the next."""
    pool, _, inner = cursor.partition(":") if cursor else (pools[0], "", "")
    if pool not in pools:
        raise InvalidRequest("This is not a page of this list. Begin with the first one.", code="cursor_forged", field="cursor")
    page = queries.list_accounts(pool=pool, state=state, cursor=inner or None, limit=limit)
    further = f"{pool}:{page.next_cursor}" if page.next_cursor else next(iter(pools[pools.index(pool) + 1 :]), None)
    return Page(page.items, further, page.unreadable)


def _pattern(state: AccountState) -> Pattern:
    title, hint = _EMPTY[state]
    return Pattern(
        name=state.value,
        label=WORDS[state][0],
        fetch=partial(_fetch, state),
        parameter=POOL_NAME,
        bulk=("restore",) if state is AccountState.FAILED else (),
        empty_title=title,
        empty_hint=hint,
    )


def _foretell(count: Count | None, in_line: int, *, now: datetime) -> Forecast | None:
    """When the accounts of all pools together run dry, by the last ``count`` and how many wait; ``None``: not known."""
    cleaning_seconds = waiting.cleaning_of_late(ACCOUNTS)
    if count is None or cleaning_seconds is None:
        return None
    past = queries.counts_between(since=now - _PACE_OF, until=now)
    comes_back = tuple(max(end, count.counted_at) + timedelta(seconds=cleaning_seconds) for end in count.ends)
    supply = Supply(count.counts.get(AccountState.AVAILABLE, 0), in_line, comes_back)
    return forecast(supply, a_day=pace([(one.counted_at, one.handed_out) for one in past]), now=now)


def is_operator(actor: Actor, _book: ApproverBook) -> bool:
    return queries.may_operate(actor=actor).allowed


def fitting(words: str, actor: Actor, *, is_fit: bool) -> Decision:
    """Whether an operator may do it now; ``words`` say why the record is not in a state for it."""
    decision = queries.may_operate(actor=actor)
    return refuse(words, code=MOVED_ON) if decision.allowed and not is_fit else decision


def _may_quarantine(account: Account, actor: Actor, _now: datetime) -> Decision:
    return fitting(f"{_name(account)} is out of use already, or will be: {account.reason}", actor, is_fit=not account.reason)


def _may_restore(account: Account, actor: Actor, _now: datetime) -> Decision:
    fits = account.state is AccountState.FAILED or bool(account.reason) or account.is_retiring
    return fitting(f"{_name(account)} is {WORDS[account.state][0].lower()}: there is nothing to restore.", actor, is_fit=fits)


def _may_retire(account: Account, actor: Actor, _now: datetime) -> Decision:
    return fitting(f"{_name(account)} leaves the pool already, when it is given back.", actor, is_fit=not account.is_retiring)


def _name(account: Account) -> str:
    return account.name or account.account_id


def _quarantine(account: Account, data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.quarantine(account_id=account.account_id, reason=data["reason"], actor=actor, now=now)
    when = " when it is given back" if after.state is AccountState.LEASED else ""
    return Told(f"{_name(account)} is out of use{when}: nobody gets it until it is restored.")


def _restore(account: Account, _data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.restore(account_id=account.account_id, actor=actor, now=now)
    return Told(
        f"{_name(account)} {'stays in the pool' if after.state is AccountState.LEASED else 'is to be cleaned, and free after that'}."
    )


def _retire(account: Account, data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.retire(account_id=account.account_id, reason=data["reason"], actor=actor, now=now)
    if after.is_retiring:
        return Told(f"{_name(account)} leaves the pool when it is given back, or its cleaning has ended.")
    return Told(f"{_name(account)} has left the pool. Its history stays.", list_url(POOL, "all"))


def _why(account: Account) -> str:
    """Which hand-over, and which trouble, a page has described."""
    return f"{account.state}: {account.fence}, {account.user}, {account.reason}, {account.is_retiring}"


def _quarantine_words(account: Account) -> str:
    if account.state is AccountState.LEASED:
        return f"{account.user} keeps it until it is given back; then nobody gets it until it is restored."
    return f"Nobody gets {_name(account)} until it is restored. A cleaning that has begun goes on, and its answer is dropped."


def _restore_words(account: Account) -> str:
    if account.state is AccountState.FAILED:
        return f"{_name(account)} is cleaned once more, and free after that. Why it is out of use: {account.reason or account.error}"
    return f"{_name(account)} stays in the pool after it is given back."


def _retire_words(account: Account) -> str:
    if account.state is AccountState.LEASED:
        return f"{account.user} keeps it until it is given back; then it leaves the pool, not cleaned."
    return f"{_name(account)} leaves the pool: it is lent and cleaned no more. Its history stays in the audit log."


QUARANTINE: Deed[Account] = Deed(
    name="quarantine",
    label="Quarantine",
    question=lambda account: f"Put {_name(account)} out of use?",
    explain=_quarantine_words,
    may=_may_quarantine,
    run=_quarantine,
    form=partial(ReasonForm, is_required=True, label="Reason (kept in the history, shown on its page)"),
    is_for=is_operator,
    stale_codes=frozenset({MOVED_ON}),
    stands_on=_why,
    is_destructive=True,
)
RESTORE: Deed[Account] = Deed(
    name="restore",
    label="Restore",
    question=lambda account: f"Restore {_name(account)}?",
    explain=_restore_words,
    may=_may_restore,
    run=_restore,
    is_for=is_operator,
    stale_codes=frozenset({MOVED_ON}),
    stands_on=_why,
    is_bulk=True,
)
RETIRE: Deed[Account] = Deed(
    name="retire",
    label="Retire",
    question=lambda account: f"Take {_name(account)} out of the pool?",
    explain=_retire_words,
    may=_may_retire,
    run=_retire,
    form=partial(ReasonForm, is_required=True, label="Reason (kept in the history)"),
    is_for=is_operator,
    stale_codes=frozenset({MOVED_ON}),
    stands_on=_why,
    is_destructive=True,
)


class AccountPool(Resource):
    name = "account-pool"
    singular = "account of the pool"
    plural = "Account pool"
    icon = "boxes"
    about = "The AWS accounts that are lent: what is free, lent, to be cleaned or out of use, who had each when, and how it was cleaned."
    notice_template = "console/leases/pool.html"
    headline_template = "console/leases/headline.html"
    columns = (
        Column("Account", "console/leases/cell_name.html", "col-who"),
        Column("Holder", "console/leases/cell_holder.html", "col-what"),
        Column("State", "console/leases/cell_state.html", "col-state"),
        Column("What is in the way", "console/leases/cell_trouble.html", "col-context"),
    )
    file_columns = exported(
        "account_id",
        "name",
        "pool",
        "size",
        "state",
        "user",
        "lease_id",
        "fence",
        "since",
        "added_at",
        "cleaned_at",
        "attempts",
        "error",
        "reason",
        "is_retiring",
    )
    patterns = (
        Pattern(
            name="all",
            label="All",
            fetch=partial(_fetch, None),
            parameter=POOL_NAME,
            empty_title="No account is in the pool",
            empty_hint="The command add_accounts puts accounts into a pool, sync_pool those of an organizational unit.",
        ),
        *map(_pattern, WORDS),
    )
    sections = (
        Section("Holders and cleanings", "console/leases/chapters.html"),
        Section("What happened", "web/latest_events.html"),
        Section("Lease", "console/leases/lease_aside.html", is_aside=True),
        Section("Cleaning", "console/leases/cleaning.html", is_aside=True),
        Section("Facts", "console/leases/facts.html", is_aside=True),
    )
    deeds = (QUARANTINE, RESTORE, RETIRE)

    def read(self, key: str, actor: Actor, now: datetime) -> Account:
        return queries.get_account(account_id=key)

    def title(self, record: Account) -> str:
        return _name(record)

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        count, in_line = queries.last_count(), waiting.get_line(ACCOUNTS).waiting
        return {
            "count": count,
            "tiles": [(words, count.counts.get(state, 0), state.value) for state, (words, _) in WORDS.items()] if count else [],
            "pools": [(pool, [counts.get(state, 0) for state in WORDS]) for pool, counts in count.pools.items()] if count else [],
            "words": [words for words, _ in WORDS.values()],
            "waiting": in_line,
            "forecast": _foretell(count, in_line, now=ask.now),
            "may_operate": queries.may_operate(actor=ask.actor).allowed,
        }

    def rows(self, items: Sequence[Account], ask: Ask) -> list[Row]:
        return [Row(one.account_id, one, WORDS[one.state]) for one in items]

    def details(self, record: Account, ask: Ask) -> dict[str, Any]:
        newest = audit.history(record.entity, limit=_HOLDERS_FROM)
        is_held = record.state is AccountState.LEASED
        return {
            "word": WORDS[record.state],
            "lease": queries.find_lease(lease_id=record.lease_id) if is_held and record.lease_id else None,
            "chapters": chapters_of(newest.items[::-1]),
            "has_older": newest.next_cursor is not None,
            **latest_of(record),
        }


POOL = AccountPool()
