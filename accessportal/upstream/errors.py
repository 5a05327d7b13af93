"""What can go wrong with the provider, sorted once."""

from __future__ import annotations

# The code of a ``Refused`` list that was answered, and has an entry that is no sandbox.
ODD_ENTRY = "malformed_entry"


class UpstreamError(Exception):
    """A call to the provider failed. ``code`` is the HTTP status, or the name of what went wrong on the way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Transient(UpstreamError):
    """5xx, no answer, or busy (409). A deletion whose answer was lost may have taken effect."""


class Throttled(Transient):
    """The provider asks for fewer calls; this one had no effect."""


class BreakerOpen(Transient):
    """Not called: the last calls all failed, and the provider gets a rest."""


class Gone(UpstreamError):
    """The provider knows no such sandbox."""


class Changed(UpstreamError):
    """The sandbox is another generation than the caller named; this call had no effect."""


class Refused(UpstreamError):
    """The provider will not do it, or answers what can't be understood."""
