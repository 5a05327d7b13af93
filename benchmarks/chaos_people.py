"""Simulated people at their browsers: they ask, approve, look and end, at both web hosts, and write down what they are told.

What they know is what is on the pages. A page is held against the truth while it is looked at; what was sent is held against it
when all is quiet (:mod:`benchmarks.chaos_truth`).
"""

from __future__ import annotations

import enum
import html
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self
from urllib.parse import parse_qsl, urljoin, urlsplit

import requests

_PATIENCE_SECONDS = 30.0
_SENT_AGAIN = 3
_AGAIN_SECONDS = (1.0, 4.0)
_AGAIN_SHARE = 0.7
_ACCOUNTS_EACH = 4
_DURATIONS = ("1m", "1m", "1m", "1h")
_AT_ONCE = ("PowerUserAccess", "ReadOnlyAccess", "ViewOnlyAccess")
_BY_APPROVAL = "AdministratorAccess"
_FORM = "/requests/new/aws_account/"
_REQUEST = re.compile(r"/requests/([0-9a-f-]{36})/$")
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_SAID = re.compile(r'data-said="([^".]+)\.')


class Told(enum.Enum):
    """What a person must believe after an answer. A page of "Not available" says itself that it does not know."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Saying:
    """One answer to something that was sent. ``attempt`` counts how often the same was sent before it, from 1; ``shown`` is the status,
    or what became of the connection. ``request_id`` is where the answer led to, or what was decided or ended."""

    at: float
    person: str
    verb: str
    told: Told
    shown: str
    attempt: int
    submission_id: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A request as its person knows it: told as accepted."""

    request_id: str
    person: str
    needs_approval: bool


@dataclass
class Book:
    """What everybody was told; shared by all threads."""

    sayings: list[Saying] = field(default_factory=list)
    answers: list[tuple[float, str, str]] = field(default_factory=list)
    """Moment, what was asked for, and status or what became of the connection."""
    contradictions: list[str] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    in_hand: set[str] = field(default_factory=set)
    """What somebody is deciding on, or has decided."""
    faults: list[str] = field(default_factory=list)
    """Of these programs themselves."""


