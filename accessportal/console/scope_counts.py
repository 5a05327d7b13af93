"""How much is in a scope: asked for after the page, in parts, because each share of its records is a read."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.authz import queries
from accessportal.authz.queries import LEDGERS, caller_of
from accessportal.console.resources.authz import counts_url
from accessportal.console.resources.scopes import scope_of
from accessportal.console.views import render_page
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.counts import Count, counted


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """What was counted so far: for htmx the words, which ask for the next part by themselves; otherwise a page that leads to it."""
    caller = caller_of(actor_of(request))
    scope, is_wide, of = scope_of(key), "below" in request.GET, request.GET.get("of", "")
    ledgers = [ledger for ledger in LEDGERS if ledger.word == of] or LEDGERS
    cursor = request.GET.get("cursor") or None
    counting = queries.count_further(ledgers, scope, is_wide=is_wide, cursor=cursor, caller=caller, now=book_of(request).now)
    context = {
        "title": f"How much is in {scope}{' and all below it' if is_wide else ''}",
        "scope": scope,
        "words": " and ".join(_in_words(*one) for one in zip([ledger.word for ledger in ledgers], counting.counts, strict=True)),
        "next_url": counts_url(scope, of=of, is_wide=is_wide, cursor=counting.next_cursor) if counting.next_cursor else "",
    }
    if cast(PortalRequest, request).htmx:
        return render(request, "console/authz/count.html", context)
    return render_page(request, "console/authz/counting.html", context)


def _in_words(word: str, count: Count) -> str:
    return f"{'at least ' if count.is_more else ''}{counted(count.seen, word, f'{word}s')}"
