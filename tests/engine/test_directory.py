"""Two and more at once in the directory, with real threads: never a cycle, an orphan, a ghost or a root without an admin.

Half of the rounds start at the same moment; in the other half everybody has read and decided before the first one writes, so
that all but one stand on what is no longer true. ``Checker.check`` walks the whole table after every round.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from accessportal.directory import operations, queries
from accessportal.directory.operations.deleting import MOST_AT_ONCE
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.errors import PortalError
from tests.depth import examples
from tests.engine.directory_place import ADMIN, CONTRIBUTOR, READER, SETUP, Action, Place, codes, run
from tests.engine.stage import at_once, lost, won
from tests.engine.whole_directory import Checker, found_directory, standing_admins

ROUNDS = examples(2)


@pytest.fixture
def place(engine: str) -> Callable[[], Place]:
    """Makes an empty place in the directory for each round."""
    found_directory(now=datetime.now(UTC))
    return partial(Place, itertools.count(1))


@pytest.fixture
def checker() -> Checker:
    return Checker()


# Each takes an empty place, prepares it, and returns what happens at once.


def _two_under_each_other(here: Place) -> list[Action]:
    here.groups("a", "b", "a/x")
    return [partial(here.move, "a", "b"), partial(here.move, "b", "a")]


def _three_in_a_ring(here: Place) -> list[Action]:
    here.groups("a", "b", "c", "b/x")
    return [partial(here.move, "a", "b"), partial(here.move, "b", "c"), partial(here.move, "c", "a")]


def _under_what_is_below_the_other(here: Place) -> list[Action]:
    here.groups("a", "a/x", "a/x/y", "b", "b/x", "b/x/y")
    return [partial(here.move, "a", "b/x/y"), partial(here.move, "b", "a/x/y")]


def _a_ring_through_the_depths(here: Place) -> list[Action]:
    here.groups("a", "a/x", "b", "b/x", "c", "c/x")
    return [partial(here.move, "a", "b/x"), partial(here.move, "b", "c/x"), partial(here.move, "c", "a/x")]


def _one_to_two_places(here: Place) -> list[Action]:
    here.groups("a", "a/x", "b", "c")
    return [partial(here.move, "a", "b"), partial(here.move, "a", "c")]


def _moved_with_its_parent(here: Place) -> list[Action]:
    here.groups("a", "a/x", "a/x/y", "b", "c")
    return [partial(here.move, "a", "b"), partial(here.move, "a/x", "c"), partial(here.move, "b", "c")]


def _moved_while_groups_are_made_below(here: Place) -> list[Action]:
    here.groups("a", "a/x", "a/x/y", "b")
    return [
        partial(here.move, "a", "b"),
        partial(here.create, "a/new"),
        partial(here.create, "a/x/new"),
        partial(here.create, "a/x/y/new"),
        partial(here.create, "b/new"),
    ]


def _moved_while_a_group_is_made_deep_below(here: Place) -> list[Action]:
    """Alone: anything else that changes the moved group would hide what is not watched at the group in between."""
    here.groups("a", "a/x", "a/x/y", "b")
    return [partial(here.move, "a", "b"), partial(here.create, "a/x/y/new")]


def _moved_while_a_group_deep_below_leaves(here: Place) -> list[Action]:
    here.groups("a", "a/x", "a/x/y", "b", "c")
    return [partial(here.move, "a", "b"), partial(here.move, "a/x/y", "c")]


def _moved_while_its_parts_are_deleted(here: Place) -> list[Action]:
    here.groups("a", "a/x", "a/y", "b")
    return [partial(here.move, "a", "b"), partial(here.delete, "a/x"), partial(here.delete, "a/y")]


def _moved_and_deleted(here: Place) -> list[Action]:
    here.groups("a", "b")
    return [partial(here.move, "a", "b"), partial(here.delete, "a")]


def _moved_below_what_is_deleted(here: Place) -> list[Action]:
    here.groups("a", "b")
    return [partial(here.move, "a", "b"), partial(here.delete, "b")]


def _moved_below_what_is_disabled(here: Place) -> list[Action]:
    here.groups("a", "b")
    return [partial(here.move, "a", "b"), partial(here.set_group, "b", State.DISABLED)]


def _made_below_what_is_disabled(here: Place) -> list[Action]:
    here.groups("a")
    return [partial(here.create, "a/x"), partial(here.set_group, "a", State.DISABLED)]


def _made_below_what_is_deleted(here: Place) -> list[Action]:
    here.groups("a")
    return [partial(here.create, "a/x"), partial(here.create, "y", "a"), partial(here.delete, "a")]


def _members_while_it_is_deleted(here: Place) -> list[Action]:
    here.groups("a")
    for who in ("alice", "bob"):
        here.come(who)
    return [
        partial(here.grant, "alice", "a"),
        partial(here.hold, "bob", "a", "r-1", ADMIN),
        partial(here.come, "mallory", "a", ADMIN),
        partial(here.delete, "a"),
    ]


def _the_last_member_goes_while_another_comes_and_it_is_deleted(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "a", ADMIN)
    here.come("bob")
    return [partial(here.revoke, "alice", "a"), partial(here.grant, "bob", "a", ADMIN), partial(here.delete, "a")]


def _deleted_and_made_again(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice")
    return [partial(here.delete, "a"), partial(here.create, "a"), partial(here.grant, "alice", "a")]


def _granted_while_the_person_is_disabled(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "")
    return [partial(here.grant, "alice", "a", ADMIN), partial(here.set_person, "alice", State.DISABLED), partial(here.sign_in, "alice")]


def _granted_while_the_group_is_disabled(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "a")
    here.come("bob")
    return [
        partial(here.grant, "alice", "a", ADMIN),
        partial(here.grant, "bob", "a"),
        partial(here.hold, "bob", "a", "r-1"),
        partial(here.set_group, "a", State.DISABLED),
    ]


def _granted_while_the_person_is_deleted(here: Place) -> list[Action]:
    here.groups("a", "b")
    here.come("alice", "a", ADMIN)
    return [partial(here.grant, "alice", "b", ADMIN), partial(here.delete_person, "alice"), partial(here.hold, "alice", "b", "r-1")]


def _granted_while_a_person_of_many_groups_is_deleted(here: Place) -> list[Action]:
    here.groups("a", *(f"many-{number}" for number in range(MOST_AT_ONCE)))
    here.come("alice", "", ADMIN)
    for number in range(MOST_AT_ONCE):
        here.grant("alice", f"many-{number}")
    return [partial(here.grant, "alice", "a", ADMIN), partial(here.delete_person, "alice"), partial(here.delete_person, "alice")]


def _the_last_revoke_and_a_grant_elsewhere(here: Place) -> list[Action]:
    here.groups("a", "b")
    here.come("alice", "a", ADMIN)
    return [partial(here.revoke, "alice", "a"), partial(here.grant, "alice", "b")]


def _both_last_revokes(here: Place) -> list[Action]:
    here.groups("a", "b")
    here.come("alice", "a", ADMIN)
    here.grant("alice", "b")
    return [partial(here.revoke, "alice", "a"), partial(here.revoke, "alice", "b")]


def _the_last_revoke_and_the_same_address_again(here: Place) -> list[Action]:
    here.groups("a", "b")
    here.come("alice", "a")
    return [partial(here.revoke, "alice", "a"), partial(here.come, "alice", "b", ADMIN)]


def _claimed_while_another_claim_is_given_back(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "")
    here.hold("alice", "a", "r-1", ADMIN)
    return [partial(here.hold, "alice", "a", "r-2"), partial(here.release, "alice", "a", "r-1"), partial(here.grant, "alice", "a")]


def _claimed_while_the_last_permanent_role_is_revoked(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "a", ADMIN)
    return [partial(here.hold, "alice", "a", "r-1"), partial(here.revoke, "alice", "a")]


def _claimed_and_given_back_twice(here: Place) -> list[Action]:
    here.groups("a")
    here.come("alice", "")
    here.hold("alice", "a", "r-2", ADMIN)
    return [
        *[partial(here.hold, "alice", "a", "r-1", CONTRIBUTOR)] * 2,
        *[partial(here.release, "alice", "a", "r-2")] * 2,
        partial(here.release, "alice", "a", "r-1"),
    ]


def _renamed_while_members_come(here: Place) -> list[Action]:
    here.groups("a", "b")
    here.come("alice")
    return [
        partial(here.rename, "a", "New"),
        partial(here.rename_person, "alice", "Alicia"),
        partial(here.grant, "alice", "a"),
        partial(here.create, "a/x"),
        partial(here.move, "a", "b"),
    ]


@dataclass(frozen=True)
class Race:
    """``winners`` may come through; the codes are those that the others may be given, and no other."""

    prepare: Callable[[Place], list[Action]]
    winners: range
    codes: frozenset[str] = frozenset()
    rounds: int = ROUNDS


def _race(prepare: Callable[[Place], list[Action]], least: int, most: int, *may: str, rounds: int = ROUNDS) -> Any:
    name = prepare.__name__.strip("_").replace("_", " ")
    return pytest.param(Race(prepare, range(least, most + 1), frozenset(may), rounds), id=name)


@pytest.mark.parametrize(
    "race",
    [
        _race(_two_under_each_other, 1, 1, "group_cycle", rounds=examples(4)),
        _race(_three_in_a_ring, 2, 2, "group_cycle", rounds=examples(4)),
        _race(_under_what_is_below_the_other, 1, 1, "group_cycle"),
        _race(_a_ring_through_the_depths, 2, 2, "group_cycle"),
        _race(_one_to_two_places, 2, 2),
        _race(_moved_with_its_parent, 3, 3),
        _race(_moved_while_groups_are_made_below, 5, 5),
        _race(_moved_while_a_group_is_made_deep_below, 2, 2, rounds=examples(4)),
        _race(_moved_while_a_group_deep_below_leaves, 2, 2),
        _race(_moved_while_its_parts_are_deleted, 3, 3),
        _race(_moved_and_deleted, 1, 2, "group_not_found"),
        _race(_moved_below_what_is_deleted, 1, 1, "parent_missing", "group_not_empty"),
        _race(_moved_below_what_is_disabled, 1, 2, "parent_missing"),
        _race(_made_below_what_is_disabled, 1, 2, "parent_missing"),
        _race(_made_below_what_is_deleted, 1, 2, "parent_missing", "group_not_empty"),
        _race(_members_while_it_is_deleted, 2, 3, "group_not_found", "group_not_empty"),
        _race(_the_last_member_goes_while_another_comes_and_it_is_deleted, 2, 2, "group_not_found", "group_not_empty"),
        _race(_deleted_and_made_again, 1, 3, "group_exists", "group_not_found", "group_not_empty"),
        _race(_granted_while_the_person_is_disabled, 1, 3, "person_disabled"),
        _race(_granted_while_the_group_is_disabled, 2, 4, "group_disabled"),
        _race(_granted_while_the_person_is_deleted, 2, 3, "person_not_found"),
        _race(_granted_while_a_person_of_many_groups_is_deleted, 1, 3, "person_not_found", "person_disabled", "person_deleting", rounds=2),
        _race(_the_last_revoke_and_a_grant_elsewhere, 1, 2, "person_not_found"),
        _race(_both_last_revokes, 2, 2),
        _race(_the_last_revoke_and_the_same_address_again, 1, 2, "person_exists"),
        _race(_claimed_while_another_claim_is_given_back, 3, 3),
        _race(_claimed_while_the_last_permanent_role_is_revoked, 2, 2),
        _race(_claimed_and_given_back_twice, 5, 5),
        _race(_renamed_while_members_come, 5, 5),
    ],
)
def test_whatever_happens_at_once_the_directory_stays_whole(race: Race, place: Callable[[], Place], checker: Checker) -> None:
    for number in range(race.rounds):
        outcomes = run(race.prepare(place()), number=number)
        checker.check()
        assert set(codes(outcomes)) <= race.codes, outcomes
        assert len(won(outcomes)) in race.winners, outcomes


_WAYS: dict[str, Callable[..., Any]] = {
    "revoke": lambda here, who, by="": here.revoke(who, "/", by=by),
    "change the role": lambda here, who, by="": here.grant(who, "/", READER, by=by),
    "disable": lambda here, who, by="": here.set_person(who, State.DISABLED, by=by),
    "delete": lambda here, who, by="": here.delete_person(who, by=by),
}


def _alone(here: Place, names: Sequence[str]) -> None:
    """These are the only admins of the root. They are in another group too, or revoking would delete them."""
    for who in names:
        here.come(who, "")
        here.grant(who, "/", ADMIN)
    for email in standing_admins() - {here.email(who) for who in names}:
        operations.delete_person(email=email, actor=SETUP, now=datetime.now(UTC))


@pytest.mark.parametrize("ways", list(itertools.combinations_with_replacement(_WAYS, 2)), ids=" and ".join)
def test_of_two_last_admins_one_stays(ways: tuple[str, ...], place: Callable[[], Place], checker: Checker) -> None:
    for number in range(2):
        here = place()
        _alone(here, ["ada", "ben"])

        outcomes = run([partial(_WAYS[way], here, who) for way, who in zip(ways, ["ada", "ben"], strict=True)], number=number)

        walk = checker.check()
        assert codes(outcomes) == ["last_root_admin"]
        assert len(walk.groups["/"]["standingAdmins"]) == 1


@pytest.mark.parametrize("left_out", _WAYS)
def test_of_three_last_admins_one_stays(left_out: str, place: Callable[[], Place], checker: Checker) -> None:
    names = ["ada", "ben", "cleo"]
    for number in range(2):
        here = place()
        _alone(here, names)
        ways = [way for way in _WAYS if way != left_out]

        outcomes = run([partial(_WAYS[way], here, who) for way, who in zip(ways, names, strict=True)], number=number)

        walk = checker.check()
        assert codes(outcomes) == ["last_root_admin"]
        assert len(walk.groups["/"]["standingAdmins"]) == 1


@pytest.mark.parametrize("way", _WAYS)
def test_admins_who_remove_each_other_leave_one(way: str, place: Callable[[], Place], checker: Checker) -> None:
    """By their own right, which whoever was removed before has lost."""
    names = ["ada", "ben", "cleo"]
    for number in range(2):
        here = place()
        _alone(here, names)

        outcomes = run(
            [partial(_WAYS[way], here, who, by=by) for who, by in zip(names, [*names[1:], names[0]], strict=True)], number=number
        )

        walk = checker.check()
        assert set(codes(outcomes)) <= {"last_root_admin", "group_admins_only", "root_admins_only"}
        assert 1 <= len(walk.groups["/"]["standingAdmins"]) == len(lost(outcomes))


def test_of_fifty_grants_of_one_membership_one_is_written(place: Callable[[], Place], checker: Checker) -> None:
    for number in range(2):
        here = place()
        here.come("alice")

        outcomes = run([partial(here.grant, "alice", "", ADMIN)] * 50, number=number)

        checker.check()
        assert Counter(codes(outcomes)) == {"membership_exists": 49}


def test_twenty_groups_are_made_below_one_at_once(place: Callable[[], Place], checker: Checker) -> None:
    for number in range(2):
        here = place()

        outcomes = run([partial(here.create, f"child-{count}") for count in range(20)], number=number)

        assert codes(outcomes) == []
        walk = checker.check()
        assert walk.groups[here.group("")]["childCount"] == 20


def test_twenty_people_come_into_one_group_at_once(place: Callable[[], Place], checker: Checker) -> None:
    for number in range(2):
        here = place()

        outcomes = run([partial(here.come, f"new{count}", "", ADMIN) for count in range(20)], number=number)

        assert codes(outcomes) == []
        walk = checker.check()
        assert walk.groups[here.group("")]["memberCount"] == 20


THREADS, OPERATIONS = 8, examples(40)
_NAMES = ("a", "b", "c", "a/x", "a/x/y", "b/x", "c/x", "d")
_PEOPLE = ("alice", "bob", "carol", "dave", "erin", "frank")


def _anything(here: Place, chance: random.Random) -> Action:
    who, name, other = chance.choice(_PEOPLE), chance.choice(_NAMES), chance.choice(["", *_NAMES])
    role, claim, state = chance.choice(list(GroupRole)), f"r-{chance.randrange(3)}", chance.choice(list(State))
    email, now = here.email(who), datetime.now(UTC)
    return chance.choice(
        [
            *[partial(here.create, name, other)] * 2,
            *[partial(here.move, name, other)] * 3,
            partial(here.rename, name, f"Name {chance.randrange(100)}"),
            partial(here.set_group, name, state),
            partial(here.set_group, name, State.ENABLED),
            *[partial(here.delete, name)] * 2,
            *[partial(here.come, who, chance.choice([None, name]), role)] * 2,
            *[partial(here.grant, who, chance.choice([name, name, name, "/"]), role)] * 4,
            *[partial(here.revoke, who, chance.choice([name, name, "/"]))] * 2,
            *[partial(here.hold, who, name, claim, role)] * 2,
            *[partial(here.release, who, name, claim)] * 2,
            partial(here.set_person, who, state),
            partial(here.set_person, who, State.ENABLED),
            partial(here.rename_person, who, f"Name {chance.randrange(100)}"),
            partial(here.delete_person, who),
            partial(here.sign_in, who),
            partial(queries.roles_of, email=email, now=now),
            partial(queries.Book().crowd, queries.Named(groups=(here.group(name),)), now=now),
            partial(queries.Book().crowd, queries.Named(admins_of=here.group(name)), now=now),
        ]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_eight_threads_that_do_anything_leave_the_directory_whole(seed: int, place: Callable[[], Place], checker: Checker) -> None:
    here = place()
    _alone(here, ["ada"])
    here.groups("a", "b", "c", "a/x", "b/x")
    for count, who in enumerate(_PEOPLE[:4]):
        here.come(who, _NAMES[count % 4], list(GroupRole)[count % 3])

    def work(thread: int) -> Counter[str]:
        chance, told = random.Random(f"{seed} {thread}"), Counter[str]()
        for _ in range(OPERATIONS):
            try:
                _anything(here, chance)()
                told["done"] += 1
            except PortalError as error:
                told[error.code] += 1
        return told

    outcomes = at_once([partial(work, thread) for thread in range(THREADS)])

    assert lost(outcomes) == []
    told = sum(won(outcomes), Counter[str]())
    checker.check()
    assert told["done"] > THREADS * OPERATIONS / 4, told
    assert not {"store_contended", "directory_contended", "store_unavailable"} & told.keys(), told
