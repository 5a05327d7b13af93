"""Loading rules on a real engine: several loads at once, and readers meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict
from accessportal.rules import queries, store
from accessportal.rules.models import CURRENT, SET_ENTITY, SET_KEY, RuleItem
from accessportal.store.reading import get_item
from tests.rules.stories import NOW, OLGA, many, rules

pytestmark = pytest.mark.usefixtures("engine")
LOADS = 8


@pytest.mark.parametrize("count", [store.CHANGES_PER_WRITE, 100], ids=["one write", "several writes"])
def test_of_many_loads_at_once_one_wins_and_readers_see_whole_sets(count: int) -> None:
    store.put_in_force(store.current_set(), rules(), actor=OLGA, now=NOW)
    base = store.current_set()
    wanted = [many(count, longest=f"{hours + 1}h") for hours in range(LOADS)]
    start, done = Barrier(LOADS), Event()

    def load(number: int) -> bool:
        start.wait()
        try:
            store.put_in_force(base, wanted[number], actor=OLGA, now=NOW)
        except Conflict:
            return False
        return True

    def read() -> set[tuple[str, ...]]:
        seen = set()
        while not done.is_set():
            seen.add(tuple(rule.hash for rule in queries.current_rules()))
        return seen

    with ThreadPoolExecutor(LOADS + 2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        won = list(pool.map(load, range(LOADS)))
        done.set()
        seen = set().union(*(reader.result() for reader in readers))

    assert won.count(True) <= 1
    winner = wanted[won.index(True)] if any(won) else None
    if winner is None:
        # Loads of several writes can stop each other; the next one finishes.
        assert count > store.CHANGES_PER_WRITE
        winner = wanted[0]
        store.put_in_force(store.current_set(), winner, actor=OLGA, now=NOW)
    in_force = tuple(rule.hash for rule in queries.current_rules())
    assert in_force == tuple(rule.hash for rule in winner)
    assert seen <= {tuple(rule.hash for rule in base.rules), in_force}
    for name in ("rule-0", f"rule-{count - 1}"):
        head = get_item(RuleItem, name, CURRENT)
        assert head is not None
        assert not audit.check_head(f"rule#{name}", version=int(head.current_version or 0), audit_head=head.audit_head or "")
    pointer = get_item(RuleItem, SET_KEY, CURRENT)
    assert pointer is not None
    assert not audit.check_head(SET_ENTITY, version=int(pointer.current_version or 0), audit_head=pointer.audit_head or "")
