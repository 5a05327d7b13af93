"""Runs: ordered once, performed by one at a time, and taken up again when a performer dies."""

from __future__ import annotations

from datetime import timedelta

import boto3
import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound, PortalError, Unavailable
from accessportal.sandboxes import models, operations, queries
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.operations import runs
from accessportal.sandboxes.states import POOL_ENTITY, Run, RunKind, RunState, Status
from accessportal.sandboxes.store import runs as store
from accessportal.upstream.provider import Provider
from tests.sandboxes.conftest import MALLORY, OLGA, Pool, Upstream, order_in_between

pytestmark = pytest.mark.usefixtures("asked_of_the_queue")


def order(pool: Pool, kind: RunKind = RunKind.CLEANUP) -> Run:
    return operations.order_run(kind=kind, actor=OLGA, now=pool.clock.now())


def perform(pool: Pool, run: Run, provider: Provider | None) -> Run:
    return operations.perform_run(run_id=run.run_id, provider=provider, clock=pool.clock)


def sweep(pool: Pool, provider: Provider | None) -> tuple[Run, ...]:
    return operations.perform_due_runs(provider=provider, clock=pool.clock)


def test_operators_order_and_nobody_else(pool: Pool) -> None:
    with pytest.raises(NotAllowed, match="operators"):
        operations.order_run(kind=RunKind.SYNC, actor=MALLORY, now=pool.clock.now())
    assert queries.open_runs().items == ()

    run = order(pool, RunKind.SYNC)

    assert (run.state, run.ordered_by) == (RunState.QUEUED, OLGA.name)
    assert queries.get_run(run_id=run.run_id) == run
    assert queries.open_runs().items == (run,)
    with pytest.raises(NotFound, match="week"):
        queries.get_run(run_id="no-such-run")


def test_an_order_asks_for_the_task(pool: Pool, asked_of_the_queue: list[tuple[str, dict[str, str]]]) -> None:
    run = order(pool)

    assert asked_of_the_queue == [("run_sandbox_work", {"run_id": run.run_id})]


def test_one_that_waits_is_the_answer_to_the_next_order(upstream: Upstream) -> None:
    pool = upstream.pool
    first = order(pool)
    assert order(pool) == first
    other = order(pool, RunKind.SYNC)
    assert other.run_id != first.run_id

    perform(pool, first, upstream.provider)

    again = order(pool)
    assert again.run_id != first.run_id
    assert {run.run_id for run in queries.open_runs().items} == {again.run_id, other.run_id}


