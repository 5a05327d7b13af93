"""Rights over the framework's own tables that keep the portal's promises."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

# What Django's own filters put behind the name of a field.
_BY_FILTERS = ("", "__exact", "__isnull", "__gte", "__lt")
_MOST_WORDS = 8


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Look alone: nothing is changed or run, and lists are narrowed by their own filters and box only. Django takes every lookup from the
    address, and by ``?password__regex=`` a field that no page shows could be guessed."""

    actions = None

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        filters = self.list_filter if request is None else self.get_list_filter(request)
        names = [one[0] if isinstance(one, list | tuple) else getattr(one, "parameter_name", one) for one in filters]
        return lookup in {f"{name}{end}" for name in names for end in _BY_FILTERS}

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        """By the first words alone: each is a condition on every field more, and a database refuses a thousand of them."""
        return super().get_search_results(request, queryset, " ".join(search_term.split()[:_MOST_WORDS]))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
