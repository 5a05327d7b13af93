"""A check of typed names against the records, with the way that it found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_safe

from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Answer, caller_of, check_chain, check_set, read_scope
from accessportal.authz.states import LONGEST_NAME
from accessportal.console.resources.authz import RECORDS, Record, key_of
from accessportal.console.views import list_url, render_page
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest
from accessportal.web.forms import PlainForm, TextField, line

_APPROVAL, _RELATIONSHIP, _CHAIN = "approval", "relationship", "chain"


class AskForm(PlainForm):
    """A question; what is left empty is what is looked for. The domain names the three by what they are for its record."""

    aliases: ClassVar[Mapping[str, str]] = {
        "identity": "who",
        "subject": "who",
        "action": "verb",
        "relation": "verb",
        "resource": "target",
        "object": "target",
    }

    about = forms.ChoiceField(
        label="Ask for",
        choices=[
            (_APPROVAL, "An approval: may they do it?"),
            (_RELATIONSHIP, "A relationship: do they stand in it?"),
            (_CHAIN, "A chain of trust or membership"),
        ],
        error_messages={"required": "Choose what to ask for.", "invalid_choice": "Choose one of the three."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    scope = TextField(limit=LONGEST_NAME, label="Scope", widget=line(placeholder="tenant:acme-corp"))
    who = TextField(
        limit=LONGEST_NAME,
        label="Identity or subject",
        required=False,
        help_text="Empty: who can?",
        widget=line(placeholder="alice@example.com"),
    )
    verb = TextField(limit=LONGEST_NAME, label="Action or relation", required=False, widget=line(placeholder="GET"))
    target = TextField(
        limit=LONGEST_NAME,
        label="Resource or object",
        required=False,
        help_text="docs/* asks for anything below docs/. Empty: what can they?",
        widget=line(placeholder="https://api.example.com/data"),
    )

    @property
    def is_for_approvals(self) -> bool:
        return bool(self.cleaned_data["about"] == _APPROVAL)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self.errors:
            return given
        about, missing = given["about"], [name for name in ("who", "verb", "target") if not given[name]]
        lists = (["who"], ["target"], ["verb", "target"], ["who", "verb"])
        may_miss = {_APPROVAL: lists[:3], _RELATIONSHIP: lists}
        if missing and missing not in may_miss.get(about, ()):
            self.add_error(missing[0], f"{self.fields[missing[0]].label} is needed for this question.")
        return given

    def list_url(self) -> str:
        """The list that answers what was left empty; "" for a question that is a check."""
        given = self.cleaned_data
        resource = RECORDS["approvals" if self.is_for_approvals else "relationships"]
        if not given["target"]:
            return list_url(resource, "holder", given["scope"], more={"holder": given["who"]})
        if not given["who"]:
            target = {"resource": given["target"], "action": given["verb"]} if self.is_for_approvals else {"object": given["target"]}
            return list_url(resource, "target", given["scope"], more=target)
        return ""


@require_safe
def check(request: HttpRequest) -> HttpResponse:
    """A question as an address that can be passed on; asking changes nothing, so it is a GET. Without a name it leads to a list."""
    actor = actor_of(request)
    caller_of(actor)
    form = AskForm(request.GET if "about" in request.GET else None, initial=request.GET.dict())
    context: dict[str, Any] = {"title": "Check a record", "form": form}
    if form.is_bound and form.is_valid():
        if url := form.list_url():
            return HttpResponseRedirect(url)
        context |= _answered(form, actor)
    return render_page(request, "console/authz/check.html", context, status=400 if form.errors else 200)


def _answered(form: AskForm, actor: Actor) -> dict[str, Any]:
    try:
        answer = _ask(form, actor)
    except InvalidRequest as error:
        form.add_refusal(error)
        return {}
    return {"answer": answer, "asked": form.cleaned_data, "way": [_step(record) for record in answer.by]}


def _ask(form: AskForm, actor: Actor) -> Answer:
    given, caller, clock = form.cleaned_data, caller_of(actor), SystemClock()
    scope = read_scope(given["scope"])
    if form.is_for_approvals:
        return check_set(APPROVALS, scope, (given["who"], given["target"], given["verb"]), caller=caller, clock=clock)
    names = given["who"], given["verb"], given["target"]
    if given["about"] == _CHAIN:
        return check_chain(scope, names, caller=caller, clock=clock)
    return check_set(RELATIONSHIPS, scope, names, caller=caller, clock=clock)


def _step(record: Record) -> dict[str, Any]:
    resource = RECORDS[f"{record.word}s"]
    return {"record": record, "title": resource.title(record), "url": resource.page_url(key_of(record))}
