"""The lists of the console as files."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from accessportal.console.resource import Resource
from accessportal.console.views import asked_list
from accessportal.kernel.errors import InvalidRequest
from accessportal.web.exporting import ROWS_AT_ONCE, Listed, require_inputs, send


@require_safe
def export(request: HttpRequest, resource: Resource, form: str) -> HttpResponseBase:
    """Everything that the list shows on its pages, for whoever may see it."""
    pattern, ask = asked_list(request, resource)
    require_inputs(request.GET, ["pattern", *(one.name for one in pattern.inputs)])
    given = {"q": ask.parameter, **ask.more}
    for one in pattern.inputs:
        if one.required and not given[one.name]:
            raise InvalidRequest(f"{one.label} is missing, for example {one.placeholder}.", code="input_missing", field=one.name)
    listed = Listed(
        name=f"{resource.name}-{pattern.name}",
        columns=pattern.file_columns or resource.file_columns,
        fetch=lambda cursor: pattern.fetch(replace(ask, cursor=cursor, limit=ROWS_AT_ONCE)),
        asked={one.name: given[one.name] for one in pattern.inputs if given[one.name]},
        now=ask.now,
    )
    return send(listed, form)
