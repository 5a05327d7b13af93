"""The ApiTokens items and their keys."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from accessportal.store.base import PortalModel, global_index, register

LISTED = "token"


_RATE = "RATE#"


@register
class TokenItem(PortalModel):
    """A token, or what is taken of its requests in a minute (``RATE#<token_id>``, in no index). Times are epoch seconds. ``last_used_at``
    moves without a version."""

    base_table_name = "ApiTokens"

    token_id = UnicodeAttribute(hash_key=True)
    list = UnicodeAttribute(null=True)
    unrevoked = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    secret_hash = UnicodeAttribute(null=True)
    scope = UnicodeAttribute(null=True)
    rate_per_minute = NumberAttribute(null=True)
    tracks = UnicodeSetAttribute(null=True)
    most_held = NumberAttribute(null=True)
    home_scope = UnicodeAttribute(null=True)
    created_by = UnicodeAttribute(null=True)
    created_at = NumberAttribute(null=True)
    expires_at = NumberAttribute(null=True)
    last_used_at = NumberAttribute(null=True)
    revoked_by = UnicodeAttribute(null=True)
    revoked_at = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)
    # a minute's requests
    window_at = NumberAttribute(null=True)
    used = NumberAttribute(null=True)

    list_index = global_index("ListIndex", list=UnicodeAttribute(hash_key=True), created_at=NumberAttribute(range_key=True))
    """Every token, by the time of its creation."""
    unrevoked_index = global_index("UnrevokedIndex", unrevoked=UnicodeAttribute(hash_key=True), created_at=NumberAttribute(range_key=True))
    """Sparse: those that are not revoked, by the time of their creation."""
    maker_index = global_index("MakerIndex", created_by=UnicodeAttribute(hash_key=True), created_at=NumberAttribute(range_key=True))
    """What somebody made, by time."""


def rate_key(token_id: str) -> str:
    """No id of a token holds a ``#``, so nobody can authenticate with one of these."""
    return _RATE + token_id


def is_rate_key(token_id: str) -> bool:
    return token_id.startswith(_RATE)
