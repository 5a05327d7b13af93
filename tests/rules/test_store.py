"""What is in force: versions, history, events, and loads that are broken off or collide."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import boto3
import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import Unreadable
from accessportal.rules import queries, store
from accessportal.rules.loading import hash_of
from accessportal.rules.models import CURRENT, SET_ENTITY, SET_KEY, RuleItem
from accessportal.rules.states import Rule, RuleSet
from accessportal.store.reading import get_item
from accessportal.store.transactions import Step, transact
from tests.rules.stories import HOUR, NOW, OLGA, many, rules

pytestmark = pytest.mark.usefixtures("tables")


def load(wanted: Sequence[Rule], base: RuleSet | None = None) -> RuleSet:
    return store.put_in_force(base or store.current_set(), wanted, actor=OLGA, now=NOW)


def contents(found: Sequence[Rule]) -> list[tuple[str, str]]:
    return [(rule.name, rule.hash) for rule in found]


def forget_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process would see it."""
    monkeypatch.setattr(store, "_cached", None)


def assert_chains_are_whole(names: Sequence[str]) -> None:
    for name in names:
        head = get_item(RuleItem, name, CURRENT)
        assert head is not None
        assert not audit.check_head(f"rule#{name}", version=int(head.current_version or 0), audit_head=head.audit_head or "")
    pointer = get_item(RuleItem, SET_KEY, CURRENT)
    assert pointer is not None
    assert not audit.check_head(SET_ENTITY, version=int(pointer.current_version or 0), audit_head=pointer.audit_head or "")


def test_nothing_loaded_is_no_rules() -> None:
    assert store.current_set() == RuleSet(version=0, rules=())
    assert queries.current_rules() == ()
    assert queries.find_rule(name="prod-readonly") is None
    assert queries.rule_history(name="prod-readonly") == ()


def test_rules_come_back_as_they_were_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(rules())
    forget_cache(monkeypatch)
    found = store.current_set()
    assert found == loaded
    assert (found.version, found.applied_by, found.applied_at) == (1, "olga@example.com", NOW)
    assert [dataclasses.replace(rule, version=0, applied_at=None, applied_by="") for rule in found.rules] == list(rules())
    assert {rule.version for rule in found.rules} == {1}


def test_a_changed_rule_gets_a_version_and_the_others_keep_theirs() -> None:
    load(rules())
    changed = rules()
    shorter = dataclasses.replace(changed[2], max_duration_seconds=2 * HOUR)
    changed = (*changed[:2], dataclasses.replace(shorter, hash=hash_of(shorter)), *changed[3:])
    found = load(changed)
    assert found.version == 2
    assert [rule.version for rule in found.rules] == [1, 1, 2, 1, 1, 1]
    assert [(rule.version, rule.max_duration_seconds) for rule in queries.rule_history(name="payments-dev")] == [
        (2, 2 * HOUR),
        (1, 4 * HOUR),
    ]
    assert_chains_are_whole([rule.name for rule in changed])
    actions = [event.action for event in audit.history("rule#payments-dev", newest_first=False).items]
    assert actions == ["rule.added", "rule.changed"]


def test_a_removed_rule_keeps_its_history_and_may_come_back() -> None:
    load(rules())
    load(rules()[1:])
    assert queries.find_rule(name="no-security") is None
    assert [(rule.version, rule.is_removed) for rule in queries.rule_history(name="no-security")] == [(2, True), (1, False)]
    found = load(rules())
    assert (found.rules[0].name, found.rules[0].version, found.rules[0].is_removed) == ("no-security", 3, False)
    assert_chains_are_whole(["no-security"])
    events = audit.history("rule#no-security", newest_first=False).items
    assert [event.action for event in events] == ["rule.added", "rule.removed", "rule.added"]


def _never(one: Unreadable) -> None:
    raise AssertionError(one)


