"""The brake before much is taken away at once: then a wrong list is likelier than that so much is gone."""

from __future__ import annotations

MOST_SHARE = 0.2
# A handful is never a landslide, whatever share it is.
_HANDFUL = 5


def most_at_once(known: int, most_share: float = MOST_SHARE) -> int:
    """How many of ``known`` things may go at once without somebody looking: a share of them, or a handful."""
    return max(_HANDFUL, int(known * most_share))
