"""Equal ones among many that are asked about, as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Described
from accessportal.console.bulk import Prospect
from accessportal.web.past_requests import thing_of

_NAMED = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """Requests for the same thing by the same rule, for as long, and for the same reason; ``described`` is the first of them."""

    described: Described
    prospects: tuple[Prospect, ...]

    @property
    def request(self) -> AccessRequest:
        record: AccessRequest = self.prospects[0].record
        return record

    @property
    def words(self) -> str:
        """What would happen, where it is the same for each, apart from whom it is for."""
        if len({one.words for one in self.prospects}) == 1:
            return self.prospects[0].words
        words = {one.words.replace(f" to {one.record.subject_id} ", " to each ") for one in self.prospects}
        return words.pop() if len(words) == 1 else ""

    @property
    def names(self) -> str:
        """Of whom it is for, the first few: ``Alice Park, Dana Osei and 10 more``."""
        names = list(dict.fromkeys(queries.describe(request=one.record).subject_name or one.record.subject_id for one in self.prospects))
        more = len(names) - _NAMED
        return f"{', '.join(names[:_NAMED])} and {more} more" if more > 0 else " and ".join(names)


def folded(prospects: Iterable[Prospect]) -> list[Fold]:
    """In the order of the first of each; what is possible, with what would happen to it in the same words."""
    alike: dict[tuple[object, ...], list[Prospect]] = {}
    for one in prospects:
        request: AccessRequest = one.record
        key = (*thing_of(request), request.rule_name, request.duration_seconds, " ".join(request.reason.split()).casefold())
        alike.setdefault(key, []).append(one)
    return [Fold(queries.describe(request=first.record), (first, *rest)) for first, *rest in alike.values()]