def test_two_orders_at_the_same_moment_are_one_run(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other order is written after this one has seen that none waits."""
    others: list[Run] = []
    read = store.last_run

    def meanwhile(kind: RunKind) -> tuple[str, int]:
        seen = read(kind)
        if not others:
            others.append(Run("", kind, RunState.QUEUED, "", pool.clock.now()))
            others[0] = order(pool)
        return seen

    monkeypatch.setattr(store, "last_run", meanwhile)

    assert order(pool) == others[0]
    assert queries.open_runs().items == (others[0],)


def test_the_chain_of_the_pool_tells_who_ordered(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when another event of the pool is written right before this order's; an order that is not needed tells nothing."""
    order_in_between(pool, RunKind.SYNC, monkeypatch)
    run = order(pool)
    assert order(pool) == run

    told = audit.history(POOL_ENTITY, newest_first=False).items
    assert [(one.action, one.actor, one.data["run_kind"]) for one in told] == [
        ("sandbox.run_ordered", OLGA.name, "sync"),
        ("sandbox.run_ordered", OLGA.name, "cleanup"),
    ]
    assert told[-1].data["run_id"] == run.run_id
    entity, version, head = queries.pool_head()
    assert (entity, version, head) == (POOL_ENTITY, 2, told[-1].hash)


def test_an_order_during_a_run_is_another_run(upstream: Upstream) -> None:
    """What was given back after the run began might have been missed by it."""
    pool = upstream.pool
    upstream.fill(1)
    upstream.given_back()
    first, others = order(pool), []

    def meanwhile(call: str) -> None:
        if call.startswith("DELETE"):
            others.append(order(pool))

    upstream.adapter.before = meanwhile
    assert perform(pool, first, upstream.provider).state is RunState.DONE

    assert others[0].run_id != first.run_id
    assert queries.open_runs().items == (others[0],)


def test_a_cleanup_expires_and_cleans_and_says_what(upstream: Upstream) -> None:
    pool = upstream.pool
    over, back, _ = upstream.fill(3)
    pool.take("track-1", name_prefix=over.name, seconds=60)
    upstream.later(60 + 300)
    pool.take("track-2", name_prefix=back.name)
    pool.release(back, "track-2")
    run = order(pool)

    done = perform(pool, run, upstream.provider)

    assert (done.state, done.error, done.ended_at) == (RunState.DONE, "", pool.clock.now().replace(microsecond=0))
    assert (done.report["expired"], done.report["cleaned"], done.report["failed"]) == (1, 2, 0)
    assert queries.get_run(run_id=run.run_id) == done
    assert (queries.open_runs().items, queries.ended_runs().items) == ((), (done,))
    assert {one.status for one in pool.everything()} == {Status.AVAILABLE}


def test_a_sync_says_what_it_found_and_the_brake_fails_it(upstream: Upstream) -> None:
    pool = upstream.pool
    upstream.fill(20)
    upstream.twin.create("ext-new", name="lab-new")
    done = perform(pool, order(pool, RunKind.SYNC), upstream.provider)
    assert (done.state, done.report["listed"], done.report["new"]) == (RunState.DONE, 21, 1)

    upstream.later()
    upstream.set(list_share=0)
    failed = perform(pool, order(pool, RunKind.SYNC), upstream.provider)

    assert failed.state is RunState.FAILED
    assert "list is empty" in failed.error
    assert failed.report["known"] == 21
    assert {one.status for one in pool.everything()} == {Status.AVAILABLE}


def test_a_provider_that_is_down_fails_a_run(upstream: Upstream) -> None:
    upstream.fill(1)
    upstream.given_back()
    upstream.set(fail_list=1, fail_get=1, fail_delete=1)
    for kind in RunKind:
        failed = perform(upstream.pool, order(upstream.pool, kind), upstream.provider)
        assert (failed.state, bool(failed.error)) == (RunState.FAILED, True)
        assert queries.get_run(run_id=failed.run_id) == failed


def test_without_a_provider_a_run_fails_but_what_is_over_ends(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take(seconds=60).sandbox
    pool.clock.advance(60 + 300)

    cleanup, sync = perform(pool, order(pool), None), perform(pool, order(pool, RunKind.SYNC), None)

    assert {run.state for run in (cleanup, sync)} == {RunState.FAILED}
    assert "PORTAL_SANDBOX_PROVIDER_URL" in cleanup.error
    assert cleanup.report["expired"] == 1
    assert pool.status_of(lent) is Status.PENDING_DELETION


def test_two_performers_of_one_run(upstream: Upstream) -> None:
    pool = upstream.pool
    upstream.fill(1)
    upstream.given_back()
    run, others = order(pool), []

    def meanwhile(call: str) -> None:
        if call.startswith("DELETE"):
            assert sweep(pool, upstream.provider) == ()
            with pytest.raises(Conflict, match="performing") as refused:
                perform(pool, run, upstream.provider)
            others.append(refused.value.code)

    upstream.adapter.before = meanwhile
    done = perform(pool, run, upstream.provider)

    assert others == ["run_held"]
    assert (done.state, done.report["cleaned"]) == (RunState.DONE, 1)
    assert perform(pool, run, upstream.provider) == done
    assert upstream.twin.deletions == ["ext-000"]


def test_two_performers_that_begin_at_the_same_moment(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = order(pool)
    others: list[Run] = []
    begin = store.begin_run

    def meanwhile(*args: Run, **kwargs: object) -> Run:
        if not others:
            others.append(run)
            others[0] = perform(pool, run, None)
        return begin(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "begin_run", meanwhile)
    with pytest.raises(Conflict, match="taken this run up"):
        perform(pool, run, None)

    assert queries.get_run(run_id=run.run_id) == others[0]


class Died(BaseException):
    """The worker was killed."""


@pytest.mark.parametrize("step", ["begin_run", "expire", "clean", "end_run"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_whose_performer_dies_is_taken_up_by_the_sweep(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, step: str, moment: str
) -> None:
    pool = upstream.pool
    over, back, _ = upstream.fill(3)
    pool.take("track-1", name_prefix=over.name, seconds=60)
    upstream.later(60 + 300)
    pool.take("track-2", name_prefix=back.name)
    pool.release(back, "track-2")
    run = order(pool)
    place = store if step.endswith("_run") else runs
    real = getattr(place, step)

    def dies(*args: object, **kwargs: object) -> None:
        if moment == "after":
            real(*args, **kwargs)
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(place, step, dies)
        with pytest.raises(Died):
            perform(pool, run, upstream.provider)

    is_begun = (step, moment) != ("begin_run", "before")
    is_ended = (step, moment) == ("end_run", "after")
    # As long as the first might live, nobody else begins.
    assert len(sweep(pool, upstream.provider)) == (0 if is_begun else 1)
    pool.clock.advance(runs.HOLD.total_seconds() + 1)
    assert len(sweep(pool, upstream.provider)) == (1 if is_begun and not is_ended else 0)

    assert queries.get_run(run_id=run.run_id).state is RunState.DONE
    assert {one.status for one in pool.everything()} == {Status.AVAILABLE}
    assert sorted(upstream.twin.deletions) == [over.external_id, back.external_id]
    assert queries.open_runs().items == ()
    pool.check_whole()


def test_one_that_was_thought_dead_does_not_end_the_run_of_another(upstream: Upstream) -> None:
    """It stands still in the middle for longer than its hold."""
    pool = upstream.pool
    upstream.fill(1)
    upstream.given_back()
    run = order(pool)
    others: list[Run] = []

    def meanwhile(call: str) -> None:
        if call.startswith("DELETE"):
            upstream.adapter.before = lambda _call: None
            pool.clock.advance(runs.HOLD.total_seconds() + 1)
            others.extend(sweep(pool, upstream.provider))

    upstream.adapter.before = meanwhile
    with pytest.raises(Conflict, match="taken this run up"):
        perform(pool, run, upstream.provider)

    assert [queries.get_run(run_id=run.run_id)] == others
    assert others[0].state is RunState.DONE


def test_one_that_takes_every_performer_down_is_given_up(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = upstream.pool
    run = order(pool)

    def dies(**_kwargs: object) -> None:
        raise Died

    monkeypatch.setattr(runs, "expire", dies)
    for _ in range(24 * 4):
        with pytest.raises(Died):
            sweep(pool, upstream.provider)
        pool.clock.advance(runs.HOLD.total_seconds() + 1)

    (given_up,) = sweep(pool, upstream.provider)
    assert (given_up.run_id, given_up.state) == (run.run_id, RunState.FAILED)
    assert "never ended" in given_up.error


def test_one_that_waited_for_days_is_performed_and_not_given_up(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker was down; and its first performer after that dies, too."""
    pool = upstream.pool
    run = order(pool)
    upstream.later(timedelta(days=3).total_seconds())

    def dies(**_kwargs: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(runs, "expire", dies)
        with pytest.raises(Died):
            sweep(pool, upstream.provider)
    upstream.later(runs.HOLD.total_seconds() + 1)

    (done,) = sweep(pool, upstream.provider)
    assert (done.run_id, done.state, done.error) == (run.run_id, RunState.DONE, "")


def test_an_error_of_the_store_is_no_end_of_a_run_that_it_hides(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = order(pool)

    def fails(*_args: object, **_kwargs: object) -> None:
        raise PortalError("The store did not answer.", code="store_unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(store, "end_run", fails)
        with pytest.raises(PortalError):
            perform(pool, run, None)

    assert queries.get_run(run_id=run.run_id).state is RunState.RUNNING
    pool.clock.advance(runs.HOLD.total_seconds() + 1)
    assert [one.state for one in sweep(pool, None)] == [RunState.FAILED]


def test_runs_are_remembered_for_a_week(pool: Pool) -> None:
    ended = perform(pool, order(pool), None)
    pool.clock.advance(timedelta(days=7).total_seconds() - 1)
    waiting = order(pool)
    assert operations.forget_old(now=pool.clock.now()) == 0
    pool.clock.advance(2)

    assert operations.forget_old(now=pool.clock.now()) == 1
    assert operations.forget_old(now=pool.clock.now()) == 0

    with pytest.raises(NotFound):
        queries.get_run(run_id=ended.run_id)
    assert queries.open_runs().items == (waiting,)
    assert order(pool) == waiting


def test_the_seeds_programs_never_meet_runs_and_counts(pool: Pool) -> None:
    pool.fill(1)
    order(pool)
    operations.count(clock=pool.clock)

    assert [one.external_id for one in pool.everything()] == ["ext-000"]
    assert queries.next_return_at(now=pool.clock.now()) is None


def test_a_run_that_can_not_be_read_is_named_when_the_others_are_performed(upstream: Upstream) -> None:
    run = order(upstream.pool)
    client = boto3.client("dynamodb", region_name="eu-central-1")
    pk, sk = models.run_key(run.run_id)
    table = SandboxItem.Meta.table_name
    item = client.get_item(TableName=table, Key={"PK": {"S": pk}, "SK": {"S": sk}})["Item"]
    client.put_item(TableName=table, Item={**item, "PK": {"S": models.run_key("odd")[0]}, "state": {"S": "odd"}})

    with pytest.raises(Unavailable, match="odd"):
        sweep(upstream.pool, upstream.provider)

    assert queries.get_run(run_id=run.run_id).state is RunState.DONE
