"""A parameter whose name an operation does not know is refused: else a misspelt filter would look as if it had held."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI, Router
from ninja.errors import ValidationError
from ninja.operation import Operation
from ninja.params.models import ParamModel

from accessportal.kernel.texts import cut, words_on_unknown


def know_names(router: Router) -> Router:
    """From now on each operation of the router refuses parameters that it does not name, once the token was let in."""
    for view in router.path_operations.values():
        for operation in view.operations:
            # The framework resolves these in order before it calls the operation; its own models pass over what they don't know.
            operation.models.insert(0, _refusing(operation))
    return router


def _refusing(operation: Operation) -> type[ParamModel]:
    asked = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    known = [name for model in asked for name in model.__ninja_flatten_map__]

    class KnownNames(ParamModel):
        @classmethod
        def get_request_data(cls, request: HttpRequest, api: NinjaAPI, path_params: dict[str, Any]) -> dict[str, Any]:
            name = next((name for name in request.GET if name not in known), None)
            if name is not None:
                raise ValidationError([{"type": "extra_forbidden", "loc": ("query", cut(name)), "msg": words_on_unknown(name, known)}])
            return {}

    return KnownNames
