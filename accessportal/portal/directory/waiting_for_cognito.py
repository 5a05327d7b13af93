"""What somebody changed in the directory and Cognito has not followed yet: told until it has, and only then as done."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from accessportal.identity.sessions import is_kept
from accessportal.mirror import queries as mirror
from accessportal.web.deeds import Told

_KEY = "mirror_waits"
_MOST = 10


@dataclass(frozen=True, slots=True)
class Wait:
    """``words`` say what is under way, or what is done. ``trouble`` is the last answer of Cognito when it keeps failing."""

    words: str
    is_done: bool
    trouble: str = ""


def tell(request: HttpRequest, told: Told) -> None:
    """Say on the next page what is done; while Cognito follows, keep it in the session until it has. What was told before about the same is
    forgotten: Cognito follows the last state alone."""
    waiting = request.session.get(_KEY, []) if told.entity else []
    kept = [one for one in waiting if one["entity"] != told.entity or told.about not in ("", one["about"])]
    if told.is_done:
        links = format_html_join(" ", '<a href="{1}">{0}</a>', told.links)
        messages.success(request, format_html("{} {}", told.done, links) if links else told.done)
    else:
        kept = [*kept, {"entity": told.entity, "about": told.about, "doing": told.doing, "done": told.done}][-_MOST:]
    if kept != waiting:
        request.session[_KEY] = kept
        if not told.is_done and not is_kept(request):
            messages.info(request, told.doing)


def waits(request: HttpRequest) -> tuple[Wait, ...]:
    """Say how each stands now, one look-up for each that was not done; what is done is told once and forgotten."""
    told: list[Wait] = []
    left: list[dict[str, str]] = []
    for one in request.session.get(_KEY, []):
        work = mirror.find_pending(one["entity"])
        if work is None:
            told.append(Wait(one["done"], is_done=True))
            continue
        left.append(one)
        told.append(Wait(one["doing"], is_done=False, trouble=work.error))
    if len(left) < len(told):
        request.session[_KEY] = left
    return tuple(told)
