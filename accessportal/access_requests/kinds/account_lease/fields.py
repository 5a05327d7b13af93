"""What the form for an account of a pool asks, and what its pages say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.account_lease.terms import LeaseTerms
from accessportal.access_requests.kinds.aws_account.fields import permission_sets
from accessportal.access_requests.kinds.lending import offering
from accessportal.access_requests.kinds.records import has_rules
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.leases import queries as leases
from accessportal.leases.states import AccountState
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import ACCOUNTS


def _pools(actor: Actor, book: Book, now: datetime) -> tuple[tuple[str, str], ...]:
    found = dict.fromkeys(pool for terms in offering(LeaseTerms, actor, book, now) for pool in terms.targets.pools)
    return tuple((pool, pool) for pool in found) or (("", "No rule offers you an account"),)


def _sizes(actor: Actor, book: Book, now: datetime) -> tuple[tuple[str, str], ...]:
    found = dict.fromkeys(size for terms in offering(LeaseTerms, actor, book, now) for size in terms.targets.sizes or ("",))
    return tuple((size, size or "Any size") for size in found) or (("", "Any size"),)


def _around() -> dict[str, Any]:
    count = leases.last_count()
    free = count.counts.get(AccountState.AVAILABLE, 0) if count is not None else 0
    return {"count": count, "free": free, "in_line": waiting.get_line(ACCOUNTS).waiting}


FIELDS = Fields(
    name="AWS account of your own",
    about="A whole AWS account for some days, out of a pool. Given back, it is emptied before anybody else gets it.",
    icon="boxes",
    heading="Borrow an AWS account",
    target=(
        Field(
            name="pool",
            label="Pool",
            missing="Choose a pool.",
            choices=_pools,
            wrong="No rule offers you accounts of this pool. Choose one of the list.",
            about="the pool of accounts",
            metavar="NAME",
        ),
        Field(
            name="size",
            label="Size",
            choices=_sizes,
            wrong="No rule offers you accounts of this size. Choose one of the list.",
            about="the size (default: any)",
            metavar="SIZE",
        ),
        Field(name="tags", label="Tags", placeholder="env=dev, team=web", about="tags that it must have, like env=dev", metavar="TAGS"),
        Field(
            name="permission_set",
            label="Permission set",
            missing="Choose a permission set.",
            placeholder="For example PowerUserAccess",
            search=permission_sets,
            about="the permission set",
            metavar="NAME",
        ),
    ),
    continued=("continues",),
    hint="Choose a pool and a permission set to see who decides, and how long it may last.",
    lengths=("1d", "3d", "7d", "14d"),
    usual="3d",
    place="IAM Identity Center",
    is_offered=has_rules("account_lease"),
    around=_around,
    at_once="Approved by rule. It gets an account now, or as soon as one is free.",
    beside="You can give it back at any time.",
    extending="Keep your account longer",
    thing="account",
    queued=("Waiting for an account", "It is approved, and waits for a free account. Its time begins when it has one."),
)
