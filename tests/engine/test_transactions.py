"""Conditional writes as Amazon's engine does them: which condition failed, what the item is, and collisions tried again."""

from __future__ import annotations

from functools import partial

import pytest

from accessportal.store.coordination import CoordinationItem
from accessportal.store.reading import get_item
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Remove, Step, Upsert, transact, update_one
from tests.engine.stage import at_once, lost, patient

pytestmark = pytest.mark.usefixtures("engine")
THREADS = 16


@pytest.fixture(autouse=True)
def _standing(engine: str) -> None:
    """An item ``here`` with ``until`` 1; there is none called ``gone``."""
    transact([Insert(CoordinationItem("here", until=1))])


def _until(name: str) -> float | None:
    item = get_item(CoordinationItem, name)
    return None if item is None else item.until


_IS_ONE = CoordinationItem.until == 1
_IS_TWO = CoordinationItem.until == 2
_SET_TWO = (CoordinationItem.until.set(2),)


@pytest.mark.parametrize(
    ("step", "name", "until"),
    [
        pytest.param(Insert(CoordinationItem("gone", until=2)), "gone", 2, id="insert"),
        pytest.param(Change(CoordinationItem, "here", _SET_TWO, _IS_ONE), "here", 2, id="change"),
        pytest.param(Upsert(CoordinationItem, "here", _SET_TWO, _IS_ONE), "here", 2, id="upsert of one that is there"),
        pytest.param(Upsert(CoordinationItem, "gone", _SET_TWO, CoordinationItem.until.does_not_exist()), "gone", 2, id="upsert of none"),
        pytest.param(Remove(CoordinationItem, "here", _IS_ONE), "here", None, id="remove"),
        pytest.param(Guard(CoordinationItem, "here", _IS_ONE), "here", 1, id="guard"),
    ],
)
def test_a_step_whose_condition_holds_is_done(step: Step, name: str, until: float | None) -> None:
    transact([step])

    assert _until(name) == until


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Insert(CoordinationItem("here", until=2)), id="insert over one that is there"),
        pytest.param(Change(CoordinationItem, "here", _SET_TWO, _IS_TWO), id="change whose condition fails"),
        pytest.param(Change(CoordinationItem, "gone", _SET_TWO, CoordinationItem.until.does_not_exist()), id="change of none"),
        pytest.param(Upsert(CoordinationItem, "here", _SET_TWO, _IS_TWO), id="upsert whose condition fails"),
        pytest.param(Remove(CoordinationItem, "here", _IS_TWO), id="remove whose condition fails"),
        pytest.param(Remove(CoordinationItem, "gone", CoordinationItem.until.does_not_exist()), id="remove of none"),
        pytest.param(Guard(CoordinationItem, "here", _IS_TWO), id="guard that does not hold"),
        pytest.param(Guard(CoordinationItem, "gone", CoordinationItem.until.does_not_exist()), id="guard on none"),
    ],
)
@pytest.mark.parametrize("before", [0, 2])
def test_a_step_whose_condition_fails_is_named_and_nothing_is_written(step: Step, before: int) -> None:
    others = [Upsert(CoordinationItem, f"other-{number}", _SET_TWO, CoordinationItem.until.does_not_exist()) for number in range(3)]

    with pytest.raises(ConditionFailed) as caught:
        transact([*others[:before], step, *others[before:]])

    assert caught.value.position == before
    assert caught.value.step is step
    assert (_until("here"), _until("gone"), _until("other-0"), _until("other-2")) == (1, None, None, None)


def test_of_several_failures_the_first_in_the_order_of_the_call_is_named() -> None:
    """The engine gives its reasons in the order in which PynamoDB sends: checks, deletes, puts, updates."""
    change = Change(CoordinationItem, "gone", _SET_TWO, _IS_ONE)
    insert = Insert(CoordinationItem("here", until=2))
    transact([Insert(CoordinationItem("third", until=1)), Insert(CoordinationItem("fourth", until=1))])
    remove = Remove(CoordinationItem, "third", _IS_TWO)
    guard = Guard(CoordinationItem, "fourth", _IS_TWO)

    orders: list[list[Step]] = [[change, insert, remove, guard], [insert, guard, change, remove], [remove, change, guard, insert]]
    for steps in orders:
        with pytest.raises(ConditionFailed) as caught:
            transact(steps)
        assert caught.value.step is steps[0]


def test_a_lone_update_makes_no_torso() -> None:
    for condition in (CoordinationItem.until.does_not_exist(), _IS_ONE):
        with pytest.raises(ConditionFailed):
            update_one(Change(CoordinationItem, "gone", _SET_TWO, condition))

    assert _until("gone") is None
    after = update_one(Change(CoordinationItem, "here", _SET_TWO, _IS_ONE))
    assert isinstance(after, CoordinationItem)
    assert after.until == 2


def test_collisions_are_tried_again_until_everybody_has_written() -> None:
    """Sixteen transactions on the same two items at the same moment collide; that is nobody's failed condition."""

    holders = CoordinationItem.holders

    def work(number: int) -> None:
        add = [holders.add({f"w{number}"})]
        transact([Upsert(CoordinationItem, name, add, ~holders.contains("nobody")) for name in ("one", "two")])

    outcomes = at_once([partial(patient, partial(work, number)) for number in range(THREADS)])

    assert lost(outcomes) == []
    for name in ("one", "two"):
        item = get_item(CoordinationItem, name)
        assert item is not None
        assert item.holders == {f"w{number}" for number in range(THREADS)}


def test_of_sixteen_changes_of_one_version_one_is_written() -> None:
    outcomes = at_once([partial(transact, [Change(CoordinationItem, "here", _SET_TWO, _IS_ONE)])] * THREADS)

    losers = lost(outcomes)
    assert len(losers) == THREADS - 1
    assert all(isinstance(error, ConditionFailed) for error in losers), losers
    assert _until("here") == 2
