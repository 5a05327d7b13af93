"""The rows of accounts, leases and people. What belongs together changes in one transaction, with its events and the seed's lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from accessportal.audit import operations as audit
from accessportal.audit import queries as audit_log
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import Actor
from accessportal.leases import models
from accessportal.leases.models import AccountItem, LeaseItem, PersonItem
from accessportal.leases.states import Account, Lease, Person
from accessportal.leases.store import lists
from accessportal.store.reading import ItemKey, get_together, read_as
from accessportal.store.records import Records
from accessportal.store.restores import HEAD, is_held_by
from accessportal.store.transactions import Guard, Overtaken, Step, transact

R = TypeVar("R", Account, Lease)
B = TypeVar("B")


def _indexed_account(account: Account) -> dict[str, Any]:
    share = models.share_of(account.account_id)
    return {
        "state_share": models.state_share(account.pool, account.state, share),
        "listed": models.listed_share("accounts", share),
        "place": models.place_of(account.pool, account.account_id),
        "due": None if account.due_at is None else models.listed_share("clean", share),
    }


def _indexed_lease(lease: Lease) -> dict[str, Any]:
    share = models.share_of(lease.lease_id)
    return {
        "listed": models.listed_share("leases", share),
        "place": models.place_of(lease.pool, lease.lease_id),
        "due": None if lease.due_at is None else models.listed_share("freeze", share),
    }


class _Keyed(Records[Any, B]):
    """An item that somebody put under another's key says nothing of either."""

    def record(self, item: Any) -> B:
        """:raises ValueError: also for a key that is not made of its id."""
        record = super().record(item)
        if self._key_of(record)[0] != item.pk:
            raise ValueError("its id is not that of its key")
        return record


accounts: Records[AccountItem, Account] = _Keyed(
    AccountItem, Account, key=lambda account: (models.account_key(account.account_id),), also=_indexed_account
)
leases: Records[LeaseItem, Lease] = _Keyed(LeaseItem, Lease, key=lambda lease: (models.lease_key(lease.lease_id),), also=_indexed_lease)
people: Records[PersonItem, Person] = _Keyed(PersonItem, Person, key=lambda person: (models.person_key(person.user),))


@dataclass(frozen=True, slots=True)
class Move(Generic[R]):
    """One record in a transaction, as it will be (or was, where it goes), with its steps and what becomes of it in the lists."""

    record: R
    steps: Sequence[Step]
    lists: lists.Moved


class FirstOvertaken(Overtaken):
    """It was the first record of the transaction that somebody else changed."""


def move(before: R | None, after: R | None, draft: Draft, *, actor: Actor, now: datetime) -> Move[R]:
    """``before``: as it was read (``None``: it is new); ``after``: as it is to be (``None``: it goes)."""
    one = before if after is None else after
    assert one is not None
    records = records_of(one)
    told, event = audit.told(one, draft, actor=actor, now=now)
    if before is None:
        step: Step = records.insertion(told)
    else:
        step = records.removal(before) if after is None else records.change(before, told)
    was, will_be = lists.of_row(before), lists.of_row(after)
    return Move(records.kept(told), [step, event], lists.Moved(id_of(one), was - will_be, will_be - was))


def move_deleted_lease(lease_id: str, draft: Draft, *, actor: Actor, now: datetime) -> Move[Any]:
    """The end of a lease that somebody else has deleted: it is told, and leaves the list."""
    step = after_last_event(f"lease#{lease_id}", draft, actor=actor, now=now)
    return Move(None, [step], lists.Moved(lease_id, left=frozenset({models.ACTIVE}), entered=frozenset()))


def move_person(before: Person | None, after: Person | None) -> Step:
    """As :func:`move`, for what a person has; no event: those of the leases tell."""
    if after is None:
        assert before is not None
        return people.removal(before)
    written = replace(after, version=after.version + 1)
    return people.insertion(written) if before is None else people.change(before, written)


def write(*moves: Move[Any], person: Step | None = None, further: Sequence[Step] = ()) -> None:
    """Write an account, its lease and what their person has, with the events and the lists, all or nothing.

    :raises FirstOvertaken: when somebody else changed the first of them first.
    :raises Overtaken: when somebody else changed another one first.
    :raises ConditionFailed: when one of ``further`` does not hold.
    :raises ListFull: when the pool holds as much as it can.
    """
    own = [step for move in moves for step in move.steps] + ([] if person is None else [person])
    try:
        lists.write(own, [move.lists for move in moves], further=further)
    except Overtaken as error:
        failed = getattr(error.__cause__, "step", None)
        if any(failed is step for step in moves[0].steps):
            raise FirstOvertaken from error
        raise


