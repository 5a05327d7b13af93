"""What Cognito does to its clients besides answering: it throttles, breaks, loses answers, and is away."""

from __future__ import annotations

from collections.abc import Callable

from accessportal.twin.chances import Chances
from accessportal.twin.protocol import Answer, LostAnswerError, TwinError

TARGET_PREFIX = "AWSCognitoIdentityProviderService."


class CognitoFaults(Chances):
    """Stands before moto's Cognito, under the caller's lock."""

    def answer(self, operation: str, _body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one call as moto does, or make the trouble that the settings ask for. Raises ``LostAnswerError`` when the client is to get
        no answer: after the call took effect, or (an outage) without."""
        if self.settings.cognito_outage:
            raise LostAnswerError(operation)
        if self._happens(self.settings.cognito_throttle):
            return TwinError("TooManyRequestsException", "Rate exceeded").answer()
        if self._happens(self.settings.cognito_server_error):
            return TwinError("InternalErrorException", "Something went wrong", status=500).answer()
        answer = forward()
        if self._happens(self.settings.cognito_lose_answer):
            raise LostAnswerError(operation)
        return answer
