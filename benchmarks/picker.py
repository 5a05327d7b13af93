"""The account picker's search address with 5,000 accounts and 500 permission sets, through the whole of Django."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from accessportal.catalog import store
from accessportal.catalog.states import Account, PermissionSet, Principal, PrincipalType
from accessportal.kernel.clock import SystemClock
from accessportal.twin.world_plan import plan_accounts, plan_permission_sets

ACCOUNTS, PERMISSION_SETS = 5_000, 500
_ROUNDS = 12
# What people type: a name letter by letter, an id, places, tags, nothing, and what does not exist.
_ACCOUNT_TEXTS = ("", "p", "pay", "payments-prod", "orders prod", "000000004999", "Workloads Lending", "cc-7013", "fraud-dev-0", "zzzz")
_SET_TEXTS = ("", "r", "read", "RetailOrders", "oncall energy", "zzzz")


@dataclass(frozen=True, slots=True)
class Spans:
    """Milliseconds of one address."""

    p50: float
    p99: float
    longest: float
    count: int


def fill_catalog() -> None:
    """The catalog of a large company, in place of what it held."""
    now = SystemClock().now()
    run_id = store.start_run(now)
    accounts = [
        Account(f"{number:012}", one.name, f"aws+{one.name}@example.com", "ACTIVE", one.path, one.tags, is_management=False)
        for number, one in enumerate(plan_accounts(ACCOUNTS))
    ]
    sets = [
        PermissionSet(f"arn:aws:sso:::permissionSet/ssoins-1/ps-{number:04}", one.name, one.description, 3600)
        for number, one in enumerate(plan_permission_sets(PERMISSION_SETS))
    ]
    people = [Principal(PrincipalType.USER, f"u-{number:05}", f"person{number}@example.com") for number in range(5_000)]
    store.replace_all(run_id, store.Reading("arn:aws:sso:::instance/ssoins-1", "d-1", accounts, sets, people), at=now)


def measure() -> Iterator[tuple[str, Spans]]:
    user, _ = get_user_model().objects.get_or_create(username="alice0@example.com")
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    yield "search accounts", _spans(client, reverse("choices", args=["aws_account", "account"]), "account", _ACCOUNT_TEXTS)
    yield "search permission sets", _spans(client, reverse("choices", args=["aws_account", "permission_set"]), "permission_set", _SET_TEXTS)


def _spans(client: Client, address: str, parameter: str, texts: tuple[str, ...]) -> Spans:
    client.get(address, {parameter: "warm up"})
    spans = []
    for _ in range(_ROUNDS):
        for text in texts:
            began = time.perf_counter()
            answer = client.get(address, {parameter: text})
            spans.append(1000 * (time.perf_counter() - began))
            assert answer.status_code == 200, (address, text, answer.status_code)
    cuts = statistics.quantiles(spans, n=100, method="inclusive")
    return Spans(p50=cuts[49], p99=cuts[98], longest=max(spans), count=len(spans))
