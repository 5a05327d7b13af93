"""Headers that Django reads before any middleware: whatever is in them costs milliseconds, and none stops a server's process."""

from __future__ import annotations

import encodings
import io
import time
from typing import Any
from urllib.parse import quote

import pytest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http.multipartparser import MultiPartParserError
from django.test import Client, RequestFactory

from accessportal.web.headers import judged
from tests.fixtures_story import Story

HTMX = {"HX-Request": "true", "HX-Current-URL-URI-AutoEncoded": "true"}
MARKS = quote("\u0301\u0323")


def read(**environ: Any) -> WSGIRequest:
    """The request that Django makes of these variables."""
    seen: list[WSGIRequest] = []

    def application(given: dict[str, Any], _start: Any) -> list[bytes]:
        seen.append(WSGIRequest(given))
        return []

    judged(application)({**RequestFactory().get("/").environ, **environ}, lambda *_: lambda _: None)
    return seen[0]


def form_of(charset: str, letters: int) -> dict[str, Any]:
    body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"a" * letters + b"\r\n--x--\r\n"
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    return {"REQUEST_METHOD": "POST", "CONTENT_TYPE": kind, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}


COOKIES = ['"' + "\\" * 400_000 + '"', ";".join(['"' + '\\"' * 1_000 + '"'] * 300), '"' + '\\"' * 300_000, ";" * 800_000]
ODD = ["text/plain; charset=base64", "text/plain; charset=zlib", "a/b; charset*=utf-8''punycode", "a/b; c*=no''d"]


@pytest.mark.parametrize("value", COOKIES)
def test_cookies_cost_milliseconds(value: str) -> None:
    """Of 32,000 characters Python made 4 s; a server takes 100 headers of 8,190."""
    began = time.process_time()
    _ = read(HTTP_COOKIE=f"a={value}").COOKIES

    assert time.process_time() - began < 0.5


def test_the_cookies_of_browsers_are_all_read() -> None:
    ours = {"sessionid": "s" * 32, "csrftoken": "c" * 32, "messages": "m" + '"' * 900, "other": "x" * 4_000}
    written = [f"{name}={value}" for name, value in ours.items() if name != "messages"]
    written.insert(1, 'messages="m' + '\\"' * 900 + '"')

    found = read(HTTP_COOKIE="; ".join(written)).COOKIES
    assert found == ours


def test_what_is_too_much_leaves_the_others() -> None:
    found = read(HTTP_COOKIE=f'sessionid=abc; a="{chr(92) * 6_000}"; csrftoken=def').COOKIES

    assert found == {"sessionid": "abc", "csrftoken": "def"}


@pytest.mark.parametrize("charset", ["punycode", "PUNYCODE", '"punycode"', "idna", "unicode_escape"])
def test_a_body_in_an_odd_character_set_costs_milliseconds(charset: str) -> None:
    """In punycode, 400,000 letters took 4 s, and four times as long each time that they were doubled twice."""
    request = read(**form_of(charset, 400_000))
    began = time.process_time()
    with pytest.raises(MultiPartParserError, match="boundary"):
        _ = request.POST

    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_character_set_is_no_fault_of_the_server(kind: str) -> None:
    """Django's own objects of a request could not be made: the server wrote a trace, and no page."""
    request = read(QUERY_STRING="because=idle", CONTENT_TYPE=kind)

    assert request.GET["because"] == "idle"
    assert request.encoding == "iso-8859-1"


@pytest.mark.parametrize("kind", ["text/plain; charset={}", "a/b; c*={}''d", "a/b; c*0*={}''d"])
def test_made_up_character_sets_fill_no_memory(kind: str) -> None:
    """Python never forgets the name of one that there is not: of 8,000 letters each, a million would be all that a machine has."""
    for number in range(3):
        _ = read(CONTENT_TYPE=kind.format(f"made-up-{number}"), QUERY_STRING="a=b").GET

    assert [name for name in encodings._cache if "made" in name] == []


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", "us-ascii"])
def test_the_character_sets_of_browsers_and_programs_are_read(charset: str) -> None:
    assert read(**form_of(charset, 3)).POST.dict() == {"a": "aaa"}


@pytest.mark.django_db
def test_the_server_s_entry_has_them_judged() -> None:
    answers: list[str] = []
    environ = {**RequestFactory().get("/healthz").environ, "CONTENT_TYPE": "text/plain; charset=base64", "QUERY_STRING": "a=b"}
    judged(WSGIHandler())(environ, lambda status, *_: answers.append(status) or (lambda _: None))  # type: ignore[func-returns-value]

    assert answers == ["200 OK"]


@pytest.mark.parametrize("address", ["http://[", "http://a" + MARKS * 60_000, "http://testserver/" + "a" * 10_000, "http://\u2100/"])
def test_a_page_s_address_as_a_stranger_has_it(story: Story, address: str) -> None:
    """An anonymous answer, without a fault and in no time; the one with the marks took 15 s."""
    began = time.process_time()
    answer = Client().get("/", headers={**HTMX, "HX-Current-URL": quote(address, safe=":/%[")})

    assert time.process_time() - began < 1
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (200, "/sign-in/?next=/")
