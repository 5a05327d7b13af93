"""What each action and each page costs in DynamoDB, at one size of the table."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from functools import partial

from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Search, Status
from accessportal.audit import queries as audit
from accessportal.audit.operations import prepare_event, publish_outbox
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor, Role, person
from accessportal.kernel.clock import SystemClock
from accessportal.store.transactions import transact
from benchmarks.filling import busy_person
from benchmarks.meter import Measured, measured

CLOCK = SystemClock()
BUSY = busy_person()
BOB = person("bob0@example.com")
STRANGER = person("sam-who-approves-nothing@example.com")
OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
_TIMES = 9


def measure_all(*, accounts: list[str]) -> Iterator[tuple[str, Measured]]:
    """Each action by name with its cost. It leaves a few more ended requests behind."""
    for name, read in _pages(accounts[0]).items():
        yield name, measured([read] * _TIMES)
    yield from _life(itertools.cycle(accounts))
    yield from _whole_pages(itertools.cycle(accounts))
    yield from _publishing()


def _pages(account: str) -> dict[str, Callable[[], object]]:
    history = partial(queries.history, request=queries.list_by_subject(subject_id=BUSY.name, actor=OLGA, now=CLOCK.now(), limit=1).items[0])
    return {
        "my access": _my_access,
        "queue: waiting for me": lambda: queries.list_waiting_for(actor=BOB, now=CLOCK.now()),
        "queue of one with nothing": lambda: queries.list_waiting_for(actor=STRANGER, now=CLOCK.now()),
        "all pending": lambda: queries.list_pending(actor=OLGA, now=CLOCK.now()),
        "active": lambda: queries.list_active(actor=OLGA, now=CLOCK.now()),
        "ending soon": lambda: queries.list_ending_soon(actor=OLGA, now=CLOCK.now(), within_seconds=86_400 * 40),
        "stuck": lambda: queries.list_stuck(actor=OLGA, now=CLOCK.now()),
        "by subject": lambda: queries.list_by_subject(subject_id=BUSY.name, actor=OLGA, now=CLOCK.now()),
        "by account": lambda: queries.search(search=Search(account_id=account), actor=OLGA, now=CLOCK.now()),
        "history of a request": history,
        "tick with nothing due": _idle_tick,
    }


def _my_access() -> None:
    queries.list_open(subject_id=BUSY.name)
    queries.list_ended(requested_by=BUSY.name)


def _idle_tick() -> None:
    report = operations.tick(clock=CLOCK)
    assert (report.lapsed, report.expired, report.granted, report.revoked, report.failures) == (0, 0, 0, 0, ()), report


def _life(accounts: Iterator[str]) -> Iterator[tuple[str, Measured]]:
    """The verbs, each on requests of its own."""
    waiting: list[AccessRequest] = []
    granted: list[AccessRequest] = []
    yield "submit, waits for approval", measured([lambda: waiting.append(submit("AdministratorAccess", next(accounts)))] * (2 * _TIMES))
    yield "submit, approved by rule", measured([lambda: granted.append(submit("PowerUserAccess", next(accounts)))] * _TIMES)
    yield "deny", measured([partial(_deny, request) for request in waiting[_TIMES:]])
    yield "approve", measured([partial(_approve, request) for request in waiting[:_TIMES]])
    yield "grant", measured([partial(_carry_out, request) for request in granted])
    yield "end", measured([partial(_end, request) for request in granted])
    yield "revoke", measured([partial(_carry_out, request) for request in granted])
    for request in waiting[:_TIMES]:
        _end(request)
        assert _carry_out(request).status is Status.REVOKED


def _whole_pages(accounts: Iterator[str]) -> Iterator[tuple[str, Measured]]:
    """Addresses through the whole of Django, for somebody who holds five accesses and waits for five."""
    held = [submit("PowerUserAccess", next(accounts)) for _ in range(5)]
    waiting = [submit("AdministratorAccess", next(accounts)) for _ in range(5)]
    requests = reverse("admin:console_requests")
    pages = {
        "GET / (5 held, 5 waiting)": (BUSY, reverse("home")),
        "GET request, waiting": (BUSY, reverse("request", args=[waiting[0].request_id])),
        "GET approvals tally": (BOB, reverse("approvals_tally")),
        "GET admin queue": (BOB, f"{requests}?pattern=waiting"),
        "GET admin pending": (OLGA, f"{requests}?pattern=pending"),
        "GET admin active": (OLGA, f"{requests}?pattern=active"),
        "GET admin stuck": (OLGA, f"{requests}?pattern=stuck"),
        "GET admin by person": (OLGA, f"{requests}?pattern=all&q={BUSY.name}"),
        "GET request, to decide": (BOB, reverse("request", args=[waiting[0].request_id])),
    }
    for name, (actor, address) in pages.items():
        yield name, measured([partial(_get, client_of(actor), address)] * _TIMES)
    for request in [*held, *waiting]:
        verb = operations.end if request.status is Status.ACTIVE else operations.cancel
        verb(request_id=request.request_id, actor=BUSY, now=CLOCK.now())
    for request in held:
        _carry_out(request)


def _publishing() -> Iterator[tuple[str, Measured]]:
    """Everything that waits is out of the way first; then ten entities with a backlog, the same at each size of the table."""
    _publish()
    for entity in (f"request#published-{number}" for number in range(10)):
        newest = audit.history(entity, limit=1).items
        last, head = (newest[0].sequence, newest[0].hash) if newest else (0, "")
        for sequence in range(last + 1, last + 1 + 10 * _TIMES):
            draft = Draft("request.denied", BUSY.name, {"reason": "Use staging", "status": Status.DENIED.value})
            event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=BOB, now=CLOCK.now())
            transact([event.step])
            head = event.head
    yield "publish 100 events", measured([partial(_publish, limit=100)] * _TIMES)
    _publish()
    yield "publish with nothing to do", measured([_publish] * _TIMES)


def _publish(*, limit: int | None = None) -> None:
    report = publish_outbox(send=lambda batch: [None] * len(batch), limit=limit, limit_seconds=600, actor=OLGA, clock=CLOCK)
    assert report.is_ok, report
    assert limit in (None, report.published), report


def client_of(actor: Actor) -> Client:
    """A browser in which ``actor`` is signed in."""
    user, _ = get_user_model().objects.get_or_create(username=actor.name, defaults={"email": actor.name})
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def _get(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)


def submit(permission_set: str, account: str) -> AccessRequest:
    return operations.submit(
        kind="aws_account",
        subject_id=None,
        target={"account": account, "permission_set": permission_set},
        duration_seconds=3600,
        reason="Look into the failed settlement run of last night, incident 4711",
        ticket_id="CHG-20817",
        submission_id=str(uuid.uuid4()),
        actor=BUSY,
        now=CLOCK.now(),
    )


def _approve(request: AccessRequest) -> AccessRequest:
    return operations.approve(request_id=request.request_id, actor=BOB, now=CLOCK.now())


def _deny(request: AccessRequest) -> AccessRequest:
    return operations.deny(request_id=request.request_id, reason="Use staging", actor=BOB, now=CLOCK.now())


def _end(request: AccessRequest, *, actor: Actor = BUSY) -> AccessRequest:
    return operations.end(request_id=request.request_id, actor=actor, now=CLOCK.now())


def _carry_out(request: AccessRequest) -> AccessRequest:
    done = operations.carry_out(request_id=request.request_id, clock=CLOCK)
    assert done.work is None, done.work_error
    return done
