"""Refreshing the catalog from AWS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from django.conf import settings

from accessportal.aws.errors import OutsideError
from accessportal.aws.identity_store import read_groups, read_users
from accessportal.aws.organizations import read_accounts, read_tags
from accessportal.aws.permission_sets import Instance, Pace, read_instances, read_permission_sets
from accessportal.catalog import store
from accessportal.catalog.states import Account, Freshness, PermissionSet, Principal, PrincipalType
from accessportal.kernel.brakes import MOST_SHARE, most_at_once
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.store.coordination import reserve_slot

# The queue that the assignments' calls wait in too: AWS counts all calls to Identity Center together.
_CALL_QUEUE = "identity-center.calls"
_LONGEST_QUEUE_SECONDS = 8.0
_TRIES_FOR_A_TURN = 30


def sync_catalog(*, most_share: float = MOST_SHARE, now: datetime, clock: Clock) -> Freshness:
    """Fill the catalog with what AWS has, read whole before anything is written in one transaction: whatever fails, the former catalog
    stays. :raises Conflict: when a list is empty, or more than ``most_share`` would go (1 lets it)."""
    run_id = store.start_run(now)
    try:
        reading = _read_everything(clock)
        _brake(reading, most_share)
        store.replace_all(run_id, reading, at=clock.now())
    except Exception as error:
        store.fail_run(run_id, error=str(error) or type(error).__name__, at=clock.now())
        if isinstance(error, OutsideError):
            text = f"The catalog could not be read from AWS ({error.code}: {error.message}). The former one stays."
            raise Unavailable(text, code="catalog_sync_failed") from error
        raise
    return store.freshness()


def forget_people(is_gone: Callable[[str], bool]) -> None:
    """Whose address ``is_gone`` is not in the catalog any more; as long as AWS has them, the next sync brings them back."""
    store.forget_users(is_gone)


def _read_everything(clock: Clock) -> store.Reading:
    pace = _shared_pace(clock)
    instance = _the_instance(read_instances(pace=pace))
    sets = read_permission_sets(instance.instance_arn, pace=pace)
    return store.Reading(
        instance_arn=instance.instance_arn,
        identity_store_id=instance.identity_store_id,
        accounts=_accounts(),
        permission_sets=[PermissionSet(one.arn, one.name, one.description, one.session_seconds) for one in sets],
        principals=_principals(instance.identity_store_id),
    )


def _brake(reading: store.Reading, most_share: float) -> None:
    """A list that is nearly empty, though whole: wrong credentials or rights are likelier than that so much is gone."""
    for what, known, found in store.compared(reading):
        going, most = len(known - found), most_at_once(len(known), most_share)
        if going > most or (known and not found and most_share < 1):
            text = f"{going} of {len(known)} {what} of the catalog are not in AWS's list any more; at most {most}"
            remedy = "The former catalog stays. Look at the list, then run sync_catalog with a larger --most-share."
            raise Conflict(f"{text} may go at once. {remedy}", code="catalog_brake")


def _the_instance(instances: Sequence[Instance]) -> Instance:
    if len(instances) != 1:
        found = ", ".join(one.instance_arn for one in instances) or "none"
        raise Unavailable(
            f"Exactly one instance of IAM Identity Center is needed, but {len(instances)} are visible ({found}). "
            "Enable Identity Center for the organization, or use credentials and AWS_REGION of its home.",
            code="identity_center_instance",
        )
    return instances[0]


def _accounts() -> list[Account]:
    found = read_accounts()
    tags = read_tags([one.account_id for one in found])
    return [
        Account(
            account_id=one.account_id,
            name=one.name,
            email=one.email,
            status=one.status,
            ou_path=one.ou_path,
            tags=tags[one.account_id],
            is_management=one.is_management,
        )
        for one in found
    ]


def _principals(identity_store_id: str) -> list[Principal]:
    users = [Principal(PrincipalType.USER, one.user_id, one.email) for one in read_users(identity_store_id)]
    return users + [Principal(PrincipalType.GROUP, one.group_id, one.display_name) for one in read_groups(identity_store_id)]


def _shared_pace(clock: Clock) -> Pace:
    """Waits in the same queue as everybody's assignment calls, one call at a time: a sync delays each of those by one slot."""
    gap_seconds = 1 / settings.IDENTITY_CENTER_CALLS_PER_SECOND

    def wait_for_turn() -> None:
        for _ in range(_TRIES_FOR_A_TURN):
            now = clock.now()
            slot = reserve_slot(_CALL_QUEUE, gap_seconds=gap_seconds, longest_wait_seconds=_LONGEST_QUEUE_SECONDS, now=now)
            if slot is not None:
                clock.sleep((slot - now).total_seconds())
                return
            clock.sleep(_LONGEST_QUEUE_SECONDS)
        raise Unavailable("IAM Identity Center is busy with assignments; the catalog waits for another time.", code="catalog_no_turn")

    return wait_for_turn
