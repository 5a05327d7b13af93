"""The log at which ``benchmarks.history`` measures, and the history's rows of it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any
from unittest import mock

import boto3
from pynamodb.expressions.operand import Path, Value

from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.audit.store import event_of
from accessportal.history import store
from accessportal.history.models import HistoryItem
from accessportal.history.policy.readers import fold, tells
from accessportal.history.policy.requests import RequestFacts, facts_of
from accessportal.history.states import Mark
from accessportal.kernel.actors import Actor, person, system
from accessportal.kernel.clock import to_epoch
from accessportal.store.base import StoreSettings, configure, current_settings
from accessportal.store.keys import join_key
from accessportal.store.transactions import Insert, Step, Upsert
from benchmarks.installation import REGION
from benchmarks.sandboxes import write_all

EVENTS_OF_ONE = 10
DAYS = 365
# Of which the last have none: a run that finds nothing reads what is up to three days old.
_EMPTY_DAYS = 4
WORKER = system("worker")
# However large the log is, so many accesses of each person and of each account but the busy one.
_OF_ONE_PERSON, _OF_ONE_ACCOUNT, _MEMBERS = 10, 20, 20
# From one access to the next in the log; those of one account are spread over the year.
_STEP_SECONDS = 1_234_577
_WRITERS = 2
# So many accesses a writer takes at a time.
_PIECE = 500
Row = dict[str, Any]
Chain = list[Row]


def connect(table_prefix: str) -> None:
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    configure(StoreSettings(table_prefix=table_prefix, region=REGION, read_timeout_seconds=60, reads_side_by_side=8))


def fill_directory(began_at: datetime) -> None:
    _write("AuditLog", chain.from_iterable(_directory(began_at)))


def fill(numbers: range, began_at: datetime, *, generation: int | None) -> None:
    """These accesses are in the log, written by processes of their own; with ``generation`` their rows are in the history, too."""
    pieces = [numbers[start : start + _PIECE] for start in range(0, len(numbers), _PIECE)]
    write = partial(_write_piece, began_at=began_at, generation=generation)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_WRITERS, context, initializer=connect, initargs=(current_settings().table_prefix,)) as pool:
        list(pool.map(write, pieces))


def _write_piece(numbers: range, *, began_at: datetime, generation: int | None) -> None:
    chains = list(_accesses(numbers, began_at))
    _write("AuditLog", chain.from_iterable(chains))
    if generation is not None:
        _write("AccessHistory", _rows_of(chains, generation))


def compare(generation: int) -> tuple[int, list[str]]:
    """How many rows the log makes, and the keys of those that are not in the history byte by byte, or in it alone."""
    log: dict[str, Chain] = {}
    for event in sorted(_all("AuditLog"), key=lambda row: int(row["sequence"]["N"])):
        log.setdefault(event["entity"]["S"], []).append(event)
    made = {_key(row): row for row in _rows_of(log.values(), generation)}
    there = {_key(row): row for row in _all("AccessHistory") if _key(row) != ("progress", "progress")}
    return len(made), [str(key) for key in made.keys() | there.keys() if made.get(key) != there.get(key)]


def _rows_of(chains: Iterable[Chain], generation: int) -> Iterator[Row]:
    """What is written where these are followed, by the same code, but for the transaction that carries it."""
    events = {one[0]["entity"]["S"]: [event_of(row) for row in one] for one in chains}
    steps: list[Step] = []

    def look(request_id: str, at: datetime) -> RequestFacts:
        return facts_of(events[f"request#{request_id}"], at=at)

    with mock.patch.object(store, "transact", steps.extend):
        for entity, told in events.items():
            if any(map(tells, told)):
                before = Mark(entity=entity)
                after = store.keep_mark(generation, before, fold(before, told, look, past=_refuse))
                assert not after.to_write, f"{entity} takes more than one transaction"
    return map(_row_of, steps)


def _row_of(step: Step) -> Row:
    if isinstance(step, Insert):
        row: Row = step.item.serialize()
    else:
        assert isinstance(step, Upsert), step
        row = step.model(step.hash_key, step.range_key).serialize(null_check=False)
        for action in step.actions:
            path, value = action.values
            assert isinstance(path, Path), action
            assert isinstance(value, Value), action
            row[path.path[0]] = value.value
    return row | {"schema_version": {"N": str(HistoryItem.known_schema)}}


def _refuse(event: AuditEvent, why: str) -> None:
    raise AssertionError(f"{event.entity}, event {event.sequence}: {why}")


def _key(row: Row) -> tuple[str, str]:
    return row["place"]["S"], row["row"]["S"]


def email_of(number: int) -> str:
    return f"person{number // _OF_ONE_PERSON}@example.com"


def account_of(number: int) -> str:
    """Every tenth is the same one."""
    return f"{0 if number % 10 == 0 else 1 + number // _OF_ONE_ACCOUNT:012d}"


def _chain(entity: str, drafts: list[tuple[Draft, Actor, datetime]]) -> Chain:
    head, rows = "", list[Row]()
    for sequence, (draft, actor, at) in enumerate(drafts, start=1):
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=actor, now=at)
        head = event.head
        rows.append(event.step.item.serialize())
    return rows


def _directory(at: datetime) -> Iterator[Chain]:
    """One group of groups, people in them, and an account that it had all the time."""
    olga = person("olga@example.com")
    for group_id, parent_id in (("/", ""), ("/teams", "/"), *((f"/teams/t{number}", "/teams") for number in range(5))):
        data = {"group_id": group_id, "parent_id": parent_id, "name": group_id, "description": "", "state": "enabled"}
        yield _chain(f"group#{group_id}", [(Draft("group.created", group_id, data), olga, at)])
    for number in range(_MEMBERS):
        email = f"person{number}@example.com"
        data = {"email": email, "group_id": f"/teams/t{number % 5}", "role": "reader", "claim": "permanent", "effective_role": "reader"}
        yield _chain(f"person#{email}", [(Draft("user.granted", email, data), olga, at)])
    entity = f"assignment#{join_key('GROUP', 'g-1', '999999999999', 'arn:ps')}"
    yield _chain(entity, [(one, WORKER, at) for one in _assigned("/teams", "outside")[:3]])


def _accesses(numbers: range, began_at: datetime) -> Iterator[Chain]:
    """Each of an hour, with its request: ten events, spread over a year; each has an assignment of its own."""
    for number in numbers:
        at = began_at + timedelta(seconds=(number * _STEP_SECONDS) % ((DAYS - _EMPTY_DAYS) * 86_400))
        request_id = str(uuid.UUID(hashlib.sha256(str(number).encode()).hexdigest()[:32], version=4))
        email, who = email_of(number), person(email_of(number))
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
        yield _chain(f"request#{request_id}", requests)
        moments = [at + timedelta(seconds=second) for second in (1, 2, 4, 3_601, 3_602, 3_603, 3_605)]
        entity = f"assignment#{join_key('USER', f'u-{number}', account_of(number), 'arn:ps')}"
        yield _chain(entity, [(draft, WORKER, moment) for draft, moment in zip(drafts, moments, strict=True)])


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


def _write(table: str, rows: Iterator[Row]) -> None:
    write_all(_client(), f"{current_settings().table_prefix}{table}", rows)


def _all(table: str) -> Iterator[Row]:
    pages = _client().get_paginator("scan").paginate(TableName=f"{current_settings().table_prefix}{table}", ConsistentRead=True)
    return chain.from_iterable(page["Items"] for page in pages)


def _client() -> Any:
    return boto3.client("dynamodb", region_name=REGION)
