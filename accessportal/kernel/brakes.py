"""The brake before much is taken away at once: then a wrong list is likelier than that so much is gone."""

from __future__ import annotations

from accessportal.kernel.errors import InvalidRequest

MOST_SHARE = 0.2
# A handful is never a landslide, whatever share it is.
_HANDFUL = 5


def check_share(most_share: float) -> None:
    """:raises InvalidRequest: when ``most_share`` is not a share."""
    if not 0 <= most_share <= 1:
        raise InvalidRequest("Give a share from 0 to 1, for instance 0.2.", code="share_invalid", field="most_share")


def most_at_once(known: int, most_share: float = MOST_SHARE) -> int:
    """How many of ``known`` things may go at once without somebody looking: a share of them, or a handful."""
    return max(_HANDFUL, int(known * most_share))


def brake(going: int, known: int, most_share: float, *, would: str, remedy: str) -> str:
    """Say why ``going`` of ``known`` things may not go at once: they ``would`` be lost; empty when they may."""
    if going <= most_at_once(known, most_share):
        return ""
    too_many = f"{going} of {known} {would}, more than the share of {most_share:.0%} that may go at once"
    return f"{too_many}. {remedy}, then run it again with a larger share."
