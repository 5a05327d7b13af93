"""Ordering that accounts are cleaned: a page that says what will happen, and its one button."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from accessportal.console.resources.account_pool import POOL
from accessportal.console.views import list_url, render_page
from accessportal.identity.middleware import actor_of
from accessportal.kernel.ports import after_commit
from accessportal.leases import queries
from accessportal.leases.operations import is_cleaner_set
from accessportal.leases.states import AccountState


@require_http_methods(["GET", "HEAD", "POST"])
def order(request: HttpRequest) -> HttpResponse:
    """The job that runs every minute runs soon. Ordered twice it does nothing more."""
    queries.may_operate(actor=actor_of(request)).require()
    has_cleaner = is_cleaner_set()
    if request.method != "POST" or not has_cleaner:
        return render_page(request, "console/leases/order_cleaning.html", {"title": "Clean now", "has_cleaner": has_cleaner})
    after_commit("clean_accounts")
    messages.success(request, "Cleaning is ordered. Accounts leave this list as they come back clean.")
    return HttpResponseRedirect(list_url(POOL, AccountState.DIRTY.value))
