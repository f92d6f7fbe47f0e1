"""What a gate says: text to Gate, and whether a gate suits a suite.

Knows the words, not the numbers: what a gate decides is in `evaluate`. A further metric is one
entry in `analysis/metrics.METRICS`, a further name one in the tables of `names`, and nothing here:
the grammar is made of those tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from unicodedata import category

from ...run_result import short_names
from ..metrics import EACH_ROW, METRICS, Metric
from .names import CONDITIONS, DIFFERENCES, FAMILIES, PREFIXES, Gate

METRICS.update({each.name: each for made in FAMILIES for each in made()})

GATED = {name: metric for name, metric in METRICS.items() if metric.in_gates}
"""The metrics that a gate may be about."""

_WRITTEN = {name: f"{name}K" if metric.takes_k else name for name, metric in GATED.items()}
_SHOWN = [name for text, name in _WRITTEN.items() if not text.endswith(")")]
_COMPARABLE = [
    *(name for name, metric in GATED.items() if metric.interval and metric.takes_k),
    *(name for name, metric in GATED.items() if metric.interval and not metric.takes_k),
    *(["mean(NUMBER)"] if any(metric.measure for metric in GATED.values()) else []),
]

_INSIDE = [name.rstrip(")").partition("(") for name in GATED if name.endswith(")")]
SUMMARIES = tuple(dict.fromkeys(summary for summary, _, _ in _INSIDE))
NUMBERS = tuple(dict.fromkeys(number for _, _, number in _INSIDE))
"""What `SUMMARY(NUMBER)` may say; a summary may also be of a score, by its name."""

OPERATORS = (">=", ">", "<=", "<", "==")


class GateError(ValueError):
    """A gate that cannot be used; the text says why."""

    def __init__(self, gate: str, problem: str, *, grammar: str = "") -> None:
        """`problem` continues where "gate '…':" stops; `grammar` is shown below it."""
        super().__init__("\n".join(filter(None, [f"gate {gate!r}: {problem}", grammar])))


def parse_gate(text: str) -> Gate:
    """The gate that `text` says.

    Raises:
        GateError: when it says none; the message shows the grammar.
    """
    return _Parser(text).gate()


def resolved(
    gate: Gate, *, eval_fns: Sequence[str], n: int, references: Mapping[str, int | None] = {}
) -> Gate:
    """The gate with its eval function's whole name, once it suits the suite.

    `references`: what there is to subtract, by name, and its runs a row as far as they are known.

    Raises:
        GateError: an unknown or missing function, a K above n, a difference from what is not there.
    """
    k, label, minus = gate.metric.k, gate.metric.label, gate.minus
    if k is not None and k > n:
        raise GateError(gate.text, f"{label} needs --n {k} or more, and n is {n}")
    if minus is not None:
        if minus not in references:
            raise GateError(gate.text, f"there is no {minus}: name one with --osmosis-{minus}")
        there = references[minus]
        if k is not None and there is not None and k > there:
            problem = f"the {minus} has {there} runs a row, too few for {label}"
            raise GateError(gate.text, problem)
    return _with_function(gate, eval_fns)


class _Parser:
    """Reads one gate from left to right."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        self._rest = self._text

    def gate(self) -> Gate:
        for char in self._text:
            if category(char) in ("Cc", "Cs"):
                raise self._error(f"it holds {char!r}, which cannot be shown")
        prefix = self._prefix()
        kind, k, score = self._metric()
        if GATED[kind].is_of_judge and (found := self._take(r"\(\s*(.+?)\s*\)(?=\s*[\[<>=!-])")):
            score = found[1]
        eval_fn, only = self._bracket()
        if score and eval_fn:
            raise self._error(f"it names {score!r} and {eval_fn!r}: name one of them")
        metric = Metric(kind, k, score or eval_fn)
        minus = next((name for name in DIFFERENCES if self._take(rf"-\s*{name}\b")), None)
        operator = self._operator()
        is_of_number = minus is not None and metric.definition.measure is not None
        threshold, number = self._number(kind, may_be_relative=is_of_number)
        is_relative = is_of_number and number.endswith("%")
        if self._rest:
            hint = "for a gate on some rows, give them a data file of their own"
            raise self._error(f"it goes on behind its number with {self._rest!r}; {hint}")
        self._check_shape(metric, minus)
        if prefix and metric.definition.is_of_judge:
            raise self._error(f"{kind} is that of all rows: nothing like {prefix!r} stands before")
        gate = Gate(self._text, metric, operator, threshold, minus, is_relative, only, prefix)
        _check_reach(gate, number)
        if kind == EACH_ROW and operator not in (">=", ">"):
            raise self._error(
                f"each row takes >= or >, not {operator}: it is the lowest row's share"
            )
        if metric.definition.is_of_judge and operator not in (">=", ">"):
            raise self._error(f"{kind} takes >= or >, not {operator}: its lower limit decides")
        return gate

    def _take(self, pattern: str) -> re.Match[str] | None:
        found = re.match(pattern, self._rest)
        if found:
            self._rest = self._rest[found.end() :].lstrip()
        return found

    def _prefix(self) -> str:
        """Return what stands before the colon that is in no brackets: a name and a column."""
        for name in PREFIXES:
            if found := self._take(rf"{name}\b\s*([^:\[\]<>=]*?)\s*:"):
                if not found[1]:
                    raise self._error(f"{name} names no column before its colon")
                return f"{name} {found[1]}"
        return ""

    def _metric(self) -> tuple[str, int | None, str | None]:
        """Return the kind of metric, its K, and the score in its parentheses."""
        of_judges = "|".join(name for name, metric in GATED.items() if metric.is_of_judge)
        if found := self._take(rf"(?!(?:{of_judges})\b)([a-z]\w*)\s?\(\s*([^()]*?)\s*\)"):
            return self._summary(found[1], found[2])
        for name, metric in GATED.items():
            written = r"\s?".join(map(re.escape, re.findall(r"\w+|\W", name)))
            k = r"\s?([1-9]\d{0,9})" if metric.takes_k else "()"
            if found := self._take(rf"{written}{k}(?![\w.@^])"):
                return name, int(found[1]) if metric.takes_k else None, None
        found = self._take(r"[a-z]\w*(?![\w@^])") or self._take(r"[^\s\[<>=]*")
        raise self._error(self._unknown_metric(found[0] if found else ""))

    def _summary(self, summary: str, of: str) -> tuple[str, int | None, str | None]:
        numbers = ", ".join(NUMBERS)
        if summary not in SUMMARIES:
            raise self._error(f"{summary!r} is no summary, only {', '.join(SUMMARIES)}")
        if (whole := f"{summary}({of})") in GATED:
            return whole, None, None
        if of == "first_token_s":
            raise self._error(f"when the first token came is not recorded; numbers are {numbers}")
        if not of:
            raise self._error(f"the parentheses hold neither a number ({numbers}) nor a score")
        return summary, None, of

    def _unknown_metric(self, word: str) -> str:
        if re.match(r"pass\W", word + " "):
            return f"{word!r} has no whole number K from 1 up, as in pass@5 or pass^5"
        if found := re.fullmatch(r"pass[\W_]*([1-9]\d*)", word, re.IGNORECASE):
            return f"{word!r} is not a metric; did you mean 'pass@{found[1]}'?"
        if word in PREFIXES:
            return f"{word} COLUMN: stands once, before a metric: '{word} topic: pass@1 >= 0.8'"
        known = [f"{name}1" if metric.takes_k else name for name, metric in GATED.items()]
        close = get_close_matches(word.lower(), known, n=1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"known: {', '.join(_SHOWN)} and SUMMARY(NUMBER)"
        )
        said = f"{word!r} is not a metric" if word else "it does not start with a metric"
        return f"{said}; {hint}"

    def _bracket(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """Return the eval function, and the conditions on the suite behind it."""
        found = self._take(r"\[\s*([^\]]*?)\s*\]")
        if found is None:
            return None, ()
        if not (rest := found[1]):
            raise self._error("the brackets hold no eval function")
        only: dict[str, str] = {}
        condition = rf"(?:^|,)\s*({'|'.join(CONDITIONS)})\s*=\s*([^,()]+)$"
        while CONDITIONS and (part := re.search(condition, rest)):
            only[part[1]] = part[2].strip()
            rest = rest[: part.start()].rstrip()
        return rest or None, tuple(sorted(only.items()))

    def _operator(self) -> str:
        found = self._take(r"[<>=!]+")
        if found is None:
            raise self._error(f"expected one of {_listed(OPERATORS)} {self._here()}")
        if found[0] not in OPERATORS:
            hint = {"=>": ">=", "=<": "<=", "=": "=="}.get(found[0])
            meant = f"; did you mean {hint!r}?" if hint else ""
            raise self._error(f"{found[0]!r} is not one of {_listed(OPERATORS)}{meant}")
        return found[0]

    def _number(self, kind: str, *, may_be_relative: bool) -> tuple[float, str]:
        """Return the threshold, and how it is written; it may be a percentage of another mean."""
        found = self._take(
            r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)"
            r"(?:\s?(%)|\s?/\s?(0*[1-9]\d*))?(?![\w.%/])"
        )
        if found is None:
            raise self._error(f"expected a number such as 0.9, 90% or 8/10 {self._here()}")
        is_percent_of = may_be_relative and found[2]
        if (found[2] or found[3]) and not GATED[kind].is_share and not is_percent_of:
            raise self._error(f"{kind} is no share: {found[0].strip()} of what? Give a number")
        try:
            value = float(Fraction(found[1]) / (100 if found[2] else int(found[3] or 1)))
            return value, found[0].strip()
        except (OverflowError, ValueError):  # too large for a float, too long for an int
            raise self._error("the number is too large") from None

    def _here(self) -> str:
        return f"before {self._rest!r}" if self._rest else "at the end"

    def _check_shape(self, metric: Metric, minus: str | None) -> None:
        if metric.eval_fn and metric.definition.eval_fn == "none":
            problem = f"{metric.kind} is that of the whole run: it takes no [eval function]"
            raise self._error(problem)
        if minus and not (metric.definition.interval or metric.definition.measure):
            *most, last = (_WRITTEN.get(name, name) for name in _COMPARABLE)
            raise self._error(
                f"only {', '.join(most)} and {last} compare with a {minus}, not {metric.kind}"
            )

    def _error(self, problem: str) -> GateError:
        return GateError(self._text, problem, grammar=_grammar())


