"""Lists as files: every list, safe in spreadsheets, whole or visibly not, and of any length in the same memory."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.conf import settings
from django.http import StreamingHttpResponse
from django.test import Client

from accessportal.access_requests import queries
from accessportal.console.resources import RESOURCES
from accessportal.history import policy as history
from accessportal.history.operations import follow
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page, Unreadable
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes.states import RunKind
from accessportal.web import exporting
from accessportal.web.exporting import Listed, cell, exported, plain, send
from tests.console.test_authz import PROD, grant, link
from tests.depth import IS_DEEP
from tests.fixtures_story import Story
from tests.test_routes import build

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
NOW = datetime(2026, 11, 29, 14, 45, tzinfo=UTC)


def table_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True))


def fetched(client: Client, url: str) -> tuple[str, str]:
    """The name of the file, and what is in it."""
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return response.headers["Content-Disposition"], b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


@pytest.fixture
def filled(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Something on nearly every list."""
    build(story)
    monkeypatch.setattr(history, "PARTS", 1)
    follow(workers=1, clock=story.clock)
    grant(story, PROD)
    link(story, "bot", "docs/1")
    sandboxes.order_run(kind=RunKind.SYNC, actor=story.olga, now=story.clock.now())
    return story


INPUTS = {
    "requests/person": "&q=alice@example.com",
    "requests/account": "&q={account}",
    "requests/id": "&q={request}",
    "audit/actor": "&q=alice@example.com",
    "audit/entity": "&q=request%23{request}",
    "groups/under": "&q=/engineering",
    "leases/person": "&q=alice@example.com",
    "people/group": "&q=/engineering",
    "tokens/maker": "&q=olga@example.com",
    "approvals/scope": "&q={scope}",
    "approvals/holder": "&q={scope}&holder=bot",
    "approvals/target": "&q={scope}&resource=docs/1&action=GET",
    "relationships/scope": "&q={scope}",
    "relationships/holder": "&q={scope}&holder=bot",
    "relationships/target": "&q={scope}&object=docs/1",
    "history/who": "&q={account}",
    "history/what": "&q=alice@example.com",
    "scopes/named": "&q={scope}",
}


def test_every_list_is_there_as_csv_and_as_json_with_the_same_rows(filled: Story, as_person: SignIn) -> None:
    olga, empty = as_person("olga"), set()
    request = filled.pending_of("alice@example.com")[0]
    for resource in RESOURCES.values():
        for pattern in resource.patterns:
            given = INPUTS.get(f"{resource.name}/{pattern.name}", "&q=x" if pattern.inputs and pattern.inputs[0].required else "")
            query = f"?pattern={pattern.name}{given}".format(scope=PROD, account=request.account_id or "1" * 12, request=request.request_id)
            url = f"/admin/{resource.name}/export"
            name, text = fetched(olga, f"{url}/csv/{query}")
            told = json.loads(fetched(olga, f"{url}/json/{query}")[1])
            assert name == f'attachment; filename="accessportal-{resource.name}-{pattern.name}-{filled.clock.now():%Y-%m-%d}.csv"'
            names, *rows, end = [row for row in table_of(text) if not row[0].startswith("# Known up to")]
            assert names == [column.name for column in pattern.file_columns or resource.file_columns]
            assert end == [f"# End of list: {told['row_count']} rows"]
            assert len(rows) == told["row_count"] == len(told["rows"])
            assert all(list(row) == names for row in told["rows"])
            assert rows == [[cell(value) for value in row.values()] for row in told["rows"]]
            if not rows:
                empty.add(f"{resource.name}/{pattern.name}")
    assert {one.partition("/")[0] for one in empty} & {"audit", "rules", "accounts", "permission-sets", "approvals", "scopes"} == set()
    assert empty & {"requests/active", "people/all", "leases/all", "account-pool/all", "sandboxes/available", "tokens/all"} == set()


