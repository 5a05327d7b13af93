"""State from events: what the chains of the audit log tell of each record, and where an item says otherwise.

Pure, and by kind of record: a table of what each action sets. What no event tells is in docs/decisions/0082-replay.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from accessportal.evidence.replay.directory import ABOVE, GROUP, PERSON
from accessportal.evidence.replay.grants import APPROVAL, ASSIGNMENT, RELATIONSHIP, RESTORE, RULE, RULE_SET, SCOPE, STAND_IN, TOKEN
from accessportal.evidence.replay.pools import ACCOUNT, LEASE, LINE, SANDBOX, SANDBOX_POOL
from accessportal.evidence.replay.requests import REQUEST
from accessportal.evidence.replay.telling import EXISTS, NOTHING, Kind, Told, differences, replay

__all__ = ["ABOVE", "EXISTS", "KINDS", "Kind", "Told", "differences", "kind_of", "replay"]

_SIGN_IN = Kind(acts={"sign_in.refused": NOTHING}, facts=lambda _record: {}, is_itemized=False)

_ERASURE = Kind(acts={"person.erasure_begun": NOTHING, "person.erased": NOTHING}, facts=lambda _record: {}, is_itemized=False)

_RETENTION = Kind(acts={"audit_log.removal_ordered": NOTHING}, facts=lambda _record: {}, is_itemized=False)

KINDS: Mapping[str, Kind] = {
    "request": REQUEST,
    "person": PERSON,
    "group": GROUP,
    "assignment": ASSIGNMENT,
    "token": TOKEN,
    "stand_in": STAND_IN,
    "rule": RULE,
    "ruleset": RULE_SET,
    "approval": APPROVAL,
    "relationship": RELATIONSHIP,
    "scope": SCOPE,
    "sandbox": SANDBOX,
    "sandboxpool": SANDBOX_POOL,
    "account": ACCOUNT,
    "lease": LEASE,
    "line": LINE,
    "restore": RESTORE,
    "sign_in": _SIGN_IN,
    "erasure": _ERASURE,
    "retention": _RETENTION,
}
"""By the beginning of the entity's name."""


def kind_of(entity: str) -> Kind | None:
    return KINDS.get(entity.partition("#")[0])
