"""The one tree of errors that a domain function may raise.

Faces map them once: ``NotFound`` 404, ``NotAllowed`` 403, ``Conflict`` 409, ``InvalidRequest`` back to the form,
``Unavailable`` 503 with a reference. ``code`` is for programs, the message is for people.
"""

from __future__ import annotations


class PortalError(Exception):
    """Something could not be done; ``code`` says what to a program, ``str()`` to a person."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class NotFound(PortalError):
    """The thing does not exist, or is invisible to the actor."""


class NotAllowed(PortalError):
    """The actor may not do this; the message says why and who may."""


class Conflict(PortalError):
    """The thing is no longer in the state that the change needs; ``present`` is how it stands."""

    def __init__(self, message: str, *, code: str, present: object | None = None) -> None:
        super().__init__(message, code=code)
        self.present = present


class InvalidRequest(PortalError):
    """The input breaks a rule. ``field`` names the input; the message names the rule and the remedy."""

    def __init__(self, message: str, *, code: str, field: str) -> None:
        super().__init__(message, code=code)
        self.field = field


class Unavailable(PortalError):
    """Something we depend on did not answer. Nothing is known about the result; trying again is right."""


class NoAnswer(Unavailable):
    """No answer came, which passes by itself: the same may go well in a moment."""
