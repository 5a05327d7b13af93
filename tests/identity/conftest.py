"""Somebody at a browser, as far as HTTP goes: the way to the issuer and back, followed by hand."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.http import HttpResponseBase
from django.test import Client

from tests.fixtures_story import Story
from tests.oidc.local_issuer import LocalIssuer
from tests.portal.conftest import signed_in

__all__ = ["signed_in"]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """The browser's next step is the test's to make."""


@dataclass
class Traveller:
    """One browser. ``asked`` is what the portal told the issuer, ``back`` the address that the issuer sent the browser back to."""

    client: Client = field(default_factory=Client)
    asked: dict[str, str] = field(default_factory=dict)
    back: str = ""

    def start(self, *, next_page: str = "") -> HttpResponseBase:
        answer = self.client.get("/sign-in/start/", {"next": next_page} if next_page else {})
        if answer.status_code == 302:
            self.asked = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        return answer

    def log_in(self, location: str, account: str) -> str:
        """At the issuer's page; the address that it leads back to."""
        address = urlsplit(location)
        form = urlencode({**dict(parse_qsl(address.query)), "account": account}).encode()
        opener = urllib.request.build_opener(_Stay)
        try:
            opener.open(f"{address.scheme}://{address.netloc}/login", form)
        except urllib.error.HTTPError as answer:
            self.back = answer.headers["Location"]
            answer.close()
        return self.back

    def come_back(self) -> Any:
        way = urlsplit(self.back)
        return self.client.get(f"{way.path}?{way.query}")

    def sign_in(self, account: str, *, next_page: str = "") -> Any:
        """All the way; the answer to coming back."""
        answer = self.start(next_page=next_page)
        assert answer.status_code == 302, answer
        self.log_in(answer.headers["Location"], account)
        return self.come_back()


@pytest.fixture
def traveller(story: Story, issuer: LocalIssuer) -> Traveller:
    return Traveller()