def test_every_rule_that_there_ever_was_tells_where_its_chain_ends() -> None:
    load(rules())
    load(rules()[1:])
    found = {one.entity: one for one in queries.every_versions(past=_never)}
    assert set(found) == {"ruleset#current", *(f"rule#{rule.name}" for rule in rules())}
    assert (found["rule#no-security"].version, found["rule#no-security"].is_removed) == (2, True)
    assert found["rule#no-security"].versions[1] == found["rule#no-security"].versions[2] == rules()[0].hash
    assert found["ruleset#current"].versions[1].split() == [rule.name for rule in rules()]
    assert all(one == queries.find_versions(entity) for entity, one in found.items())
    assert not any(audit.check_head(name, version=one.version, audit_head=one.audit_head) for name, one in found.items())
    assert queries.find_versions("rule#never") is None


def test_another_order_is_another_set() -> None:
    load(rules())
    found = load(tuple(reversed(rules())))
    assert [rule.name for rule in found.rules] == [rule.name for rule in reversed(rules())]
    assert [rule.position for rule in found.rules] == [0, 1, 2, 3, 4, 5]
    assert {rule.version for rule in found.rules} == {1}
    newest = audit.history(SET_ENTITY, newest_first=True).items[0]
    assert (newest.action, newest.actor) == ("rules.applied", "olga@example.com")
    assert newest.data["order"] == [rule.name for rule in reversed(rules())]


def test_the_table_is_as_the_data_model_says() -> None:
    load(rules())
    client = boto3.client("dynamodb", region_name="eu-central-1")
    table = client.describe_table(TableName="rules-AccessRules")["Table"]
    assert [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]] == [("rule_name", "HASH"), ("version", "RANGE")]
    for version in ("0", "1"):
        item = client.get_item(TableName="rules-AccessRules", Key={"rule_name": {"S": "prod-readonly"}, "version": {"N": version}})["Item"]
        assert item["effect"] == {"S": "allow"}
        assert item["targets"]["M"]["tags"] == {"M": {"env": {"L": [{"S": "prod"}, {"S": "live"}]}}}
        assert item["duration"] == {"M": {"default": {"N": "3600"}, "min": {"N": "60"}, "max": {"N": "28800"}}}


def test_reading_costs_one_small_read_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    load(rules())
    reads: list[Any] = []

    def counted(*key: Any) -> Any:
        reads.append(key)
        return get_item(*key)

    monkeypatch.setattr(store, "get_item", counted)
    monkeypatch.setattr(store, "_read_items", lambda keys: pytest.fail("read the rules again"))
    for _ in range(3):
        queries.current_rules()
    assert reads == [(RuleItem, SET_KEY, CURRENT)] * 3


def test_another_process_sees_a_change_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here = load(rules())
    load(rules()[:2])
    monkeypatch.setattr(store, "_cached", here)
    assert len(queries.current_rules()) == 2


