"""Every call of the store and of AWS, and every way in which its answer may be lost: one word of ours, and nothing else."""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.exceptions
import pytest
from botocore.exceptions import BotoCoreError, HTTPClientError, ReadTimeoutError, WaiterError
from moto.core.models import botocore_stubber

from accessportal.audit import store as audit_store
from accessportal.authz.states import GLOBAL
from accessportal.authz.store import APPROVALS
from accessportal.aws import clients
from accessportal.aws.errors import OutsideError, sorted_call
from accessportal.directory.store import reading as directory_reading
from accessportal.directory.store import whole as directory_whole
from accessportal.kernel.errors import Unavailable
from accessportal.rules import store as rules_store
from accessportal.store import coordination, reading, replacing, tables
from accessportal.store.base import registered_models
from accessportal.store.coordination import CoordinationItem
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Remove, Upsert, transact, update_one
from tests.conftest import START, FakeClock
from tests.fixtures_twin import LostAnswers, refuse, send_again_at_once, when

UNTIL = CoordinationItem.until
CHANGE = Change(CoordinationItem, "one", [UNTIL.set(2)], UNTIL == 1)
UPSERT = Upsert(CoordinationItem, "one", [UNTIL.set(2)], UNTIL == 1)
ITEM = {"name": {"S": "one"}}
CLOCK: Any = SimpleNamespace(now=lambda: START, sleep=lambda _seconds: None)
Call = Callable[[], object]
# What talks to the store: by the module below ``accessportal`` and the function.
CALLS: dict[str, Call] = {
    "store.reading.get_item": lambda: reading.get_item(CoordinationItem, "one"),
    "store.reading.read_item": lambda: reading.read_item(CoordinationItem, str, "one"),
    "store.reading.read_items": lambda: reading.read_items(CoordinationItem, str, ["one", "two"]),
    "store.reading.scan_all": lambda: list(reading.scan_all(CoordinationItem, str, stand_in=str, segment=0, segments=2)),
    "store.reading._read_raw page": lambda: reading.query_page(CoordinationItem, "one", pattern="x", convert=str),
    "store.reading._read_raw merged": lambda: audit_store.list_day(START.date()),
    "store.reading.count_items": lambda: APPROVALS.count_shard(GLOBAL, 0, is_wide=False, now=START),
    "store.transactions.transact insert": lambda: transact([Insert(CoordinationItem("new", until=1))]),
    "store.transactions.transact change": lambda: transact([CHANGE]),
    "store.transactions.transact upsert": lambda: transact([UPSERT]),
    "store.transactions.transact remove": lambda: transact([Remove(CoordinationItem, "one", UNTIL == 1)]),
    "store.transactions.transact guard": lambda: transact([Guard(CoordinationItem, "one", UNTIL == 1)]),
    "store.transactions.update_one change": lambda: update_one(CHANGE),
    "store.transactions.update_one upsert": lambda: update_one(UPSERT),
    "store.coordination.leave_watch": lambda: coordination.leave_watch("ends", until=START, now=START),
    "store.coordination.claim_watch": lambda: coordination.claim_watch(
        "ends", needed_until=START, until=START, longest=timedelta(minutes=5), now=START
    ),
    "store.coordination.reserve_slot": lambda: coordination.reserve_slot("pace", gap_seconds=1.0, longest_wait_seconds=5.0, now=START),
    "store.tables.ensure_table": lambda: tables.ensure_table(CoordinationItem, clock=CLOCK),
    "store.replacing.replace_in_table": lambda: replacing.replace_in_table(CoordinationItem, dict, is_dry=True),
    "store.replacing._write update": lambda: replacing._write(CoordinationItem, ITEM, ITEM | {"until": {"N": "2"}}, may_overwrite=True),
    "store.replacing._write move": lambda: replacing._write(CoordinationItem, ITEM, {"name": {"S": "two"}}, may_overwrite=False),
    "audit.store.every_entity": lambda: list(audit_store.every_entity()),
    "store.reading.scan_records": lambda: list(rules_store.every_versions(past=print)),
    "rules.store._read_items": lambda: rules_store._read_items([("rule", 1)]),
    "directory.store.reading.get_many": lambda: directory_reading.get_many([("U:a", "U:a")], str),
    "directory.store.whole.read_table": directory_whole.read_table,
}
# Each client of AWS, with a call of its own.
AWS: dict[str, Call] = {
    "sso-admin": lambda: sorted_call(clients.assignment_client().list_instances),
    "sso-admin, patient": lambda: sorted_call(list, clients.sso_admin_client().get_paginator("list_instances").paginate()),
    "organizations": lambda: sorted_call(clients.organizations_client().list_roots),
    "identitystore": lambda: sorted_call(clients.principal_client().list_users, IdentityStoreId="d-1234567890"),
    "identitystore, patient": lambda: sorted_call(
        list, clients.identity_store_client().get_paginator("list_users").paginate(IdentityStoreId="d-1234567890")
    ),
    "sns": lambda: sorted_call(
        clients.sns_client().publish_batch,
        TopicArn="arn:aws:sns:eu-central-1:123456789012:events",
        PublishBatchRequestEntries=[{"Id": "1", "Message": "m"}],
    ),
    "cognito-idp": lambda: sorted_call(clients.cognito_client().list_user_pools, MaxResults=1),
    "cognito-idp, patient": lambda: sorted_call(clients.patient_cognito_client().list_user_pools, MaxResults=1),
}
# Status and body of what comes back from a proxy, a server that dies in the middle, or somebody else's.
BODIES = (b"", b"<html><body>no</body></html>", b"<html><br>", b'{"Item": {', b"[]", b"null", b"\xff\xfe")
GARBLED = [(200, body) for body in BODIES] + [(status, b"[]") for status in (302, 400, 404, 500, 502, 503, 504)]


