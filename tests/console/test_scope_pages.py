"""The law of scopes on the pages: who sees what of each kind of scope, does what there, and learns nothing of what is not theirs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from accessportal.authz import operations, queries
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType, ScopeKind
from accessportal.web.addresses import KeyConverter
from tests.api.test_authz import HOMES, REACHED
from tests.console.test_authz import counted, whole
from tests.depth import IS_DEEP
from tests.fixtures_story import Story
from tests.sandboxes.test_requests import requests

SignIn = Callable[[str], Client]
BOTS = {scope: f"bot-{number}" for number, scope in enumerate(HOMES)}
# What lies in a scope and below it: below the global one lies nothing, it stands beside the others.
BELOW = {scope: REACHED.get(scope, {scope}) for scope in HOMES} | {"global": {"global"}}
ABSENT = "nobody"
RECORDS = {"approvals": "docs/1#GET", "relationships": "reads#docs/1"}


def fill(story: Story) -> None:
    """In each scope one approval and one relationship, each of a bot of its own."""
    now, caller = story.clock.now(), caller_of(story.olga)
    for scope, bot in BOTS.items():
        where, by = read_scope(scope), "olga@example.com"
        operations.grant(APPROVALS, Approval(where, bot, "docs/1", "GET", by, now), ttl_seconds=3_600, caller=caller, now=now)
        link = Relationship(where, bot, "reads", "docs/1", RelationType.TRUST, by, now)
        operations.grant(RELATIONSHIPS, link, ttl_seconds=3_600, caller=caller, now=now)


def page_of(records: str, scope: str, who: str) -> str:
    return f"/admin/{records}/{KeyConverter().to_url(f'{scope}#{who}#{RECORDS[records]}')}/"


def shown(client: Client, records: str, **query: str) -> set[str]:
    """The scopes whose records a list shows, to its end."""
    told = whole(client, f"/admin/{records}/?{urlencode(query)}")
    return {scope for scope, bot in BOTS.items() if page_of(records, scope, bot) in told}


def test_overseers_see_each_scope_and_in_it_what_the_law_says(story: Story, as_person: SignIn) -> None:
    """By lists over all pairs of scopes, by checks over all of them in deep runs; the two kinds of records are asked about in turn."""
    fill(story)
    ana = as_person("ana")

    assert shown(ana, "relationships", pattern="ending") == set(HOMES)
    for number, asked in enumerate(HOMES):
        records, neighbour = ("approvals", "relationships")[number % 2], HOMES[number - 1]
        target = {"resource": "docs/1", "action": "GET"} if records == "approvals" else {"object": "docs/1"}
        assert shown(ana, records, pattern="scope", q=asked, below="yes") == BELOW[asked]
        assert shown(ana, records, pattern="target", q=asked, **target) == {asked}
        for scope in HOMES if IS_DEEP else (asked, neighbour):
            for about, verb in (("approval", "GET"), ("chain", "reads")):
                question = {"about": about, "scope": asked, "who": BOTS[scope], "verb": verb, "target": "docs/1"}
                assert ana.get("/admin/check-record/", question).context["answer"].is_allowed is (asked == scope), (asked, scope)
            assert shown(ana, records, pattern="holder", q=asked, holder=BOTS[scope]) == {asked} & {scope}
            assert ana.get(page_of(records, asked, BOTS[scope])).status_code == (200 if asked == scope else 404)


def test_the_pages_of_scopes_count_what_the_law_says(story: Story, as_person: SignIn) -> None:
    fill(story)
    ana = as_person("ana")

    counted_list = ana.get("/admin/scopes/?pattern=counted").content.decode()
    assert all(f'hx-get="/admin/scopes/{scope.replace(":", "~3A")}/counts/"' in counted_list for scope in HOMES)
    for scope in HOMES if IS_DEEP else ("tenant:acme", "custom:a", "env:prod"):
        assert ana.get(f"/admin/scopes/{scope}/").context["has_below"] is (read_scope(scope).kind in (ScopeKind.TENANT, ScopeKind.CUSTOM))
        assert counted(ana, scope) == "1 approval and 1 relationship"
        wide = len(BELOW[scope])
        assert counted(ana, scope, "?of=approval&below=yes") == f"{wide} approval{'s' if wide > 1 else ''}", scope


# Every page about a scope or a record, as an address and what is posted there; what an operator and an auditor are answered where the
# record is there, and where it is not. Whatever it is about, everybody else is answered alike.
PAGES: dict[str, tuple[str, dict[str, str] | None, tuple[int, int], tuple[int, int]]] = {
    "list": ("/admin/{records}/?pattern=scope&q={scope}", None, (200, 200), (200, 200)),
    "holder": ("/admin/{records}/?pattern=holder&q={scope}&holder={who}", None, (200, 200), (200, 200)),
    "check": ("/admin/check-record/?about=approval&scope={scope}&who={who}&verb=GET&target=docs/1", None, (200, 200), (200, 200)),
    "record": ("{page}", None, (200, 200), (404, 404)),
    "history": ("{page}history/", None, (200, 200), (404, 404)),
    "extend": ("{page}do/extend/", {"confirmed": "yes", "duration": "2h"}, (302, 403), (404, 404)),
    "revoke": ("{page}do/revoke/", {}, (200, 403), (404, 404)),
    "revoke several": ("/admin/{records}/bulk/revoke/", {"key": "{scope}#{who}#{names}"}, (200, 200), (200, 200)),
    "grant": ("/admin/{records}/grant/", {"scope": "{scope}", "identity": "{who}"}, (400, 403), (400, 403)),
    "scopes": ("/admin/scopes/?pattern=named&q={scope}", None, (200, 200), (200, 200)),
    "counts": ("/admin/scopes/{scope}/counts/", None, (200, 200), (200, 200)),
    "scope": ("/admin/scopes/{scope}/", None, (200, 200), (200, 200)),
    "policy": ("/admin/scopes/{scope}/do/policy/", {}, (200, 403), (200, 403)),
    "delete": ("/admin/scopes/{scope}/do/delete/", {}, (200, 403), (200, 403)),
}


def ask(client: Client, page: str, scope: str, who: str) -> Any:
    """Pages of both kinds of records are built by the same class: each page is asked about one of them, in turn."""
    url, data, *_ = PAGES[page]
    records = tuple(RECORDS)[list(PAGES).index(page) % 2]
    words = {"records": records, "scope": scope, "who": who, "names": RECORDS[records], "page": page_of(records, scope, who)}
    if data is None:
        return client.get(url.format(**words))
    return client.post(url.format(**words), {name: value.format(**words) for name, value in data.items()})


def asked(*, most: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Each page with the scopes that it is asked about: ``most`` of them in turn, and all in deep runs."""
    for number, page in enumerate(PAGES):
        turned = [HOMES[(number + 3 * turn) % len(HOMES)] for turn in range(len(HOMES))]
        yield page, turned if IS_DEEP else turned[:most]


