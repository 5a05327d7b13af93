"""The outbox: every event leaves for the topic at least once, those of one entity in their order.

OutboxIndex only tells where to look, because it lags: what is sent is read strongly from the entity's own chain. An event is
sent when the one before it is marked as published, and marked when the topic has it. So at every moment the published events
of an entity are the beginning of its chain, whoever publishes, however many at once, and wherever one of them dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from accessportal.audit import config, policy, store
from accessportal.audit.messages import message_of
from accessportal.audit.states import AuditEvent, PublishReport, Send
from accessportal.aws import sns
from accessportal.aws.errors import OutsideError, Transient
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.pages import every
from accessportal.kernel.runs import Failure, Run
from accessportal.store import coordination
from accessportal.store.restores import epoch_of, every_restore

_PAGE = 100
_CHAIN_PAGE = 25
_LEASE = timedelta(seconds=60)
_INSTANT = timedelta(milliseconds=1)
_PAUSES_SECONDS = (1.0, 3.0)


def topic_sender(topic_arn: str) -> Send | None:
    """What hands batches to the topic; ``None`` when no topic is set."""
    return partial(sns.publish_batch, topic_arn) if topic_arn else None


@dataclass
class _Run(Run):
    """What one run may still do, and what it has done."""

    send: Send
    clock: Clock
    until: datetime
    most: int | None
    told: Callable[[int], None]
    published: int = 0
    repeated: int = 0
    left_to_others: int = 0
    stopped: str = ""

    @property
    def left(self) -> int | None:
        return None if self.most is None else max(0, self.most - self.published - self.repeated)

    @property
    def is_over(self) -> bool:
        return bool(self.stopped) or self.left == 0 or self.clock.now() >= self.until

    def keep_back(self, event: AuditEvent, why: str) -> None:
        """Its entity's events wait for this one."""
        self.failures.append(Failure(f"{event.entity}, event {event.sequence}", why))