def test_the_page_offers_the_files_of_what_it_shows(story: Story, as_person: SignIn) -> None:
    for _ in range(28):
        story.ask_for_prod()
    olga = as_person("olga")

    page = olga.get("/admin/requests/?pattern=all&q=alice@example.com")
    (_, url), _ = page.context["exports"]

    assert url == "/admin/requests/export/csv/?pattern=all&q=alice%40example.com"
    assert len(table_of(fetched(olga, url)[1])) == 30
    assert "exports" not in olga.get("/admin/requests/?pattern=all&q=mallory@example.com").content.decode()


def test_whoever_may_not_see_a_list_does_not_get_its_file(story: Story, as_person: SignIn) -> None:
    story.ask_for_prod()
    waiting = story.ask(account="payments-prod", permission_set="PowerUserAccess")
    bob = as_person("bob")

    assert waiting.request_id in fetched(bob, "/admin/requests/export/csv/")[1]
    assert bob.get("/admin/requests/export/csv/?pattern=active").status_code == 403
    assert bob.get("/admin/audit/export/csv/").status_code == 403
    assert as_person("mallory").get("/admin/requests/export/csv/").status_code == 403


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("audit/export/csv/?q=yesterday", 400, "is not a day"),
        ("audit/export/csv/?pattern=actor", 400, "Actor is missing"),
        ("audit/export/pdf/", 404, "csv or json"),
        ("audit/export/csv/?pattern=nothing", 404, "no list"),
        ("requests/export/csv/?pattern=all&statee=active", 400, "statee can&#x27;t be used: it is not known here. Did you mean state?"),
        ("requests/export/csv/?pattern=active&q=alice@example.com", 400, "The parameter q can&#x27;t be used"),
        ("requests/export/json/?patern=active", 400, "Did you mean pattern?"),
    ],
)
def test_what_can_not_be_exported_is_refused_before_anything_is_sent(as_person: SignIn, query: str, status: int, words: str) -> None:
    response = as_person("olga").get(f"/admin/{query}")

    assert response.status_code == status
    assert words in response.content.decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+41 44 668 18 00", "'+41 44 668 18 00"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("\tx", "'\tx"),
        ("  =1", "'  =1"),
        ('"=1"', '\'"=1"'),
        ("＝1", "'＝1"),
        ("a;=1", "a;'=1"),
        ("- first\n- second", "'- first\n'- second"),
        ("a=b", "a=b"),
        ("per-cent, x; y", "per-cent, x; y"),
        ("𝒳 \u202eright to left\u202c é \u2028 🔑", "𝒳 \u202eright to left\u202c é \u2028 🔑"),
        (f"{' ' * 99}=1", f"'{' ' * 99}=1"),
        ("\u00a0\u200b\x00\x0b=1", "'\u00a0\u200b\x00\x0b=1"),
        ("a;\ufeff@x", "a;'\ufeff@x"),
    ],
)
def test_a_spreadsheet_takes_no_text_for_a_formula(text: str, shown: str) -> None:
    assert cell(text) == shown


@pytest.mark.parametrize(
    ("value", "as_json", "as_cell"),
    [
        (None, None, ""),
        (True, True, "true"),
        (-5, -5, "-5"),
        (
            datetime(2026, 11, 29, 15, 45, 1, 234_567, tzinfo=timezone(timedelta(hours=1))),
            "2026-11-29T14:45:01.234Z",
            "2026-11-29T14:45:01.234Z",
        ),
        (frozenset({"b", "a"}), ["a", "b"], "a; b"),
        (("a", "=b"), ["a", "=b"], "a;' =b"),
        ({"at": NOW, "n": (1,)}, {"at": "2026-11-29T14:45:00.000Z", "n": [1]}, '{"at": "2026-11-29T14:45:00.000Z", "n": [1]}'),
    ],
)
def test_values_are_written_the_same_way_everywhere(value: object, as_json: object, as_cell: str) -> None:
    assert plain(value) == as_json
    assert cell(plain(value)) == as_cell


@dataclass(frozen=True)
class One:
    number: int
    text: str


ODD = '=HYPERLINK("http://x","y")\r\n,"; 𝒳\u2028\x00\udc80 ' + "é" * 60