def every_kind(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from every_kind(one)


def made(kind: type[Any]) -> Exception:
    """An error as botocore makes it, with whatever its words ask for."""
    given = dict.fromkeys((name for _, name, _, _ in string.Formatter().parse(kind.fmt) if name), "x")
    error: Exception = kind(**given, last_response={}) if kind is WaiterError else kind(**given)
    return error


KINDS = [kind for kind in dict.fromkeys(every_kind(BotoCoreError)) if kind.__module__ == "botocore.exceptions"]
OF_CONNECTIONS = [kind for kind in KINDS if issubclass(kind, HTTPClientError | botocore.exceptions.ConnectionError)]


@pytest.fixture
def answers(tables: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], Any]], None]:
    """``answers(how)``: from now on each sending gets what ``how`` makes of it. botocore sends again without waiting."""
    send_again_at_once(monkeypatch)
    monkeypatch.setattr("botocore.retries.adaptive.ClientRateLimiter.on_sending_request", lambda *_args, **_rest: None)

    def become(how: Callable[[Any], Any]) -> None:
        monkeypatch.setattr(botocore_stubber, "process_request", how)

    return become


def raising(error: Exception) -> Callable[[Any], Any]:
    def how(_request: Any) -> Any:
        raise error

    return how


@pytest.mark.parametrize("kind", OF_CONNECTIONS, ids=lambda kind: kind.__name__)
def test_no_answer_is_unavailable(kind: type[Exception], answers: Callable[[Callable[[Any], Any]], None]) -> None:
    answers(raising(made(kind)))

    for call in CALLS.values():
        with pytest.raises(Unavailable, match=kind.__name__) as told:
            call()
        assert told.value.code == "store_unavailable"
    assert set(tables.silent_tables().values()) == {kind.__name__}
    for call in AWS.values():
        with pytest.raises(OutsideError) as failed:
            call()
        assert failed.value.code == kind.__name__


