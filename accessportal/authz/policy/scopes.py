"""What a scope may be called, and which one reaches which (seed 003, ``validate_scope_access``)."""

from __future__ import annotations

import re

from accessportal.authz.states import GLOBAL, LONGEST_PART, LONGEST_SCOPE, MOST_PARTS, Scope, ScopeKind, UnauthorizedScopeAccess
from accessportal.kernel.errors import InvalidRequest

_PART = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_PART - 1}}}", re.ASCII)
_SHAPES = "global, tenant:T, env:E, tenant:T:env:E or custom:A:B"


def read_scope(text: str, *, field: str = "scope") -> Scope:
    """``text`` as a scope.

    :raises InvalidRequest: naming ``field``, the part and the rule.
    """
    if len(text) > LONGEST_SCOPE:
        message = f"A scope has at most {LONGEST_SCOPE} characters, and this one has {len(text):,}. Shorten its parts."
        raise InvalidRequest(message, code="scope_too_long", field=field)
    match text.split(":"):
        case ["global"]:
            return GLOBAL
        case ["tenant", _] | ["env", _] | ["tenant", _, "env", _] | ["custom", _, *_]:
            scope = Scope(text)
        case _:
            message = f"This is no scope: write {_SHAPES}. No part holds a “:”."
            raise InvalidRequest(message, code="scope_unreadable", field=field)
    _check_parts(scope.parts, field)
    return scope


def _check_parts(parts: tuple[str, ...], field: str) -> None:
    if len(parts) > MOST_PARTS:
        message = f"A custom scope has at most {MOST_PARTS} parts, and this one has {len(parts)}. Leave some out."
        raise InvalidRequest(message, code="scope_too_deep", field=field)
    for number, part in enumerate(parts, start=1):
        if not _PART.fullmatch(part):
            message = (
                f"Part {number} of the scope can't be used: 1 to {LONGEST_PART} letters a to z, digits, “.”, “_” and “-”, "
                "beginning with a letter or a digit."
            )
            raise InvalidRequest(message, code="scope_part_unusable", field=field)


def reaches(caller: Scope, asked: Scope) -> bool:
    """Whether ``caller`` may use ``asked``: global all, a tenant itself and its environments, a path itself and what lies below it."""
    match caller.kind, asked.kind:
        case ScopeKind.GLOBAL, _:
            return True
        case ScopeKind.TENANT, ScopeKind.TENANT_ENVIRONMENT:
            return asked.parts[0] == caller.parts[0]
        case ScopeKind.CUSTOM, ScopeKind.CUSTOM:
            return asked.parts[: len(caller.parts)] == caller.parts
    return caller == asked


def require_reach(caller: Scope, asked: Scope) -> None:
    """:raises UnauthorizedScopeAccess: unless ``caller`` reaches ``asked``."""
    if not reaches(caller, asked):
        raise UnauthorizedScopeAccess


def line_of(scope: Scope) -> tuple[Scope, ...]:
    """``scope`` and what lies above it, the nearest first, the global scope last."""
    parts = scope.parts
    match scope.kind:
        case ScopeKind.GLOBAL:
            return (scope,)
        case ScopeKind.TENANT_ENVIRONMENT:
            return (scope, Scope(f"tenant:{parts[0]}"), GLOBAL)
        case ScopeKind.CUSTOM:
            above = (Scope(":".join(("custom", *parts[:length]))) for length in range(len(parts), 0, -1))
            return (*above, GLOBAL)
    return (scope, GLOBAL)