def test_what_operators_and_auditors_may_do_is_the_same_in_each_scope(story: Story, as_person: SignIn) -> None:
    fill(story)
    olga, ana = as_person("olga"), as_person("ana")

    for page, scopes in asked(most=1):
        *_, there, absent = PAGES[page]
        for scope in scopes:
            for who, expected in ((BOTS[scope], there), (ABSENT, absent)):
                assert tuple(ask(one, page, scope, who).status_code for one in (olga, ana)) == expected, (page, scope, who)


def plain(answer: Any) -> bytes:
    """Without what each answer has anew."""
    return re.sub(rb'nonce="[^"]*"|csrf[a-z]*"[^>]*|[0-9a-f]{8}-[0-9a-f-]{27}', b"", answer.content)


@pytest.mark.parametrize("name", ["mallory", "alice", "bob"])
def test_everybody_else_is_answered_alike_whatever_is_there(
    story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A stranger, one whom rules let ask, and one who decides requests: byte for byte, and by the same reads."""
    fill(story)
    client = as_person(name)
    # What a page's head tells of one's own is read once.
    client.get("/admin/")

    for page, scopes in asked(most=2):
        heard = set[tuple[int, bytes, tuple[str, ...]]]()
        for scope, is_there in itertools.product(scopes, (True, False)):
            with requests(monkeypatch) as made:
                answer = ask(client, page, scope, BOTS[scope] if is_there else ABSENT)
            heard.add((answer.status_code, plain(answer), tuple(made)))
        assert [status for status, *_ in heard] == [403], page
    assert all(queries.count_in_scope(APPROVALS, read_scope(one), caller=caller_of(story.ana), now=story.clock.now()) for one in HOMES)
