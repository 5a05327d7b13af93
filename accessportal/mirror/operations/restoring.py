"""What a restore of the table leaves to do: who was disabled in the lost time is so in the user pool alone."""

from __future__ import annotations

from accessportal.aws import cognito
from accessportal.directory import operations as directory
from accessportal.directory.states import State, person_entity
from accessportal.directory.store.whole import read_table
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import most_at_once
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.runs import Failure
from accessportal.mirror import policy, store
from accessportal.mirror.config import current
from accessportal.mirror.effects.pool import read_whole, reading
from accessportal.mirror.states import Disabled


def disable_as_mirrored(*, actor: Actor, clock: Clock) -> Disabled:
    """Disable whom the table has enabled and the user pool has disabled, or has no more. When more than a fifth are not in the pool, none
    is disabled for that: it is the wrong pool."""
    policy.may_keep_pool(actor).require()
    if not current().user_pool_id:
        return Disabled(())
    people, users = read_table().people, read_whole().users
    enabled = [key for key, person in people.items() if person.is_enabled and not person.is_deleting]
    found = [key for key in enabled if key in users and not users[key].is_enabled and _is_shut_out(key)]
    missing = [key for key in enabled if key not in users and store.find_pending(person_entity(key)) is None and _is_shut_out(key)]
    failures = []
    if len(missing) > most_at_once(len(enabled)):
        failures.append(Failure(current().user_pool_id, f"{len(missing)} of {len(enabled)} people are not in this user pool"))
        missing = []
    people_found = tuple(sorted([*found, *missing]))
    for key in people_found:
        failures += _disable(key, actor, clock)
    return Disabled(people_found, failures=tuple(failures))


def _disable(key: str, actor: Actor, clock: Clock) -> list[Failure]:
    try:
        directory.set_person_state(email=key, state=State.DISABLED, actor=actor, now=clock.now())
    except NotFound:
        pass
    except Conflict as error:
        if error.code != "person_state_unchanged":
            return [Failure(person_entity(key), error.message)]
    return []


def _is_shut_out(key: str) -> bool:
    """By the pool, asked for this one: what comes from another identity provider is not ours to judge."""
    with reading():
        user = cognito.get_user(current().user_pool_id, key)
    return user is None or (not user.is_federated and not user.is_enabled)
