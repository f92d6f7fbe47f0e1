"""The characters of the embedded endpoint, by name.

A persona is numbers and switches; `solver` and `slips` apply them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

MODEL_NAME = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """How one character of the embedded endpoint answers."""

    name: str
    accuracy: float
    "Chance that a run of the easiest problem is right."
    decline: float = 0.0
    "What each unit of a problem's difficulty takes off that chance."
    spread: float = 0.0
    "How far a row's luck moves the chance up or down: some are hard for no visible reason."
    floor: float = 0.0
    "The chance never falls below this."
    uses_tools: bool = True
    latency_s: float = 0.0

    @property
    def model(self) -> str:
        """The model name that selects this persona at an endpoint."""
        return MODEL_NAME if self.name == "default" else f"{MODEL_NAME}/{self.name}"

    def chance(self, difficulty: float, luck: float) -> float:
        """Return the chance to be right, for the row's `luck` of 0 to 1."""
        falling = self.accuracy - self.decline * difficulty + self.spread * (2.0 * luck - 1.0)
        return min(1.0, max(self.floor, falling))


_USUAL = Persona(name="default", accuracy=1.0, decline=0.035, spread=0.08, floor=0.3)

PERSONAS: MappingProxyType[str, Persona] = MappingProxyType(
    {
        persona.name: persona
        for persona in (
            _USUAL,
            Persona(name="perfect", accuracy=1.0),
            Persona(name="sloppy", accuracy=0.7, decline=0.07, spread=0.1, floor=0.1),
            Persona(name="broken", accuracy=0.0),
            replace(_USUAL, name="chatty", uses_tools=False),
            replace(_USUAL, name="slow", latency_s=0.05),
        )
    }
)


def find_persona(name: str) -> Persona:
    """Return the persona called `name`; raise ValueError naming the known ones otherwise."""
    if name in PERSONAS:
        return PERSONAS[name]
    from difflib import get_close_matches  # only on the way to an error: 5 ms to import

    close = get_close_matches(name.lower(), PERSONAS, n=1)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    known = ", ".join(PERSONAS)
    raise ValueError(f"the embedded endpoint has no persona {name!r}: known are {known}{hint}")


def persona_name(model: str) -> str | None:
    """Return the persona that a model name selects (`embedded`: the default one), or None."""
    if model == MODEL_NAME:
        return "default"
    prefix = MODEL_NAME + "/"
    return model[len(prefix) :] if model.startswith(prefix) else None
