"""The few figures worth an alarm, read when asked for. No process keeps a count of its own, so any web process may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from accessportal.access_requests import queries as requests
from accessportal.audit import queries as audit
from accessportal.catalog import queries as catalog
from accessportal.kernel.actors import system
from accessportal.kernel.moments import furthest
from accessportal.observe import health, heartbeats
from accessportal.store.restores import held_restore

log = structlog.get_logger(__name__)

# More than this many stuck requests is the same alarm; counting on would read for ever when it is worst.
STUCK_COUNTED_TO = 200


class PortalCollector(Collector):
    """``now`` decides what is stuck. A family whose backend does not answer is told to be down, and the others are told."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("accessportal_metrics_family_up", "0 when figures are left out: they could not be read.", labels=["family"])
        for name, family in FAMILIES.items():
            found = self._read(name, family)
            yield from found or ()
            up.add_metric([name], float(found is not None))
        yield up

    def _read(self, name: str, family: Family) -> list[Metric] | None:
        try:
            if family.is_in_store:
                return health.FIGURES.answer(lambda: list(family.read(self._now)))
            return list(family.read(self._now))
        except Exception as error:
            # Whatever is wrong with one, the others are told, and this one is told to be down.
            log.error("metrics.family_down", family=name, exc_info=error)
            return None


def _lower_bound(count: str, *, is_more: bool) -> Metric:
    family = GaugeMetricFamily(
        "accessportal_count_is_lower_bound", "1 when counting stopped there: there may be more than the count tells.", labels=["count"]
    )
    family.add_metric([count], float(is_more))
    return family


def _timestamp(moment: datetime, now: datetime) -> float:
    """0 for what a clock that was ahead wrote: an alarm by age must not wait until then."""
    return 0.0 if moment > furthest(now, longest=timedelta(0)) else moment.timestamp()


def _runs(now: datetime) -> Iterator[Metric]:
    last = GaugeMetricFamily("accessportal_last_run_timestamp_seconds", "When a background part last showed itself.", labels=["part"])
    good = GaugeMetricFamily("accessportal_last_run_ok", "1 when its last run did all it had to, 0 when something failed.", labels=["part"])
    items = GaugeMetricFamily("accessportal_last_run_items", "What its last run counted, by kind.", labels=["part", "kind"])
    for beat in heartbeats.all_beats():
        last.add_metric([beat.part], _timestamp(beat.beat_at, now))
        good.add_metric([beat.part], float(beat.is_ok))
        for kind, count in beat.detail.items():
            if isinstance(count, int | float):
                items.add_metric([beat.part, kind], float(count))
    yield from (last, good, items)


def _health(_now: datetime) -> Iterator[Metric]:
    pages, work = health.PAGES.found(), health.WORK.found()
    yield GaugeMetricFamily("accessportal_ready", "1 when pages can be served (/readyz).", value=float(pages.is_well))
    yield GaugeMetricFamily("accessportal_working", "1 when work is being done (/workz).", value=float(work.is_well))
    missing = GaugeMetricFamily("accessportal_missing", "1 for each part that keeps these two from it.", labels=["part"])
    for part in {**pages.missing, **work.missing}:
        missing.add_metric([part], 1.0)
    yield missing


def _requests(now: datetime) -> Iterator[Metric]:
    page = requests.list_stuck(actor=system("metrics"), now=now, cursor=None, limit=STUCK_COUNTED_TO)
    yield GaugeMetricFamily(
        "accessportal_stuck_requests", f"Requests whose work outside is overdue, counted to {STUCK_COUNTED_TO}.", value=len(page.items)
    )
    yield _lower_bound("stuck_requests", is_more=page.next_cursor is not None)
    oldest = min((request.work_due_at for request in page.items if request.work_due_at is not None), default=now)
    yield GaugeMetricFamily(
        "accessportal_stuck_oldest_seconds", "How long the oldest of them is overdue.", value=max(0.0, (now - oldest).total_seconds())
    )


def _events(now: datetime) -> Iterator[Metric]:
    waiting = audit.count_unpublished()
    yield GaugeMetricFamily(
        "accessportal_events_topic_set", "1 when a topic for events is set, 0 when they are kept.", value=bool(settings.EVENTS_TOPIC_ARN)
    )
    yield GaugeMetricFamily(
        "accessportal_unpublished_events",
        f"Events that are not published yet, counted to about {audit.UNPUBLISHED_COUNTED_TO}.",
        value=waiting.count,
    )
    yield _lower_bound("unpublished_events", is_more=waiting.is_more)
    yield GaugeMetricFamily(
        "accessportal_unpublished_oldest_seconds",
        "How long the oldest of them waits.",
        value=max(0.0, (now - (waiting.oldest_at or now)).total_seconds()),
    )


def _catalog(now: datetime) -> Iterator[Metric]:
    freshness = catalog.freshness()
    if freshness.synced_at is not None:
        yield GaugeMetricFamily(
            "accessportal_catalog_synced_timestamp_seconds",
            "When the catalog was last read whole.",
            value=_timestamp(freshness.synced_at, now),
        )


def _restores(_now: datetime) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "accessportal_grants_held",
        "1 while nothing is granted because a restore of the tables waits to be confirmed, 0 otherwise.",
        value=held_restore() is not None,
    )


@dataclass(frozen=True, slots=True)
class Family:
    """Figures that are read together. ``is_in_store``: from DynamoDB, otherwise from Django's database."""

    read: Callable[[datetime], Iterator[Metric]]
    is_in_store: bool


# While DynamoDB does not answer, health waits for it once and the first of the others once; the rest is told to be down at once.
FAMILIES = {
    "runs": Family(_runs, is_in_store=False),
    "catalog": Family(_catalog, is_in_store=False),
    "health": Family(_health, is_in_store=False),
    "requests": Family(_requests, is_in_store=True),
    "events": Family(_events, is_in_store=True),
    "restores": Family(_restores, is_in_store=True),
}
