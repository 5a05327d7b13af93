"""What the history of who had what costs: an event that is followed, an answer at a small and at a large log, and five million events:

    python tools/dynamodb_local.py python -m benchmarks.history

Exit code 1 when an answer costs more at the large log than at the small one, or takes longer than a second.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import boto3
import django
from django.conf import settings

# The names of accounts are in tables of Django's; nothing here looks there.
settings.configure(INSTALLED_APPS=["accessportal.catalog"])
django.setup()

from accessportal.audit.operations import prepare_event  # noqa: E402
from accessportal.audit.states import Draft  # noqa: E402
from accessportal.history import operations, queries  # noqa: E402
from accessportal.history.states import Thing, ThingKind  # noqa: E402
from accessportal.kernel.actors import Actor, Role, person, system  # noqa: E402
from accessportal.kernel.clock import SystemClock, to_epoch  # noqa: E402
from accessportal.store.base import StoreSettings, configure, current_settings, registered_models  # noqa: E402
from accessportal.store.cursors import configure_cursors  # noqa: E402
from accessportal.store.keys import join_key  # noqa: E402
from accessportal.store.tables import ensure_table  # noqa: E402
from benchmarks import meter  # noqa: E402
from benchmarks.installation import REGION  # noqa: E402
from benchmarks.meter import Measured, measured, metered  # noqa: E402
from benchmarks.sandboxes import write_all  # noqa: E402

CLOCK = SystemClock()
ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
WORKER = system("worker")
_EVENTS_OF_ONE = 10
# However large the log is, so many accesses of each person and of each account but the busy one.
_OF_ONE_PERSON, _OF_ONE_ACCOUNT, _MEMBERS = 10, 20, 20
_DAYS = 365
# From one access to the next in the log; those of one account are spread over the year.
_STEP_SECONDS = 1_234_577
_TIMES = 15
_MOST_MS = 1_000.0
_MOST_GROWTH = 1.1
_TARGET = 5_000_000
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 100_000], help="events in the log (default: 10000 100000)")
    sizes = parser.parse_args().sizes
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    meter.install()
    configure(StoreSettings(table_prefix=f"bench-{uuid.uuid4().hex[:8]}-", region=REGION, read_timeout_seconds=60, reads_side_by_side=8))
    configure_cursors("bench")
    for model in registered_models():
        ensure_table(model, clock=CLOCK)
    found: list[dict[str, Measured]] = []
    began_at = CLOCK.now() - timedelta(days=_DAYS)
    _write(_directory(began_at))
    filled = 0
    for size in sizes:
        began = time.monotonic()
        _write(_accesses(range(filled // _EVENTS_OF_ONE, size // _EVENTS_OF_ONE), began_at))
        print(f"{size:,} events in the log; filling took {time.monotonic() - began:.0f} s", flush=True)
        _follow(size - filled)
        filled = size
        found.append(dict(_measure_all(began_at)))
    problems = list[str]()
    for size, one in zip(sizes[1:], found[1:], strict=True):
        print(f"\nAnswers at {sizes[0]:,} and {size:,} events: round trips, units, milliseconds (medians)\n")
        problems = meter.show_growth(found[0], one, most=_MOST_GROWTH, may_grow=["who had it: a busy account"])
    problems += [f"{name} takes {one.milliseconds:.0f} ms" for name, one in found[-1].items() if one.milliseconds > _MOST_MS]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _follow(events: int) -> None:
    """All of it from nothing, in this process, and what one event took of that."""
    began = time.monotonic()
    with metered() as cost:
        report = operations.rebuild(workers=8, actor=Actor("olga@example.com", frozenset({Role.OPERATOR})), clock=CLOCK)
    assert report.is_ok, report
    seconds = time.monotonic() - began
    counts = {"round trips": cost.round_trips, "read units": cost.read_units, "write units": cost.write_units}
    each = ", ".join(f"{count / events:.2f} {name}" for name, count in counts.items())
    told = f"{report.entities:,} entities in {seconds:.0f} s: an event {each}, {1000 * seconds / events:.2f} ms"
    print(f"made from nothing: {told}; {_TARGET:,} events {seconds / events * _TARGET / 3600:.1f} h", flush=True)


def _measure_all(began_at: datetime) -> Iterator[tuple[str, Measured]]:
    moments = [began_at + timedelta(days=20 * number + 3, hours=number) for number in range(_TIMES)]

    def who(thing: Thing) -> Measured:
        return measured([lambda at=at: queries.who_had(thing=thing, at=at, actor=ANA) for at in moments])  # type: ignore[misc]

    yield "who had it: an account", who(Thing(ThingKind.ACCOUNT, _account(141)))
    yield "who had it: a busy account", who(Thing(ThingKind.ACCOUNT, _account(0)))
    yield "who had it: by a group", who(Thing(ThingKind.ACCOUNT, "999999999999"))
    yield "who was in a group", who(Thing(ThingKind.GROUP, "/teams"))

    def what(days: int) -> Measured:
        return measured(
            [
                lambda at=at: queries.what_had(email="person11@example.com", begin=at - timedelta(days=days), end=at, actor=ANA)  # type: ignore[misc]
                for at in moments
            ]
        )

    yield "what had: a week", what(7)
    yield "what had: a year", what(365)
    yield "a run that finds nothing", measured([lambda: operations.follow(workers=1, clock=CLOCK)] * 3)


def _email(number: int) -> str:
    return f"person{number // _OF_ONE_PERSON}@example.com"


def _account(number: int) -> str:
    """Every tenth is the same one."""
    return f"{0 if number % 10 == 0 else 1 + number // _OF_ONE_ACCOUNT:012d}"


def _chain(entity: str, drafts: list[tuple[Draft, Actor, datetime]]) -> Iterator[Row]:
    head = ""
    for sequence, (draft, actor, at) in enumerate(drafts, start=1):
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=actor, now=at)
        head = event.head
        yield event.step.item.serialize()


def _directory(at: datetime) -> Iterator[Row]:
    """One group of groups, people in them, and an account that it had all the time."""
    olga = person("olga@example.com")
    for group_id, parent_id in (("/", ""), ("/teams", "/"), *((f"/teams/t{number}", "/teams") for number in range(5))):
        data = {"group_id": group_id, "parent_id": parent_id, "name": group_id, "description": "", "state": "enabled"}
        yield from _chain(f"group#{group_id}", [(Draft("group.created", group_id, data), olga, at)])
    for number in range(_MEMBERS):
        email = f"person{number}@example.com"
        data = {"email": email, "group_id": f"/teams/t{number % 5}", "role": "reader", "claim": "permanent", "effective_role": "reader"}
        yield from _chain(f"person#{email}", [(Draft("user.granted", email, data), olga, at)])
    entity = f"assignment#{join_key('GROUP', 'g-1', '999999999999', 'arn:ps')}"
    yield from _chain(entity, [(one, WORKER, at) for one in _assigned("/teams", "outside")[:3]])


def _accesses(numbers: range, began_at: datetime) -> Iterator[Row]:
    """Each of an hour, with its request: ten events, spread over a year; each has an assignment of its own."""
    for number in numbers:
        at = began_at + timedelta(seconds=(number * _STEP_SECONDS) % (_DAYS * 86_400 - 8_000))
        request_id = str(uuid.UUID(hashlib.sha256(str(number).encode()).hexdigest()[:32], version=4))
        email, who = _email(number), person(_email(number))
        asked = {
            "kind": "aws_account",
            "target": {"permission_set": "ReadOnlyAccess"},
            "duration_seconds": 3600,
            "rule_name": "bench",
            "expires_at": to_epoch(at + timedelta(hours=1)),
        }
        end = {"expires_at": to_epoch(at + timedelta(hours=1))}
        over_at, drafts = at + timedelta(hours=1), _assigned(email, request_id)
        requests = [
            (Draft("request.auto_approved", email, asked), who, at),
            (Draft("request.expired", email, end), WORKER, over_at),
            (Draft("request.revoked", email, {"status": "REVOKED"}), WORKER, over_at + timedelta(seconds=9)),
        ]
        yield from _chain(f"request#{request_id}", requests)
        moments = [at + timedelta(seconds=second) for second in (1, 2, 4, 3_601, 3_602, 3_603, 3_605)]
        entity = f"assignment#{join_key('USER', f'u-{number}', _account(number), 'arn:ps')}"
        yield from _chain(entity, [(draft, WORKER, moment) for draft, moment in zip(drafts, moments, strict=True)])


def _assigned(who: str, claim: str) -> list[Draft]:
    job = {"job_id": "job-1", "job_status": "SUCCEEDED"}
    return [
        Draft("assignment.claimed", who, {"claim": claim, "claims": [claim]}),
        Draft("assignment.creating", who, {"state": "CREATING", "fence": 1}),
        Draft("assignment.present", who, {"state": "PRESENT", "fence": 2, **job}),
        Draft("assignment.released", who, {"claim": claim, "claims": []}),
        Draft("assignment.deleting", who, {"state": "DELETING", "fence": 3}),
        Draft("assignment.job_started", who, {"job_id": "job-2", "fence": 3}),
        Draft("assignment.absent", who, {"state": "ABSENT", "fence": 4, **job}),
    ]


def _write(items: Iterator[Row]) -> None:
    client: Any = boto3.client("dynamodb", region_name=REGION)
    write_all(client, f"{current_settings().table_prefix}AuditLog", items)


if __name__ == "__main__":
    raise SystemExit(main())