def listed(rows: int, *, at_once: int = 200, fails_after: int | None = None, unreadable: tuple[Unreadable, ...] = ()) -> Listed:
    def fetch(cursor: str | None) -> Page[One]:
        start = int(cursor or 0)
        if fails_after is not None and start >= fails_after:
            raise Unavailable("The database did not answer.", code="store_unavailable")
        end = min(start + at_once, rows)
        return Page(tuple(One(number, ODD) for number in range(start, end)), str(end) if end < rows else None, unreadable)

    return Listed(name="ones", columns=exported("number", "text"), fetch=fetch, asked={"q": ODD}, now=NOW)


def read(response: StreamingHttpResponse) -> Iterator[bytes]:
    try:
        yield from response
    finally:
        response.close()


def test_odd_texts_come_back_as_they_were() -> None:
    text = b"".join(read(send(listed(3), "csv"))).decode()
    told = json.loads(b"".join(read(send(listed(3), "json"))))

    assert text.startswith("\ufeff")
    assert [row["text"] for row in told["rows"]] == [ODD] * 3
    assert table_of(text)[1] == ["0", "'" + ODD.replace("\udc80", "\\udc80")]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_list_that_breaks_off_does_not_look_whole(form: str) -> None:
    sent: list[bytes] = []

    with pytest.raises(Unavailable):
        sent.extend(read(send(listed(1000, fails_after=400), form)))
    with pytest.raises(Unavailable):
        send(listed(1000, fails_after=0), form)

    text = b"".join(sent).decode()
    assert '"number": 399' in text or '"399"' in text
    if form == "json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
    else:
        assert table_of(text)[-1][0].startswith("# NOT WHOLE: the list could not be read on after 400 rows.")
        assert "# End of list" not in text


def test_a_failing_page_breaks_the_answer_off(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    story.carry_out(story.ask(seconds=3600))
    whole = queries.list_active

    def fail_later(*, cursor: str | None, **part: Any) -> Page[Any]:
        if cursor:
            raise Unavailable("The database did not answer.", code="store_unavailable")
        return Page(whole(cursor=None, **part).items, "more")

    monkeypatch.setattr(queries, "list_active", fail_later)
    response = as_person("olga").get("/admin/requests/export/csv/?pattern=active")
    sent: list[bytes] = []

    with pytest.raises(Unavailable):
        sent.extend(response.streaming_content)  # type: ignore[attr-defined]
    assert b"# NOT WHOLE" in sent[-1]


def test_what_can_not_be_read_is_named_in_the_file() -> None:
    lost = (Unreadable("requests", "7f1c", "=no such status"),)

    rows = table_of(b"".join(read(send(listed(1, unreadable=lost), "csv"))).decode())
    told = json.loads(b"".join(read(send(listed(1, unreadable=lost), "json"))))

    assert rows[-2] == [f"# {lost[0]}"]
    assert told["remarks"] == [str(lost[0])]


def test_an_empty_list_is_a_whole_file() -> None:
    assert table_of(b"".join(read(send(listed(0), "csv"))).decode()) == [["number", "text"], ["# End of list: 0 rows"]]
    assert json.loads(b"".join(read(send(listed(0), "json"))))["rows"] == []


def test_others_wait_while_files_are_sent_and_a_closed_one_lets_the_next_in() -> None:
    sent = [send(listed(1), "csv") for _ in range(max(1, settings.WEB_THREADS // 4))]
    with pytest.raises(Unavailable) as refused:
        send(listed(1), "csv")
    assert refused.value.code == exporting.EXPORTS_BUSY
    for one in sent:
        one.close()
        one.close()

    for _ in range(20):
        send(listed(1), "csv").close()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_longer_list_takes_no_more_memory(form: str) -> None:
    def peak(rows: int) -> tuple[int, int]:
        tracemalloc.start()
        size = sum(map(len, read(send(listed(rows), form))))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size, most

    peak(400)
    short, long = peak(1_000), peak(100_000 if IS_DEEP else 5_000)

    assert long[0] > short[0] * 4.9
    assert long[1] < short[1] * 1.2 + 20_000
