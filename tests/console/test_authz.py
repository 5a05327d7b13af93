"""Approvals, relationships and scopes in the admin pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accessportal.authz import operations, queries
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
PROD, DEV, OTHER = "tenant:acme:env:prod", "tenant:acme:env:dev", "tenant:acme-corp"
FORM = {"scope": PROD, "identity": "bot", "resource": "docs/1", "action": "GET", "duration": "1h", "if_exists": "refuse"}
PAGE = "/admin/approvals/tenant~3Aacme~3Aenv~3Aprod~23bot~23docs~2F1~23GET/"


def grant(story: Story, scope: str, identity: str = "bot", seconds: int = 3_600) -> None:
    now = story.clock.now()
    wanted = Approval(read_scope(scope), identity, "docs/1", "GET", "olga@example.com", now)
    operations.grant(APPROVALS, wanted, ttl_seconds=seconds, caller=caller_of(story.olga), now=now)


def link(story: Story, subject: str, target: str) -> None:
    now = story.clock.now()
    wanted = Relationship(read_scope(PROD), subject, "trusts", target, RelationType.TRUST, "olga@example.com", now)
    operations.grant(RELATIONSHIPS, wanted, ttl_seconds=3_600, caller=caller_of(story.olga), now=now)


def text(client: Client, url: str, status: int = 200) -> str:
    answer = client.get(url)
    assert answer.status_code == status, (url, answer.status_code)
    return answer.content.decode()


def followed(client: Client, url: str) -> list[Any]:
    """The answers that a page leads to by itself, as htmx asks for them, and a browser without scripts by its buttons."""
    answers = list[Any]()
    while url:
        answers.append(client.get(url, headers={"HX-Request": "true"} if len(answers) % 2 else {}))
        assert answers[-1].status_code == 200, url
        url = answers[-1].context["next_url"]
    return answers


def whole(client: Client, url: str) -> str:
    """A list with all its pages."""
    return "".join(answer.content.decode() for answer in followed(client, url))


def counted(client: Client, scope: str, query: str = "") -> str:
    return str(followed(client, f"/admin/scopes/{scope}/counts/{query}")[-1].context["words"])


def test_granted_extended_and_revoked(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    granted = olga.post("/admin/approvals/grant/", FORM)
    assert granted["Location"] == PAGE
    assert "Granted directly" in text(olga, PAGE)

    again = olga.post("/admin/approvals/grant/", FORM)
    assert (again.status_code, list(again.context["form"].errors)) == (400, ["if_exists"])

    assert olga.post(f"{PAGE}do/extend/", {"confirmed": "yes", "duration": "2h"}).status_code == 302
    assert "End moved" in text(as_person("ana"), PAGE)
    assert as_person("ana").post(f"{PAGE}do/extend/", {"confirmed": "yes", "duration": "2h"}).status_code == 403

    asked = olga.post(f"{PAGE}do/revoke/")
    done = olga.post(f"{PAGE}do/revoke/", {"confirmed": "yes", f"mark-{asked.context['key']}": asked.context["mark"]}, follow=True)
    assert "This identity has none here" in done.content.decode()
    text(olga, PAGE, 404)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"scope": "tenant:a:b"}, "scope"),
        ({"scope": ""}, "scope"),
        ({"identity": ""}, "identity"),
        ({"identity": "x" * 10_000}, "identity"),
        ({"action": "a\u202eb"}, "action"),
        ({"duration": "-1h"}, "duration"),
        ({"duration": "9999d"}, "duration"),
        ({"duration": "30s"}, "duration"),
        ({"if_exists": "maybe"}, "if_exists"),
    ],
)
def test_a_mistake_is_told_beside_its_input_and_nothing_is_lost(story: Story, as_person: SignIn, given: dict[str, str], field: str) -> None:
    answer = as_person("olga").post("/admin/approvals/grant/", FORM | given)

    assert (answer.status_code, list(answer.context["form"].errors)) == (400, [field])
    assert answer.context["form"]["resource"].value() == "docs/1"


def test_lists_keep_scopes_apart(story: Story, as_person: SignIn) -> None:
    for scope, who in ((PROD, "bot-prod"), (DEV, "bot-dev"), (OTHER, "bot-other")):
        grant(story, scope, who)
    ana = as_person("ana")

    one = whole(ana, f"/admin/approvals/?pattern=scope&q={PROD}")
    wide = whole(ana, "/admin/approvals/?pattern=scope&q=tenant:acme&below=yes")
    assert ("bot-prod" in one, "bot-dev" in one) == (True, False)
    assert f'hx-get="/admin/scopes/{PROD.replace(":", "~3A")}/counts/?of=approval"' in one
    assert (counted(ana, PROD, "?of=approval"), counted(ana, "tenant:acme", "?of=approval&below=yes")) == ("1 approval", "2 approvals")
    assert ("bot-prod" in wide, "bot-dev" in wide, "bot-other" in wide) == (True, True, False)
    assert "bot-" not in whole(ana, "/admin/approvals/?pattern=scope&q=tenant:acme")
    assert "bot-dev" in text(ana, f"/admin/approvals/?pattern=holder&q={DEV}&holder=bot-dev")
    asked = ana.get(f"/admin/check-record/?about=approval&scope={DEV}&verb=GET&target=docs/1", follow=True)
    assert "bot-dev" in asked.content.decode()


@pytest.mark.parametrize(("seconds", "counts"), [(-1, True), (0, False), (1, False)])
def test_the_end_decides_on_every_page_while_the_item_lies_there(story: Story, as_person: SignIn, seconds: int, counts: bool) -> None:
    grant(story, PROD)
    story.clock.advance(3_600 + seconds)
    ana = as_person("ana")

    text(ana, PAGE, 200 if counts else 404)
    for query in (f"scope&q={PROD}", f"holder&q={PROD}&holder=bot", f"target&q={PROD}&resource=docs/1&action=GET", "ending"):
        assert ("docs~2F1" in whole(ana, f"/admin/approvals/?pattern={query}")) is counts, query
    asked = ana.get(f"/admin/check-record/?about=approval&scope={PROD}&who=bot&verb=GET&target=docs/*")
    assert asked.context["answer"].is_allowed is counts
    assert counted(ana, PROD) == f"{counts:d} approval{'' if counts else 's'} and 0 relationships"


def test_a_chain_is_drawn(story: Story, as_person: SignIn) -> None:
    link(story, "leaf", "middle")
    link(story, "middle", "root")

    shown = text(as_person("ana"), f"/admin/check-record/?about=chain&scope={PROD}&who=leaf&verb=trusts&target=root")

    assert shown.index("leaf → trusts → middle") < shown.index("middle → trusts → root")


@pytest.mark.parametrize(("given", "field"), [({"scope": "tenant:"}, "scope"), ({"who": "é" * 200}, "who"), ({"verb": ""}, "verb")])
def test_a_question_that_can_not_be_asked_says_so_beside_its_input(as_person: SignIn, given: dict[str, str], field: str) -> None:
    asked = {"about": "approval", "scope": PROD, "who": "bot", "verb": "GET", "target": "docs/1"}

    answer = as_person("ana").get("/admin/check-record/", asked | given)

    assert (answer.status_code, list(answer.context["form"].errors)) == (400, [field])


def test_a_scope_gets_its_policy_and_is_deleted_by_its_name(story: Story, as_person: SignIn) -> None:
    grant(story, PROD)
    olga, scope = as_person("olga"), f"/admin/scopes/{PROD}/"
    policy = {"confirmed": "yes", "policy": "own", "shortest": "2h", "longest": "1h", "outside": "refused"}
    wrong = olga.post(f"{scope}do/policy/", policy)
    assert list(wrong.context["form"].errors) == ["shortest"]
    assert olga.post(f"{scope}do/policy/", policy | {"shortest": "1m"}).status_code == 302
    assert "By its own policy" in text(olga, scope)
    for pattern, shown in (("all", "Open"), ("counted", "/counts/"), (f"named&q={PROD}", "1 h")):
        assert shown in text(olga, f"/admin/scopes/?pattern={pattern}"), pattern

    asked = olga.post(f"{scope}do/delete/")
    assert re.findall(r'hx-get="([^"]*/counts/)"', asked.content.decode()) == [f"/admin/scopes/{PROD.replace(':', '~3A')}/counts/"]
    assert counted(olga, PROD) == "1 approval and 0 relationships"
    assert list(olga.post(f"{scope}do/delete/", {"confirmed": "yes", "typed": OTHER}).context["form"].errors) == ["typed"]
    assert olga.post(f"{scope}do/delete/", {"confirmed": "yes", "typed": PROD}).status_code == 302
    assert "Being deleted" in text(olga, scope)
    assert queries.find_scope(read_scope(PROD), caller=caller_of(story.ana)).deleting_since == story.clock.now()
    refused = olga.post("/admin/approvals/grant/", FORM | {"identity": "late"})
    assert "is being deleted" in refused.content.decode()