def test_no_error_of_the_library_passes_for_one_of_ours(answers: Callable[[Callable[[Any], Any]], None]) -> None:
    assert {"ReadTimeoutError", "ConnectionClosedError", "EndpointConnectionError"} < {kind.__name__ for kind in OF_CONNECTIONS}
    for kind in KINDS:
        answers(raising(made(kind)))
        for name in ("store.reading.get_item", "store.transactions.transact change", "store.transactions.update_one change"):
            with pytest.raises(Unavailable, match=kind.__name__):
                CALLS[name]()


@pytest.mark.parametrize(("status", "body"), GARBLED)
def test_an_answer_that_is_none_is_unavailable(status: int, body: bytes, answers: Callable[[Callable[[Any], Any]], None]) -> None:
    """botocore takes it for an empty one: an absent item, an empty list, a write that was done."""
    answers(lambda _request: (status, {}, body))

    for call in CALLS.values():
        with pytest.raises(Unavailable):
            call()
    assert len(tables.silent_tables()) == len(registered_models())
    for call in AWS.values():
        with pytest.raises(OutsideError):
            call()


def test_whatever_talks_to_the_store_is_in_the_table() -> None:
    root = Path(reading.__file__).parent.parent
    verbs = {"get", "query", "scan", "batch_get", "count", "refresh", "update", "save", "delete", "rate_limited_scan", "batch_write"}
    talking = set()
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in verbs:
                    owner = ast.unparse(node.func.value)
                    if owner == "model" or owner.endswith("Item") or (module == "store.transactions" and owner == "item"):
                        talking.add(f"{module}.{function.name}")
    known = {name.partition(" ")[0] for name in CALLS}

    assert talking - known == {"store.transactions._as_written"}, "the second look of update_one has a test of its own"
    assert {"store.reading.get_item", "audit.store.every_entity", "directory.store.whole.read_table"} < talking


def test_the_second_look_at_an_update_may_be_lost_too(lost_answers: LostAnswers, tables: None) -> None:
    transact([Insert(CoordinationItem("one", until=1))])
    lost_answers.of("UpdateItem")

    with when("GetItem", lambda _parameters: raising(ReadTimeoutError(endpoint_url="x"))(None)), pytest.raises(Unavailable):
        update_one(CHANGE)


def test_a_transaction_of_ours_that_is_under_way_is_sent_again_under_its_token(
    tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another one, it would meet what it has written itself, and be told as a conflict."""
    monkeypatch.setattr("accessportal.store.transactions.time", SimpleNamespace(sleep=lambda _seconds: None))
    tokens: list[str] = []
    codes = ["TransactionInProgressException", "TransactionInProgressException", "TransactionCanceledException"]

    def answer(parameters: dict[str, Any]) -> Any:
        tokens.append(parameters["ClientRequestToken"])
        return refuse(codes[len(tokens) - 1])(parameters) if len(tokens) <= len(codes) else None

    with when("TransactWriteItems", answer), pytest.raises(Unavailable, match="TransactionCanceledException"):
        transact([Insert(CoordinationItem("one", until=1))])
    assert len(tokens) == 3
    assert len(set(tokens)) == 1

    transact([Insert(CoordinationItem("one", until=1))])
    with when("TransactWriteItems", answer), pytest.raises(ConditionFailed):
        transact([Insert(CoordinationItem("one", until=1))])
    assert len(set(tokens)) == 2


def test_a_call_that_hangs_is_given_up_in_time(answers: Callable[[Callable[[Any], Any]], None]) -> None:
    """Three attempts of three seconds, and at most three seconds between them."""
    sent: list[str] = []

    def hang(request: Any) -> Any:
        sent.append(request.url)
        raise ReadTimeoutError(endpoint_url=request.url)

    answers(hang)
    with pytest.raises(Unavailable):
        reading.get_item(CoordinationItem, "one")

    assert len(sent) == 3
    for model in registered_models():
        # One that PynamoDB makes for a table by itself would know nothing of the number of attempts.
        config: Any = model._get_connection().connection.client.meta.config
        assert (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]) == (1.0, 3.0, 3)