def publish_outbox(
    *,
    send: Send | None,
    limit: int | None = None,
    limit_seconds: float = 50.0,
    told: Callable[[int], None] = lambda _published: None,
    actor: Actor,
    clock: Clock,
) -> PublishReport:
    """Publish what waits, oldest first, up to ``limit`` events and ``limit_seconds``; ``told`` hears how many after each batch. May run
    beside itself. An event that SNS refuses keeps the later ones of its entity back, and no others; one that was sent and could not be
    marked is sent once more by the next run."""
    policy.may_publish(actor).require()
    if send is None:
        return PublishReport(has_topic=False)
    run = _Run(send=send, clock=clock, until=clock.now() + timedelta(seconds=limit_seconds), most=limit, told=told)
    shards = store.outbox_shards()
    # Each minute begins with another one, so that a shard that takes all the time does not starve the others.
    first = int(clock.now().timestamp() // 60) % len(shards)
    is_read = [_publish_by_itself(shard, run) for shard in (*shards[first:], *shards[:first])]
    return PublishReport(
        has_topic=True,
        published=run.published,
        repeated=run.repeated,
        failures=run.failed,
        left_to_others=run.left_to_others,
        stopped=run.stopped,
        is_finished=all(is_read),
    )


@dataclass
class _Lease:
    """Saves two publishers from doing the same work. Order and completeness do not need it."""

    name: str
    clock: Clock
    until: datetime | None = None

    def is_held(self) -> bool:
        """Taken, or kept while less than half of it is left; false when somebody else has it."""
        now = self.clock.now()
        if self.until is not None and self.until - now > _LEASE / 2:
            return True
        free_at, until = (self.until or now) + _INSTANT, now + _LEASE
        self.until = until if self._is_free(free_at, until, now) else None
        return self.until is not None

    def _is_free(self, free_at: datetime, until: datetime, now: datetime) -> bool:
        return coordination.claim_watch(self.name, needed_until=free_at, until=until, longest=_LEASE, now=now)

    def leave(self) -> None:
        if self.until is None:
            return
        # Otherwise it ends by itself.
        with suppress(NoAnswer):
            coordination.leave_watch(self.name, until=self.until, now=self.clock.now())


def _publish_by_itself(shard: str, run: _Run) -> bool:
    """As :func:`_publish_shard`; one that the store does not answer for stops no other."""
    try:
        return _publish_shard(shard, run)
    except NoAnswer as error:
        run.fail(shard, error)
        return False


def _publish_shard(shard: str, run: _Run) -> bool:
    """Whether the shard was read to its end."""
    lease = _Lease(f"publish:{shard}", run.clock)
    seen: set[str] = set()
    cursor: str | None = None
    try:
        while not run.is_over:
            page = store.unpublished_page(shard, cursor=cursor, limit=_PAGE)
            if page.items and not lease.is_held():
                run.left_to_others += 1
                return False
            found: dict[str, int] = {}
            for event in page.items:
                if event.entity not in seen:
                    found[event.entity] = min(event.sequence, found.get(event.entity, event.sequence))
            seen |= found.keys()
            _publish_chains(found, lease, run)
            cursor = page.next_cursor
            if cursor is None:
                return not run.is_over
    finally:
        lease.leave()
    return False


def _publish_chains(found: dict[str, int], lease: _Lease, run: _Run) -> None:
    """The chains in step, one event of each at a time: a batch must not hold two of one entity, because it may fail in part."""
    chains = {entity: _unpublished(entity, seen=sequence) for entity, sequence in found.items()}
    while chains and not run.is_over and lease.is_held():
        upcoming = {entity: event for entity, chain in chains.items() if (event := next(chain, None)) is not None}
        arrived = _publish_round(list(upcoming.values()), run)
        chains = {entity: chains[entity] for entity in arrived}


def _unpublished(entity: str, *, seen: int) -> Iterator[AuditEvent]:
    """The events of ``entity`` from the first one that is not published, strongly read; one request when ``seen`` is that one."""
    before = seen - 1
    for event in _chain(entity, since=max(before, 1)):
        if event.sequence == before and not event.is_published:
            break
        if not event.is_published:
            yield event
    else:
        return
    for event in _chain(entity, since=_first_unpublished(entity, before)):
        if not event.is_published:
            yield event


def _first_unpublished(entity: str, sequence: int) -> int:
    """Walking back from ``sequence``, which is not published."""
    backwards = every(lambda cursor: store.history(entity, cursor=cursor, limit=_CHAIN_PAGE, newest_first=True, until=sequence))
    first = sequence
    for event in backwards:
        if event.is_published:
            break
        first = event.sequence
    return first


def _chain(entity: str, *, since: int) -> Iterator[AuditEvent]:
    return every(lambda cursor: store.history(entity, cursor=cursor, limit=_CHAIN_PAGE, newest_first=False, since=since))


def _publish_round(events: list[AuditEvent], run: _Run) -> set[str]:
    """The entities whose event is with the topic and marked."""
    arrived: set[str] = set()
    whole: dict[str, AuditEvent] = {}
    for event in events:
        if flaw := policy.flaw_of(event, config.current()):
            run.keep_back(event, f"not published, because it {flaw}")
        else:
            whole[event.event_id] = event
    # Read after the events: whatever was written after a restore is known to be so.
    restores = every_restore()
    for batch in sns.batches(message_of(event, epoch=epoch_of(event.at, restores)) for event in whole.values()):
        if run.is_over:
            break
        admitted = batch[: run.left]
        for message, error in zip(admitted, _sent(admitted, run), strict=False):
            event = whole[message.deduplication_id]
            if error is not None:
                run.keep_back(event, str(error))
                continue
            if store.mark_published(event):
                run.published += 1
            else:
                run.repeated += 1
            arrived.add(event.entity)
        run.told(run.published)
    return arrived


def _sent(batch: list[sns.Message], run: _Run) -> Sequence[OutsideError | None]:
    """What became of each message; nothing when the topic can't be reached, which ends the run."""
    for pause_seconds in (*_PAUSES_SECONDS, None):
        try:
            return run.send(batch)
        except Transient as error:
            if pause_seconds is None:
                run.stopped = str(error)
            else:
                run.clock.sleep(pause_seconds)
        except OutsideError as error:
            run.stopped = str(error)
            break
    return ()
