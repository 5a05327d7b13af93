"""The few figures worth an alarm, read when asked for. No process keeps a count of its own, so any web process may answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from accessportal.access_requests import queries as requests
from accessportal.audit import queries as audit
from accessportal.catalog import queries as catalog
from accessportal.kernel.actors import system
from accessportal.observe import heartbeats

# More than this many stuck requests is the same alarm; counting on would read for ever when it is worst.
STUCK_COUNTED_TO = 200


class PortalCollector(Collector):
    """``now`` decides what is stuck."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        yield from _heartbeats()
        yield from _stuck(self._now)
        yield from _unpublished(self._now)
        yield from _catalog()


def _heartbeats() -> Iterator[Metric]:
    last = GaugeMetricFamily("accessportal_last_run_timestamp_seconds", "When a background part last showed itself.", labels=["part"])
    good = GaugeMetricFamily("accessportal_last_run_ok", "1 when its last run did all it had to, 0 when something failed.", labels=["part"])
    items = GaugeMetricFamily("accessportal_last_run_items", "What its last run counted, by kind.", labels=["part", "kind"])
    for beat in heartbeats.all_beats():
        last.add_metric([beat.part], beat.beat_at.timestamp())
        good.add_metric([beat.part], float(beat.is_ok))
        for kind, count in beat.detail.items():
            if isinstance(count, int | float):
                items.add_metric([beat.part, kind], float(count))
    yield from (last, good, items)


def _stuck(now: datetime) -> Iterator[Metric]:
    page = requests.list_stuck(actor=system("metrics"), now=now, cursor=None, limit=STUCK_COUNTED_TO)
    yield GaugeMetricFamily(
        "accessportal_stuck_requests", f"Requests whose work outside is overdue, counted to {STUCK_COUNTED_TO}.", value=len(page.items)
    )
    oldest = min((request.work_due_at for request in page.items if request.work_due_at is not None), default=now)
    yield GaugeMetricFamily(
        "accessportal_stuck_oldest_seconds", "How long the oldest of them is overdue.", value=max(0.0, (now - oldest).total_seconds())
    )


def _unpublished(now: datetime) -> Iterator[Metric]:
    waiting = audit.count_unpublished()
    yield GaugeMetricFamily(
        "accessportal_events_topic_set", "1 when a topic for events is set, 0 when they are kept.", value=bool(settings.EVENTS_TOPIC_ARN)
    )
    yield GaugeMetricFamily(
        "accessportal_unpublished_events",
        f"Events that are not published yet, counted to {audit.UNPUBLISHED_COUNTED_TO}.",
        value=waiting.count,
    )
    yield GaugeMetricFamily(
        "accessportal_unpublished_oldest_seconds",
        "How long the oldest of them waits.",
        value=max(0.0, (now - (waiting.oldest_at or now)).total_seconds()),
    )


def _catalog() -> Iterator[Metric]:
    freshness = catalog.freshness()
    if freshness.synced_at is not None:
        yield GaugeMetricFamily(
            "accessportal_catalog_synced_timestamp_seconds", "When the catalog was last read whole.", value=freshness.synced_at.timestamp()
        )