@pytest.mark.parametrize("damage", ["missing", "changed", "reworded", "no list"])
def test_a_set_that_can_not_be_read_whole_is_an_error(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    load(rules())
    client = boto3.client("dynamodb", region_name="eu-central-1")
    name = SET_KEY if damage == "no list" else "no-security"
    key = {"rule_name": {"S": name}, "version": {"N": "1"}}
    if damage in {"changed", "reworded"}:
        # "reworded": another rule under the hash of the old one.
        client.update_item(
            TableName="rules-AccessRules",
            Key=key,
            UpdateExpression="SET #a = :a",
            ExpressionAttributeNames={"#a": "hash" if damage == "changed" else "permission_sets"},
            ExpressionAttributeValues={":a": {"S": "x"} if damage == "changed" else {"L": [{"S": "ReadOnlyAccess"}]}},
        )
    else:
        client.delete_item(TableName="rules-AccessRules", Key=key)
    forget_cache(monkeypatch)
    with pytest.raises(Unavailable) as caught:
        queries.current_rules()
    assert caught.value.code == "rules_incomplete"


@pytest.mark.parametrize("count", [store.CHANGES_PER_WRITE, store.CHANGES_PER_WRITE + 1])
def test_many_rules_are_put_in_force_together(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(steps: Sequence[Step]) -> None:
        sizes.append(len(steps))
        transact(steps)

    monkeypatch.setattr(store, "transact", counted)
    load(many(count))
    assert sizes == ([99] if count == store.CHANGES_PER_WRITE else [96, 6])
    assert [rule.name for rule in queries.current_rules()] == [rule.name for rule in many(count)]
    assert_chains_are_whole(["rule-0", f"rule-{count - 1}"])


class Crash(Exception):
    """The process is gone."""


class CrashingWrites:
    """Lets a number of writes through, then dies right before or right after the next one."""

    def __init__(self, *, after_writes: int, is_written: bool) -> None:
        self._left = after_writes
        self._is_written = is_written

    def __call__(self, steps: Sequence[Step]) -> None:
        if self._left:
            self._left -= 1
            transact(steps)
            return
        if self._is_written:
            transact(steps)
        raise Crash


STEPS = 4
"""Writes of a load of 10 or 11 changes at 3 a write."""


@pytest.fixture
def small_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes are split as for hundreds of rules, without their number."""
    monkeypatch.setattr(store, "CHANGES_PER_WRITE", 3)


@pytest.mark.usefixtures("small_writes")
@pytest.mark.parametrize("is_first", [True, False], ids=["first load", "later load"])
@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("after_writes", range(STEPS))
def test_a_crash_at_any_write_leaves_one_whole_set_and_loading_again_heals(
    after_writes: int, is_written: bool, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = () if is_first else many(8, longest="2h")
    wanted = many(10) if is_first else (*many(7), *rules()[:3])
    if old:
        load(old)
    before = contents(store.current_set().rules)
    with monkeypatch.context() as patch:
        patch.setattr(store, "transact", CrashingWrites(after_writes=after_writes, is_written=is_written))
        with pytest.raises(Crash):
            load(wanted)
    forget_cache(monkeypatch)
    seen = contents(queries.current_rules())
    assert seen == (contents(wanted) if after_writes == STEPS - 1 and is_written else before)

    load(wanted)
    assert contents(queries.current_rules()) == contents(wanted)
    names = {rule.name for rule in (*old, *wanted)}
    assert_chains_are_whole(sorted(names))
    for name in names:
        newest = [rule.version for rule in queries.rule_history(name=name)]
        assert newest == list(range(len(newest), 0, -1))
        assert len(newest) <= 2


@pytest.mark.usefixtures("small_writes")
def test_a_load_given_up_after_a_crash_does_not_come_in_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    load(many(7))
    with monkeypatch.context() as patch:
        patch.setattr(store, "transact", CrashingWrites(after_writes=1, is_written=False))
        with pytest.raises(Crash):
            load(many(7, longest="2h"))
    load(many(6))
    assert {rule.max_duration_seconds for rule in queries.current_rules()} == {8 * HOUR}
    assert len(queries.current_rules()) == 6
    assert_chains_are_whole([rule.name for rule in many(7)])


@pytest.mark.parametrize("base", [0, 1])
def test_of_two_loads_at_once_one_wins_and_the_other_is_told(base: int) -> None:
    if base:
        load(rules())
    seen_by_both = store.current_set()
    load(rules()[:3], seen_by_both)
    with pytest.raises(Conflict) as caught:
        load(many(3), seen_by_both)
    assert caught.value.code == "rules_changed"
    assert [rule.name for rule in queries.current_rules()] == [rule.name for rule in rules()[:3]]
    assert queries.rule_history(name="rule-0") == ()


@pytest.mark.usefixtures("small_writes")
def test_a_long_load_that_has_lost_stops_at_its_next_write() -> None:
    load(rules())
    seen_by_both = store.current_set()
    load(rules()[:3], seen_by_both)
    with pytest.raises(Conflict):
        load(many(10), seen_by_both)
    assert queries.rule_history(name="rule-0") == ()
    assert len(queries.current_rules()) == 3


def test_an_answer_that_was_lost_is_not_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client library repeats a write whose answer did not come; the second time its own condition fails."""

    def twice(steps: Sequence[Step]) -> None:
        transact(steps)
        transact(steps)

    monkeypatch.setattr(store, "transact", twice)
    assert len(load(rules()).rules) == 6
    assert store.current_set().version == 1


def test_an_engine_that_does_not_answer_is_said() -> None:
    boto3.client("dynamodb", region_name="eu-central-1").delete_table(TableName="rules-AccessRules")
    with pytest.raises(Unavailable):
        queries.current_rules()
    with pytest.raises(Unavailable):
        queries.rule_history(name="a")
