"""Chains and sets on the tables: what a check reads has an end, also where somebody has very many records."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.authz import queries
from accessportal.authz.policy import checks as policy
from accessportal.authz.policy.checks import Why
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import checks
from accessportal.authz.states import RelationType, Scope
from accessportal.authz.store import APPROVALS, Ledger
from accessportal.kernel.pages import Page
from tests.authz.conftest import Service

ACME = "tenant:acme"
MOST = 4


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whose pages were read; two records make one, and four are the most of a subject, or of a set."""
    read: list[str] = []
    page_of_holder = Ledger.page_of_holder

    def counted(self: Ledger[Any], scope: Scope, holder: str, **given: Any) -> Page[Any]:
        read.append(holder)
        return page_of_holder(self, scope, holder, **given)

    monkeypatch.setattr(Ledger, "page_of_holder", counted)
    monkeypatch.setattr(checks, "_PAGE", 2)
    for module in (policy, checks):
        monkeypatch.setattr(module, "MOST_LINKS", MOST)
    monkeypatch.setattr(checks, "MOST_IN_SET", MOST)
    return read


def link(service: Service, one: str, other: str) -> None:
    service.add(one, "trusts", other, scope=ACME, kind=RelationType.TRUST)


def test_of_a_hub_only_so_many_links_are_read_and_its_direct_link_always(service: Service, pages: list[str]) -> None:
    link(service, "leaf", "hub")
    for number in range(9):
        link(service, "hub", f"spoke-{number}")

    answer = service.chain("leaf", "trusts", "spoke-8", scope=ACME)
    assert [one.names[0] for one in answer.by] == ["leaf", "hub"]
    assert pages == ["leaf", "hub", "hub", "hub"]
    link(service, "spoke-8", "root")
    assert service.chain("hub", "trusts", "root", scope=ACME).why is Why.TOO_WIDE
    assert service.chain("leaf", "trusts", "nobody", scope=ACME).why is Why.TOO_WIDE


def test_so_many_links_as_are_followed_are_no_hub(service: Service, pages: list[str]) -> None:
    for number in range(MOST):
        link(service, "hub", f"spoke-{number}")
    link(service, "spoke-3", "root")

    assert service.chain("hub", "trusts", "root", scope=ACME).is_allowed
    assert service.chain("hub", "trusts", "nobody", scope=ACME).why is Why.NONE


def test_of_a_set_only_so_many_records_are_read(service: Service, pages: list[str]) -> None:
    for number in range(9):
        service.grant("alice", f"docs/{number}", "GET" if number in (1, 8) else "PUT", scope=ACME, ttl=60 * (number + 1))

    def asked(action: str) -> queries.Answer:
        names = ("alice", "docs/*", action)
        return queries.check_set(APPROVALS, read_scope(ACME), names, caller=service.caller, clock=service.clock)

    assert [one.names[1] for one in asked("GET").by] == ["docs/1"]
    assert len(pages) == 3
    assert asked("DELETE").why is Why.TOO_WIDE
    for number in range(4, 9):
        service.revoke("alice", f"docs/{number}", "GET" if number == 8 else "PUT", scope=ACME)
    assert asked("DELETE").why is Why.NONE
