"""The answer of a policy."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.kernel.errors import NotAllowed


@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` is always given, for yes and for no: a decision explains itself. ``code`` is the reason for programs."""

    allowed: bool
    reason: str
    code: str

    def require(self) -> None:
        """Raise :class:`NotAllowed` with the reason unless allowed."""
        if not self.allowed:
            raise NotAllowed(self.reason, code=self.code)


def allow(reason: str, *, code: str = "allowed") -> Decision:
    return Decision(allowed=True, reason=reason, code=code)


def refuse(reason: str, *, code: str) -> Decision:
    return Decision(allowed=False, reason=reason, code=code)
