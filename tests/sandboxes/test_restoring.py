"""The pool after its table was restored to an earlier moment: fences go on above all former ones, and nobody gets what is not cleaned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.audit import operations as audit
from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import ledger, operations, queries
from accessportal.sandboxes.states import Sandbox, SettleReport, Status
from accessportal.sandboxes.store import keys
from accessportal.store.restores import Restore
from accessportal.upstream.provider import Provider
from tests.sandboxes.conftest import OLGA, Upstream


def begin(upstream: Upstream) -> Restore:
    now = upstream.pool.clock.now()
    return audit.begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)


def settle(upstream: Upstream, restored: Restore, *, provider: Provider | None = None) -> SettleReport:
    clock = upstream.pool.clock
    return operations.settle_restore(restored=restored, provider=provider or upstream.provider, actor=OLGA, clock=clock)


def confirm(upstream: Upstream, restored: Restore) -> int:
    clock = upstream.pool.clock
    cleaned = operations.clean_restored(restored=restored, actor=OLGA, clock=clock)
    audit.confirm_restore(restored, counts={}, actor=OLGA, now=clock.now())
    return cleaned


def problems(upstream: Upstream, *receipts: ledger.Receipt) -> list[str]:
    return [one.kind for one in queries.verify(receipts=receipts, slack_seconds=2, provider=upstream.provider).problems]


def row_of(upstream: Upstream, external_id: str) -> Sandbox:
    return next(one for one in upstream.pool.everything() if one.external_id == external_id)


def test_a_holder_whose_hand_over_still_stands_keeps_it_at_a_higher_fence(upstream: Upstream) -> None:
    upstream.fill(1)
    first = upstream.pool.take("track-1")
    asked_at = upstream.pool.clock.now().timestamp()
    receipt = ledger.Receipt("taken", "track-1", asked_at, asked_at, first.sandbox.sandbox_id, first.sandbox.fence, "track-1")
    upstream.later()

    restored = begin(upstream)
    report = settle(upstream, restored)

    assert (report.quarantined, report.added) == ((), 0)
    again = upstream.pool.take("track-1")
    assert (again.is_repeat, again.sandbox.fence) == (True, restored.epoch)
    assert problems(upstream, receipt) == []
    upstream.pool.release(again.sandbox, fence=restored.epoch)
    assert upstream.pool.status_of(first.sandbox) is Status.PENDING_DELETION
    assert problems(upstream, receipt) == []


def test_what_is_free_or_stale_is_lent_only_after_it_was_cleaned(upstream: Upstream) -> None:
    free, stale = upstream.fill(2)
    upstream.twin.lose("ext-001")
    for _ in range(3):
        upstream.later()
        upstream.sync(most_share=1)
    assert upstream.pool.status_of(stale) is Status.STALE
    restored = begin(upstream)

    report = settle(upstream, restored)

    assert set(report.quarantined) == {free.sandbox_id, stale.sandbox_id}
    assert settle(upstream, restored).quarantined == ()
    with pytest.raises(Unavailable, match="nothing is granted"):
        upstream.pool.take("track-1")
    assert confirm(upstream, restored) == 2
    assert upstream.pool.status_of(free) is Status.PENDING_DELETION
    upstream.clean()
    upstream.later()
    upstream.clean()
    lent = upstream.pool.take("track-1").sandbox
    assert (lent.sandbox_id, lent.fence) == (free.sandbox_id, restored.epoch + 1)
    assert problems(upstream) == []


def test_what_was_being_cleaned_is_deleted_again(upstream: Upstream) -> None:
    """Its deletion was sent before that moment: since then it was free, and perhaps lent, in a new life."""
    upstream.fill(1)
    upstream.set(reset_seconds=600)
    given_back = upstream.given_back()
    upstream.clean()
    assert upstream.pool.now_of(given_back).delete_sent_at is not None
    upstream.later(900)
    restored = begin(upstream)
    settle(upstream, restored)
    deletions = len(upstream.twin.deletions)

    upstream.clean()

    assert upstream.pool.status_of(given_back) is Status.PENDING_DELETION
    assert len(upstream.twin.deletions) == deletions + 1


def test_what_the_table_lacks_comes_in_to_be_cleaned_with_a_fence_that_nobody_had(upstream: Upstream) -> None:
    upstream.fill(1)
    upstream.twin.create("ext-later", name="lab-later")
    restored = begin(upstream)

    assert settle(upstream, restored).added == 1

    later = row_of(upstream, "ext-later")
    assert (later.status, later.fence) == (Status.PENDING_DELETION, restored.epoch)
    confirm(upstream, restored)
    upstream.twin.create("ext-new", name="lab-new")
    upstream.sync()
    new = row_of(upstream, "ext-new")
    assert (new.status, new.fence) == (Status.AVAILABLE, restored.epoch)


def test_the_provider_tells_of_a_hand_over_that_the_table_does_not_know(upstream: Upstream) -> None:
    """Also without a restore: an older row that never noted a life gets it with the next look, and later ones differ."""
    (sandbox,) = upstream.fill(1)
    assert sandbox.generation
    lent = upstream.pool.take("track-1").sandbox
    assert problems(upstream) == []
    upstream.provider.delete_sandbox("ext-000")

    assert problems(upstream) == ["behind"]
    restored = begin(upstream)
    assert settle(upstream, restored).quarantined == (lent.sandbox_id,)
    assert "the provider has reset it since then" in upstream.pool.now_of(lent).quarantine_reason
    assert keys.get_key("track-1") is not None
    assert queries.find_by_key(key="track-1") is None


def test_a_row_without_a_life_gets_it_with_the_next_look(upstream: Upstream) -> None:
    upstream.twin.create("ext-old", name="lab-old")
    old = upstream.pool.add("ext-old")
    assert old.generation == ""
    upstream.later()

    upstream.sync()

    assert upstream.pool.now_of(old).generation
    upstream.provider.delete_sandbox("ext-old")
    assert problems(upstream) == ["behind"]


def test_a_provider_that_can_not_be_asked_is_a_problem_and_no_silence(upstream: Upstream) -> None:
    upstream.fill(1)
    upstream.set(fail_list=1)

    assert problems(upstream) == ["unread"]
