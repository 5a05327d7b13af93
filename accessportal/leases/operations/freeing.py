"""The one way in which an account becomes free: it goes to the first in the line whom it fits, or to whoever comes by."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pages import UnreadableItem
from accessportal.kernel.ports import after_commit
from accessportal.kernel.runs import Run
from accessportal.leases import queries
from accessportal.leases.operations import lines
from accessportal.leases.operations.lines import Asked
from accessportal.leases.operations.shared import changed_account, until_written
from accessportal.leases.operations.taking import free_in, handed_to, lend, set_aside, why_not
from accessportal.leases.states import Account, AccountState, ListFull, NoSuchAccount, ServeReport, TooManySetAside
from accessportal.leases.store import rows
from accessportal.store.restores import held_restore
from accessportal.store.transactions import ConditionFailed, Overtaken
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS, Turn


def make_available(account: Account, *, certificate: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    """Let an account, as it was read, be free after a cleaning that ``certificate`` proves; one that is retiring leaves.

    :raises Overtaken: when it, or the line, changed meanwhile: read it again and decide again.
    :raises Conflict: for one that was not to be cleaned: it may be somebody's.
    """
    if not account.state.is_cleaned_next:
        raise Conflict(f"This account is {account.state}, and not to be cleaned.", code="not_to_be_cleaned", present=account)
    if account.is_retiring:
        changed_account(account, None, "retired", actor=actor, now=now, certificate=dict(certificate))
        return
    cleaned = replace(account, certificate=certificate, cleaned_at=whole_second(now))
    seen, turn = lines.next_turn(account, now=now)
    if turn is not None and held_restore() is None:
        with suppress(ListFull, TooManySetAside):
            _hand_over(account, cleaned, turn, actor=actor, now=now)
            return
    free = cleaned.at_rest(AccountState.AVAILABLE, now=now)
    unmoved = [] if turn is not None else [line.has_not_moved(seen)]
    changed_account(account, free, "cleaned", unmoved, actor=actor, now=now, certificate=dict(certificate))


def serve_line(*, actor: Actor, clock: Clock) -> ServeReport:
    """Hand what is free to those who wait, in their order. It heals what came between a look at the pool and a place in the line."""
    run = _Run(actor=actor, clock=clock)
    if not line.get_line(ACCOUNTS).waiting or held_restore() is not None:
        return ServeReport()
    asks = dict[str, Asked]()
    for place in line.places(ACCOUNTS, past=run.pass_over):
        try:
            asks[place.claim] = lines.asked_at(place)
        except UnreadableItem as error:
            run.pass_over(error.item)
    for pool in sorted({asked.pool for asked in asks.values()}):
        run.serve(pool, {claim: asked for claim, asked in asks.items() if asked.pool == pool})
    return ServeReport(served=tuple(run.served), failures=run.failed)


@dataclass(kw_only=True)
class _Run(Run):
    # Somebody was faster, or it left the pool meanwhile.
    passes = (Conflict, Overtaken, NoSuchAccount)
    actor: Actor
    clock: Clock
    served: list[str] = field(default_factory=list)

    def serve(self, pool: str, asks: dict[str, Asked]) -> None:
        """Offer what is free to whoever is first of those whom it fits, until nobody is left who could have more."""
        for account in free_in(pool):
            if any(asked.is_met_by(account) for asked in asks.values()):
                self.unit(account.account_id, partial(self._offer, account, asks))
            if not asks:
                return

    def _offer(self, account: Account, asks: dict[str, Asked]) -> None:
        claim = until_written(partial(self._offered, account.account_id))
        if claim:
            self.served.append(claim)
            asks.pop(claim, None)
        elif claim is not None:
            # Nobody whom it fits may have one more.
            for name in [name for name, asked in asks.items() if asked.is_met_by(account)]:
                del asks[name]

    def _offered(self, account_id: str) -> str | None:
        """The claim that got it; empty when it is nobody's turn, ``None`` when the account may not go out."""
        account, now = queries.get_account(account_id=account_id), self.clock.now()
        if account.state is not AccountState.AVAILABLE:
            return None
        _, turn = lines.next_turn(account, now=now)
        return "" if turn is None else _hand_over(account, account, turn, actor=self.actor, now=now)


def _hand_over(before: Account, account: Account, turn: Turn, *, actor: Actor, now: datetime) -> str | None:
    """The claim whose turn it was, when it has the account now; ``None`` when the account may not go out.

    :raises Overtaken: when the account, the line or the place changed meanwhile.
    :raises TooManySetAside: when it may not go out, and many of its pool are out of use; it stays as it is.
    """
    asked = lines.asked_at(turn.place)
    seen = rows.look_up(asked.lease_id, user=asked.user)
    if seen.lease is not None or rows.last_event(f"lease#{asked.lease_id}") is not None:
        # Two workers had its request: one joined the line after the other was served.
        waiting.leave(line=ACCOUNTS, claim=asked.claim, actor=actor, now=now)
        raise Overtaken
    if flaw := why_not(account):
        set_aside(before, account, flaw, actor=actor, now=now)
        return None
    served = waiting.served(turn, thing=account.account_id, actor=actor, now=now)
    after = handed_to(asked, account, fence=account.fence + 1, now=now)
    try:
        lend(before, after, asked, seen.person, "leased", further=served, actor=actor, now=now)
    except ConditionFailed as error:
        raise Overtaken from error
    after_commit("carry_out_served", request_id=asked.claim)
    return asked.claim
