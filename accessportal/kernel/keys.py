"""How a name becomes the key that it is found and compared by: the one rule for all of them."""

from __future__ import annotations

import string

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold_key(name: str) -> str:
    """ASCII letters in lower case, all else unchanged.

    Unicode's own folding makes ASCII of some foreign letters (the Kelvin sign becomes ``k``, ``ß`` becomes ``ss``), so that one
    name would be found under the key of another.
    """
    return name.translate(_LOWER)
