"""What judging by a rubric can end in, other than a score.

Knows no provider and no library: messages arrive here redacted. The tree:

    RuntimeError
    ├── MissingAPIKeyError        no usable key; raised before any request
    └── ProviderRequestError      the judge gave no verdict: provider, model, detail
        └── ModelNotFoundError    the provider does not know the model

A wrong argument (an empty rubric, bounds the wrong way round) is a plain TypeError or ValueError.
"""

from __future__ import annotations


class MissingAPIKeyError(RuntimeError):
    """No usable API key; the message names the variable and how to export it."""


class ProviderRequestError(RuntimeError):
    """The judge could not be asked, or what it said is not a verdict."""

    def __init__(
        self,
        provider: str,
        model: str,
        detail: str,
        *,
        kind: str = "protocol",
        status: int | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(f"{provider}/{model}: {detail}")
        self.provider = provider
        self.model = model
        self.detail = detail
        """What went wrong, in the provider's words where it had any; redacted and cut."""
        self.kind = kind
        """As in `osmosis_ai.models.errors`, or "verdict" for a reply that holds no usable score."""
        self.status = status
        """HTTP status of the last reply, None when there was none."""
        self.fatal = fatal
        """No other record can succeed either: wrong key, unknown model, exhausted quota."""

    def __reduce__(self) -> tuple[object, ...]:
        # Rebuilding from the message alone, as exceptions do, would lose the parts of it.
        state = {"kind": self.kind, "status": self.status, "fatal": self.fatal}
        return (type(self), (self.provider, self.model, self.detail), state)


class ModelNotFoundError(ProviderRequestError):
    """The provider does not know this model: check its name at the provider."""