def _grammar() -> str:
    only = "".join(f", {name}=NAME" for name in [*CONDITIONS][:1])
    minus = "".join(f" [- {name}]" for name in DIFFERENCES)
    example = "".join(f' or "mean[rewards:exact] - {name} >= -2%"' for name in DIFFERENCES)
    before = "".join(f"[{name} COLUMN:] " for name in PREFIXES)
    shape = f"{before}METRIC[EVAL_FN{only}]{minus} OP NUMBER"
    return f'a gate is {shape}, such as "pass@5 >= 0.9"{example}'


def _check_reach(gate: Gate, number: str) -> None:
    """Refuse a gate that no evaluation can pass; `number` is its threshold as written."""
    least, most = gate.metric.definition.range
    if gate.minus:
        least = -1.0 if gate.is_relative else -most
    sides = (("<", least), (">", most))
    for towards, limit in sides:
        said = f"{gate.label} is at {'least' if towards == '<' else 'most'} {limit:g}, and never"
        if gate.operator == towards and gate.threshold == limit:
            hint = f"did you mean {towards}= {number}?"
            raise GateError(gate.text, f"{said} {towards} {number}; {hint}")
        is_beyond = gate.threshold < limit if towards == "<" else gate.threshold > limit
        if is_beyond and gate.operator.startswith((towards, "==")):
            is_percent = 1 < gate.threshold <= 100 and re.fullmatch(r"[\d.]+", number)
            meant = f"; did you mean {number}%?" if is_percent else ""
            raise GateError(gate.text, f"{said} {gate.operator} {number}{meant}")


def _with_function(gate: Gate, eval_fns: Sequence[str]) -> Gate:
    given = gate.metric.eval_fn
    _, _, number = gate.metric.kind.rstrip(")").partition("(")
    if number and any(number in (name, *short_names(name)) for name in eval_fns):
        problem = f"{number} is a number of a run and an eval function here: rename the function"
        raise GateError(gate.text, problem)
    if given is None:
        needs_one = gate.metric.definition.eval_fn == "one"
        if needs_one and len(eval_fns) != 1:
            problem = f"name the eval function: {gate.metric.label}[…], one of {_listed(eval_fns)}"
            raise GateError(gate.text, problem)
        return gate.with_function(eval_fns[0]) if needs_one else gate
    if given in eval_fns:
        return gate
    short = [name for name in eval_fns if given in short_names(name)]
    if len(short) == 1:
        return gate.with_function(short[0])
    close = get_close_matches(given, NUMBERS, n=1)
    meant = f"; did you mean the number {close[0]!r}?" if close else ""
    problem = f"{given!r} is not an eval function here, only {_listed(eval_fns)}{meant}"
    raise GateError(gate.text, problem)


def _listed(words: Sequence[str]) -> str:
    return " ".join(words) if words is OPERATORS else ", ".join(words) or "none"
