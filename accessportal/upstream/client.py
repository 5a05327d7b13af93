"""The provider over HTTP: time limits, sorted errors, a circuit breaker, and new tries where they are safe."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from accessportal.kernel.clock import Clock, SystemClock
from accessportal.kernel.errors import Unavailable
from accessportal.upstream.breaker import Breaker
from accessportal.upstream.errors import ODD_ENTRY, BreakerOpen, Changed, Gone, Refused, Throttled, Transient
from accessportal.upstream.provider import Provider, UpstreamSandbox

CONNECT_SECONDS = 3.05
READ_SECONDS = 10.0
_GET_GAPS_SECONDS = (0.2, 0.8)
_PAGE = 200
# A minute: less is a mistake of units, and nobody could use it.
_SHORTEST_LAB_HOURS = 1 / 60
_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """``url`` is where the provider's API begins (empty: there is no provider); ``token`` is sent as a bearer token."""

    url: str = ""
    token: str = ""


_settings = UpstreamSettings()
_provider: Provider | None = None


def configure(settings: UpstreamSettings) -> None:
    """Called once at start-up."""
    global _settings, _provider
    _settings, _provider = settings, None


def is_set() -> bool:
    """Whether this installation has a provider."""
    return bool(_settings.url)


def current_url() -> str:
    """Where the provider's API begins; empty where there is none."""
    return _settings.url


def provider() -> Provider:
    """Return the provider of this installation. :raises Unavailable: when none is set."""
    global _provider
    if _provider is None:
        if not _settings.url:
            raise Unavailable("No sandbox provider is set: give PORTAL_SANDBOX_PROVIDER_URL.", code="provider_unset")
        _provider = HttpProvider(url=_settings.url, token=_settings.token, clock=SystemClock())
    return _provider


class HttpProvider:
    """See docs/subsystems/upstream.md for the addresses and bodies that are expected of a provider."""

    def __init__(self, *, url: str, token: str, clock: Clock, session: requests.Session | None = None) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._breaker = Breaker(clock=clock)
        self._session = session or requests.Session()
        self._session.headers.update({"Accept": "application/json", "User-Agent": "accessportal"})
        # Otherwise a ~/.netrc that names the host, or a default, puts its own password in the token's place.
        self._session.auth = lambda request: request
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def list_sandboxes(self) -> Iterator[tuple[UpstreamSandbox, ...]]:
        cursor, seen = "", set[str]()
        for _ in range(_MOST_PAGES):
            page = self._read("/sandboxes", {"limit": str(_PAGE)} | ({"cursor": cursor} if cursor else {}))
            rows, cursor = page.get("sandboxes"), page.get("next_cursor") or ""
            if not isinstance(rows, list) or not isinstance(cursor, str) or cursor in seen:
                raise Refused("malformed", "a page of the list has no list, or leads in a circle")
            yield tuple(_sandbox(row) for row in rows)
            if not cursor:
                return
            seen.add(cursor)
        raise Refused("malformed", f"the list has more than {_MOST_PAGES} pages")

    def get_sandbox(self, external_id: str) -> UpstreamSandbox | None:
        try:
            found = _sandbox(self._read(_path_of(external_id)))
        except Gone:
            return None
        if found.external_id != external_id:
            raise Refused("malformed", f"asked for {external_id}, answered for {found.external_id}")
        return found

    def delete_sandbox(self, external_id: str, *, generation: str = "") -> None:
        # Sent once: the caller knows for how long its right to delete lasts, and tries again by itself.
        self._send("DELETE", _path_of(external_id), headers={"If-Match": f'"{generation}"'} if generation else {})

    def _read(self, path: str, parameters: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        for gap in _GET_GAPS_SECONDS:
            try:
                return self._json("GET", path, parameters)
            except BreakerOpen:
                raise
            except Transient:
                self._clock.sleep(gap * random.uniform(0.5, 1.5))
        return self._json("GET", path, parameters)

    def _json(self, method: str, path: str, parameters: Mapping[str, str] | None) -> Mapping[str, Any]:
        answer = self._send(method, path, parameters=parameters)
        try:
            body = answer.json()
        except ValueError as error:
            raise Refused("malformed", "the answer is not JSON") from error
        if not isinstance(body, dict):
            raise Refused("malformed", "the answer is not a JSON object")
        return body

    def _send(
        self, method: str, path: str, *, parameters: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        if not self._breaker.may_call():
            raise BreakerOpen("breaker_open", "the provider has not answered for a while; it is asked again soon")
        try:
            answer = self._session.request(
                method,
                self._url + path,
                params=parameters,
                headers=headers,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                # A redirect would carry the deletion, or the token, to where nobody meant it to go.
                allow_redirects=False,
            )
        except requests.RequestException as error:
            self._breaker.failed()
            raise Transient(type(error).__name__, str(error)) from error
        if answer.status_code >= 500:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        _raise_for(answer)
        return answer


def _raise_for(answer: requests.Response) -> None:
    code, words = str(answer.status_code), answer.text[:200] or answer.reason
    match answer.status_code:
        case 404 | 410:
            raise Gone(code, words)
        case 412:
            raise Changed(code, words)
        case 429:
            raise Throttled(code, words)
        # A conflict says that it can't be done now, and not that it was done.
        case status if status >= 500 or status in {408, 409}:
            raise Transient(code, words)
        case status if not 200 <= status < 300:
            raise Refused(code, words)


def _path_of(external_id: str) -> str:
    return f"/sandboxes/{quote(external_id, safe='')}"


def _sandbox(row: Any) -> UpstreamSandbox:
    """:raises Refused: for what is no sandbox; a list with one such entry is not to be trusted at all."""
    try:
        found = UpstreamSandbox(
            external_id=_text(row["id"]),
            name=_text(row["name"]),
            is_ready=_text(row["state"]) == "ready",
            lab_duration_hours=float(row["lab_duration_hours"]),
            generation=str(row.get("generation") or ""),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(ODD_ENTRY, f"an entry is no sandbox ({error!r})") from error
    # As an address they would mean another place.
    if found.external_id in {".", ".."}:
        raise Refused(ODD_ENTRY, f"“{found.external_id}” is no id that an address can hold")
    if not _SHORTEST_LAB_HOURS <= found.lab_duration_hours <= 24 * 365:
        raise Refused(ODD_ENTRY, f"{found.external_id} has a lab duration of {found.lab_duration_hours} hours")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 256 or not value.isprintable():
        raise ValueError(f"{value!r} is no name of 1 to 256 printable characters")
    return value