class Desk:
    """One person at a browser of their own, which goes to either host. ``word_of`` is the truth: the word of a request's state."""

    def __init__(self, email: str, urls: tuple[str, ...], accounts: tuple[str, ...], book: Book, word_of: Callable[[str], str]) -> None:
        self.email = email
        self.is_busy = threading.Lock()
        self._urls = urls
        self.book = book
        self._word_of = word_of
        self._chance = random.Random(email)
        self._accounts = self._chance.sample(accounts, _ACCOUNTS_EACH)
        self._browser = requests.Session()

    def sign_in(self) -> bool:
        """Through the issuer, in a new session, which takes the place of the old one when it worked."""
        browser, host = requests.Session(), self._chance.choice(self._urls)
        start = self._fetch("sign in", "GET", f"{host}/sign-in/start/", browser=browser)
        if start is None or start.status_code != HTTPStatus.FOUND:
            return False
        asked = dict(parse_qsl(urlsplit(start.headers["Location"]).query))
        login = urljoin(start.headers["Location"], "/login")
        try:
            back = requests.post(login, {**asked, "account": self.email}, allow_redirects=False, timeout=_PATIENCE_SECONDS)
        except requests.RequestException:
            self.book.answers.append((time.time(), "sign in", "issuer away"))
            return False
        done = self._fetch("sign in", "GET", back.headers.get("Location", ""), browser=browser)
        if done is None or done.status_code != HTTPStatus.FOUND:
            return False
        self._browser = browser
        return True

    def look(self) -> None:
        """At one's own requests, one after the other; a page that says what is not so contradicts."""
        mine = [one for one in self.book.known if one.person == self.email]
        if not mine or self._chance.random() < 0.3:
            self._get("home", "/")
            return
        request_id = self._chance.choice(mine[-10:]).request_id
        before = self._word_of(request_id)
        page = self._get("look", f"/requests/{request_id}/")
        if page is None or page.status_code not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
            return
        said = _SAID.search(page.text) if page.status_code == HTTPStatus.OK else None
        word = html.unescape(said[1]) if said else "nothing of the kind"
        if before == self._word_of(request_id) != word:
            self.book.contradictions.append(f"{self.email} read “{word}” of {request_id}, which was “{before}”")

    def ask(self) -> None:
        form = self._form("form", _FORM)
        if form is None:
            return
        needs_approval = self._chance.random() < 0.4
        typed = {
            "account": self._chance.choice(self._accounts),
            "permission_set": _BY_APPROVAL if needs_approval else self._chance.choice(_AT_ONCE),
            "duration": self._chance.choice(_DURATIONS),
            "reason": "Chaos",
            "ticket_id": "CHG-1" if needs_approval else "",
        }
        saying = self._send("ask", _FORM, {**form, **typed}, submission_id=form["submission_id"])
        if saying.told is Told.DONE:
            self.book.known.append(Known(saying.request_id, self.email, needs_approval))

    def approve(self) -> None:
        waiting = [one.request_id for one in self.book.known if one.needs_approval and one.request_id not in self.book.in_hand]
        if waiting:
            # The oldest: people work through their list.
            self._do("approve", waiting[0])
        else:
            self._get("home", "/")

    def end(self) -> None:
        mine = [one for one in self.book.known if one.person == self.email and not one.needs_approval]
        if mine:
            self._do("end", self._chance.choice(mine[-4:]).request_id)

    def _do(self, verb: str, request_id: str) -> None:
        """What one question is asked for first. A redirect instead of the question: it can't be done now, and the page says why."""
        self.book.in_hand.add(request_id)
        path = f"/requests/{request_id}/{verb}/"
        page = self._get(f"{verb}?", path)
        if page is not None and _REQUEST.search(page.headers.get("Location", "")):
            # Done already, by a sending whose answer was lost: nobody looks at it again.
            return
        form = _hidden(page)
        if form is None or self._send(verb, path, {**form, "reason": ""}, request_id=request_id).told is Told.UNKNOWN:
            # Somebody looks at it again.
            self.book.in_hand.discard(request_id)

    def _send(self, verb: str, path: str, data: Mapping[str, str], *, submission_id: str = "", request_id: str = "") -> Saying:
        """The same again after an unclear answer, as the page itself says is safe; now and then somebody leaves it at that."""
        for attempt in range(1, _SENT_AGAIN + 1):
            answer = self._fetch(verb, "POST", f"{self._chance.choice(self._urls)}{path}", data)
            found = _REQUEST.search(answer.headers.get("Location", "")) if answer is not None else None
            saying = Saying(
                at=time.time(),
                person=self.email,
                verb=verb,
                told=_told(answer, is_request=found is not None),
                shown=str(answer.status_code) if answer is not None else "no answer",
                attempt=attempt,
                submission_id=submission_id,
                request_id=request_id or (found[1] if found else ""),
            )
            self.book.sayings.append(saying)
            if saying.told is not Told.UNKNOWN or self._chance.random() > _AGAIN_SHARE:
                break
            time.sleep(self._chance.uniform(*_AGAIN_SECONDS))
        return saying

    def _form(self, name: str, path: str) -> dict[str, str] | None:
        """The hidden fields of the form at ``path``; ``None`` where there is none."""
        return _hidden(self._get(name, path))

    def _get(self, name: str, path: str) -> requests.Response | None:
        page = self._fetch(name, "GET", f"{self._chance.choice(self._urls)}{path}")
        if page is not None and "/sign-in/" in page.headers.get("Location", ""):
            self.sign_in()
        return page

    def _fetch(
        self, name: str, method: str, url: str, data: Mapping[str, str] | None = None, *, browser: requests.Session | None = None
    ) -> requests.Response | None:
        """``None``: no answer came. Redirects are for the caller."""
        try:
            answer = (browser or self._browser).request(method, url, data=data, allow_redirects=False, timeout=_PATIENCE_SECONDS)
        except requests.RequestException:
            self.book.answers.append((time.time(), name, "no answer"))
            return None
        is_signed_out = "/sign-in/" in answer.headers.get("Location", "") and "/sign-in/" not in url
        self.book.answers.append((time.time(), name, "signed out" if is_signed_out else str(answer.status_code)))
        return answer


def _hidden(page: requests.Response | None) -> dict[str, str] | None:
    if page is None or page.status_code != HTTPStatus.OK:
        return None
    return {key: html.unescape(value) for key, value in _HIDDEN.findall(page.text)}


def _told(answer: requests.Response | None, *, is_request: bool) -> Told:
    if answer is None or answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Told.UNKNOWN
    return Told.DONE if is_request else Told.REFUSED


# Of a hundred things that people do.
_SHARES: Mapping[Callable[[Desk], object], int] = {Desk.look: 35, Desk.ask: 35, Desk.approve: 18, Desk.end: 7, Desk.sign_in: 5}


class Crowd:
    """While it is entered somebody does something every so many seconds, whoever has no page open that still loads."""

    def __init__(self, askers: list[Desk], approvers: list[Desk], *, gap_seconds: float, seed: int) -> None:
        self._askers = askers
        self._approvers = approvers
        self._gap_seconds = gap_seconds
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self._pool = ThreadPoolExecutor(len(askers) + len(approvers))
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._pool.shutdown()

    def _run(self) -> None:
        while not self._is_over.wait(self._gap_seconds):
            deed = self._chance.choices(list(_SHARES), weights=list(_SHARES.values()))[0]
            desks = self._approvers if deed is Desk.approve else self._askers
            for desk in self._chance.sample(desks, len(desks)):
                if desk.is_busy.acquire(blocking=False):
                    self._pool.submit(self._let, desk, deed)
                    break

    def _let(self, desk: Desk, deed: Callable[[Desk], object]) -> None:
        try:
            deed(desk)
        except Exception as error:
            # A page that is not as expected, for one: nobody else would hear of it.
            desk.book.faults.append(f"{desk.email}: {type(error).__name__}: {error}")
            raise
        finally:
            desk.is_busy.release()
