"""Holding the pools against their organizational units: new accounts come in, those that are no longer there leave, with a brake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from accessportal.aws import organizations
from accessportal.aws.errors import OutsideError
from accessportal.aws.organizations import OrganizationAccount
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE, brake, check_share
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.pages import every
from accessportal.kernel.runs import Run
from accessportal.leases import effects, policy, queries
from accessportal.leases.config import current
from accessportal.leases.operations.pool import NewAccount, add_accounts, retire
from accessportal.leases.states import Account, NoSuchAccount, SyncReport
from accessportal.leases.store import pages

SYNC = system("sync_pool")
_ACTIVE = "ACTIVE"
_SIZE_TAG = "size"
_GONE = "It is no longer an active account below the organizational units of its pool."


def has_units() -> bool:
    """Whether any pool has an organizational unit; without one nothing is called."""
    return bool(current().units)


def sync_pool(*, pool: str = "", apply: bool, most_share: float = MOST_SHARE, actor: Actor = SYNC, clock: Clock) -> SyncReport:
    """Hold one ``pool``, or all that have organizational units, against what AWS lists below those. Without ``apply`` nothing changes. When
    more than ``most_share`` of a pool would leave, none does (``stopped``), and new ones come in all the same.

    :raises Unavailable: when AWS did not list everything: nothing is changed then.
    :raises Conflict: when there is no unit to look at.
    """
    policy.may_operate(actor).require()
    check_share(most_share)
    units = {unit: label for unit, label in current().units.items() if pool in ("", label)}
    if not units:
        raise Conflict("No organizational unit is set for this pool: PORTAL_LEASES_UNITS names them.", code="no_units")
    try:
        listed = {label: _listed(unit for unit, of in units.items() if of == label) for label in sorted(set(units.values()))}
        run = _Run(actor=actor, clock=clock)
        known = {account.account_id: account for account in pages.every_account(past=run.pass_over)}
        run.sort(listed, known)
        run.hold_back(Counter(account.pool for account in known.values()), most_share)
        if apply:
            run.carry_out()
    except OutsideError as error:
        raise NoAnswer(f"The accounts of the organization could not be read: {error}", code="aws_unavailable") from error
    return SyncReport(
        listed=sum(len(accounts) for accounts in listed.values()),
        known=sum(account.pool in listed for account in known.values()),
        new=tuple(one.account_id for _, one in run.new),
        gone=tuple(account.account_id for account in run.gone),
        elsewhere=tuple(run.elsewhere),
        kept_out=tuple(run.kept_out),
        is_applied=apply,
        failures=run.failed,
        stopped=" ".join(run.stopped),
    )


def _listed(units: Iterable[str]) -> dict[str, OrganizationAccount]:
    """The accounts below these units that may be in a pool, by id."""
    found = [account for unit in units for account in organizations.read_accounts(below=unit)]
    return {
        one.account_id: one for one in found if one.status == _ACTIVE and not one.is_management and one.account_id not in current().never
    }


@dataclass(kw_only=True)
class _Run(Run):
    """One look. ``new`` are with their pool."""

    # It left, or came in, meanwhile.
    passes = (NoSuchAccount,)
    actor: Actor
    clock: Clock
    new: list[tuple[str, OrganizationAccount]] = field(default_factory=list)
    gone: list[Account] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def sort(self, listed: Mapping[str, Mapping[str, OrganizationAccount]], known: Mapping[str, Account]) -> None:
        """What the lists mean for the accounts that are ``known``."""
        unreadable = {failure.item for failure in self.failures}
        for pool, accounts in listed.items():
            for account_id, one in accounts.items():
                if account_id not in known and not any(name.endswith(account_id) for name in unreadable):
                    self.unit(account_id, partial(self._sort_new, pool, one))
                elif account_id in known and known[account_id].pool != pool:
                    self.elsewhere.append(account_id)
        self.gone = [
            account
            for account in known.values()
            if account.pool in listed and account.account_id not in listed[account.pool] and not account.is_retiring
        ]

    def _sort_new(self, pool: str, one: OrganizationAccount) -> None:
        if _was_retired_by_hand(one.account_id):
            self.kept_out.append(one.account_id)
        else:
            self.new.append((pool, one))

    def hold_back(self, sizes: Mapping[str, int], most_share: float) -> None:
        """Leave in the pool what goes too much at once: a wrong list is likelier."""
        for pool, going in _by_pool(self.gone).items():
            would = f"accounts of the pool {pool} would leave it"
            reason = brake(len(going), sizes[pool], most_share, would=would, remedy="Look at its organizational units")
            if reason:
                self.stopped.append(reason)
                self.gone = [account for account in self.gone if account.pool != pool]

    def carry_out(self) -> None:
        tags = organizations.read_tags([one.account_id for _, one in self.new])
        for pool, one in self.new:
            self.unit(one.account_id, partial(self._add, pool, one, tags[one.account_id]))
        for account in self.gone:
            self.unit(account.account_id, partial(self._retire, account, current().units_of(account.pool)))

    def _add(self, pool: str, one: OrganizationAccount, tags: Mapping[str, str] | None) -> None:
        if tags is None:
            raise NoAnswer("Its tags could not be read, so it does not come in yet.", code="aws_unavailable")
        new = NewAccount(one.account_id, one.name, _size_of(tags), tags)
        add_accounts([new], pool=pool, actor=self.actor, now=self.clock.now())

    def _retire(self, account: Account, units: Collection[str]) -> None:
        """After a second look, at this account alone: a list may be wrong."""
        where = effects.whereabouts(account.account_id)
        is_there = bool(set(units) & set(where.above)) and not where.is_management and account.account_id not in current().never
        if is_there and organizations.is_active(account.account_id):
            raise Conflict("AWS lists it no longer, and yet it is there. It stays; look at it.", code="list_unclear")
        retire(account_id=account.account_id, reason=_GONE, actor=self.actor, now=self.clock.now())


def _was_retired_by_hand(account_id: str) -> bool:
    """Whether somebody took it out of the pool: coming in by itself it would be cleaned, and they may use it for something else by now."""
    reason = ""
    for event in every(lambda cursor: queries.history_of_account(account_id=account_id, cursor=cursor)):
        if event.action in ("account.retired", "account.retiring"):
            reason = str(event.data.get("reason") or reason)
        if event.action in ("account.retiring", "account.restored", "account.added"):
            break
    return reason not in ("", _GONE)


def _by_pool(accounts: Iterable[Account]) -> dict[str, list[Account]]:
    ordered = sorted(accounts, key=lambda account: account.pool)
    return {pool: list(some) for pool, some in groupby(ordered, key=lambda account: account.pool)}


def _size_of(tags: Mapping[str, str]) -> str:
    """What the account's tag ``size`` says, if that can be a size."""
    size = tags.get(_SIZE_TAG, "").lower()
    return size if policy.is_word(size) else ""