@dataclass(frozen=True, slots=True)
class Seen:
    """What decides a hand-over beside the account, strongly read in one request. ``is_held``: a restore is not confirmed yet. ``waits``:
    it has a place in the line."""

    lease: Lease | None
    person: Person | None
    is_held: bool
    waits: bool


def look_up(lease_id: str, *, user: str, place: ItemKey | None = None) -> Seen:
    """The lease, what its person has, whether anything may be given, and whether there is the ``place``.

    :raises Unavailable: when the store did not answer, or one of them can't be read.
    """
    own: list[ItemKey] = [(LeaseItem, models.lease_key(lease_id)), (PersonItem, models.person_key(user)), HEAD]
    lease, person, head, *places = get_together([*own, *([place] if place else [])])
    return Seen(
        None if lease is None else read_as(leases.record, lease),
        None if person is None else read_as(people.record, person),
        is_held_by(head),
        any(places),
    )


def get_account(account_id: str) -> Account | None:
    """Strongly read."""
    return accounts.get(models.account_key(account_id))


def find_lease(lease_id: str) -> Lease | None:
    """Strongly read; ``None`` when there is none, or it has ended."""
    return leases.get(models.lease_key(lease_id))


def get_person(user: str) -> Person | None:
    """Strongly read."""
    return people.get(models.person_key(user))


def find_leases(lease_ids: Iterable[str]) -> dict[str, Lease]:
    """Those that exist, by id; strongly read, together."""
    found = leases.get_many([models.lease_key(one) for one in lease_ids])
    return {lease.lease_id: lease for lease in found.values()}


def get_held(lease_id: str) -> tuple[Lease, Account | None, Person | None] | None:
    """A lease with its account and what its person has, unless somebody else has deleted these; ``None``: it has ended. Strongly read, in
    two requests: only a write on the lease's version tells whether it ended between them."""
    lease = find_lease(lease_id)
    if lease is None:
        return None
    account, person = get_together([(AccountItem, models.account_key(lease.account_id)), (PersonItem, models.person_key(lease.user))])
    lent = None if account is None else read_as(accounts.record, account)
    is_its = lent is not None and lent.lease_id == lease_id
    return lease, lent if is_its else None, None if person is None else read_as(people.record, person)


def last_event(entity: str) -> AuditEvent | None:
    """The end of a chain, whether or not its row exists."""
    return next(iter(audit_log.history(entity, limit=1).items), None)


def after_last_event(entity: str, draft: Draft, *, actor: Actor, now: datetime) -> Step:
    """The step that writes an event to the end of a chain that has no row."""
    last = last_event(entity)
    sequence, head = (1, "") if last is None else (last.sequence + 1, last.hash)
    return audit.prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=actor, now=now).step


def still(lease: Lease) -> Guard:
    """The guard that the lease is at the same hand-over, and in the same state with the same order as it was read."""
    wanted = LeaseItem.wanted
    ordered = wanted.does_not_exist() if lease.wanted is None else wanted == lease.wanted.value
    same = (LeaseItem.fence == lease.fence) & (LeaseItem.data["state"] == lease.state.value) & ordered
    return Guard(LeaseItem, models.lease_key(lease.lease_id), same)


def not_lent(lease_id: str) -> Guard:
    """The guard that there is no such lease."""
    return Guard(LeaseItem, models.lease_key(lease_id), LeaseItem.pk.does_not_exist(), may_be_missing=True)


def records_of(row: Account | Lease) -> Records[Any, Any]:
    """How it is kept."""
    return accounts if isinstance(row, Account) else leases


def id_of(row: Account | Lease) -> str:
    return row.account_id if isinstance(row, Account) else row.lease_id


def get_row(list_name: str, one: str) -> Account | Lease | None:
    """What an id in the list names, strongly read."""
    return find_lease(one) if list_name == models.ACTIVE else get_account(one)


def mend(list_name: str, one: str, row: Account | Lease | None, ids: Sequence[str]) -> None:
    """Put ``one`` into the list of ``ids`` or take it out, as its row says, if neither has changed since it was read.

    :raises ConditionFailed: when one has.
    """
    model, key = (LeaseItem, models.lease_key(one)) if list_name == models.ACTIVE else (AccountItem, models.account_key(one))
    unchanged = model.pk.does_not_exist() if row is None else records_of(row).is_unchanged(row)
    guard = Guard(model, key, unchanged, may_be_missing=row is None)
    transact([guard, lists.remove(list_name, one, ids) if one in ids else lists.enter_once(list_name, one)])
