"""Arithmetic read out of a sentence: "What is (3 + 4) times 5?" -> a list of steps.

The grammar, over the tokens of `lexer` (unknown words are not tokens; a clause that does not parse
is skipped a token at a time, since this is prose and not a program):

    text     = clause*                              a later clause may go on from the value before
    clause   = command | joiner sum | sum
    command  = "add" list ["to" sum] | "subtract" sum ["from" sum]
             | ("multiply" | "divide") [sum] "by" sum | "multiply" list | ("double" | "halve") [sum]
    list     = sum (("," | "and")+ sum)*
    sum      = product (("+" | "-") product)*
    product  = factor (("*" | "/") factor)*
    factor   = "-" factor | number | "(" sum ")" | "it" | ("twice" | "half") factor
             | ("sum" | "product" | "difference" | "quotient") product ("," | "and") product ...

Numbers are exact fractions. It knows nothing of models or tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .lexer import Token, tokens_of
from .steps import Earlier, Operand, Operator, Problem, Step

_MAX_DEPTH = 40
_SUMS: dict[str, Operator] = {"+": "add", "-": "subtract"}
_PRODUCTS: dict[str, Operator] = {"*": "multiply", "/": "divide"}
_NAMED: dict[str, Operator] = {
    "sum": "add",
    "difference": "subtract",
    "product": "multiply",
    "quotient": "divide",
}


@lru_cache(maxsize=4096)
def read_problem(text: str) -> Problem | None:
    """The last problem that `text` poses, or None when it holds no arithmetic."""
    parser = _Parser(tokens_of(text))
    tree = parser.text()
    if not isinstance(tree, _Node):
        return None
    steps: list[Step] = []
    answer = _flatten(tree, steps, {})
    return Problem(tuple(steps), answer)


@dataclass(frozen=True, slots=True)
class _Leaf:
    value: Fraction


@dataclass(frozen=True, slots=True)
class _Node:
    operator: Operator
    left: _Tree
    right: _Tree


_Tree = _Leaf | _Node
_MINUS, _DASH = Token("-", "minus"), Token("-", "-")
_TWO = _Leaf(Fraction(2))


def _flatten(tree: _Tree, steps: list[Step], done: dict[int, Earlier]) -> Operand:
    """Operands before the steps that use them; a value that two steps share is worked once."""
    if isinstance(tree, _Leaf):
        return tree.value
    if id(tree) not in done:
        left = _flatten(tree.left, steps, done)
        right = _flatten(tree.right, steps, done)
        steps.append(Step(tree.operator, left, right))
        done[id(tree)] = Earlier(len(steps) - 1)
    return done[id(tree)]


class _Parser:
    """Recursive descent; every method gives None, and puts the position back, when it fails."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._previous: _Tree | None = None

    def text(self) -> _Tree | None:
        while self._at < len(self._tokens):
            tree = self._clause()
            if tree is None:
                self._at += 1
            elif isinstance(tree, _Node) or not isinstance(self._previous, _Node):
                self._previous = tree
        return self._previous

    def _clause(self) -> _Tree | None:
        return self._attempt(self._command) or self._attempt(self._joined) or self._sum()

    def _command(self) -> _Tree | None:
        if self._accept("add"):
            return self._add()
        if self._accept("subtract"):
            return self._subtract()
        if self._accept("multiply"):
            return self._by("multiply") or self._attempt(self._listed_product)
        if self._accept("divide"):
            return self._by("divide")
        if self._accept("double"):
            return self._with("multiply", self._sum() or self._previous, _TWO)
        if self._accept("halve"):
            return self._with("divide", self._sum() or self._previous, _TWO)
        return None

    def _add(self) -> _Tree | None:
        terms = self._list(self._sum)
        if not terms:
            return None
        if self._accept("to"):
            return self._with("add", self._sum(), _fold("add", terms))
        return _fold("add", terms if len(terms) > 1 else [self._previous, *terms])

    def _subtract(self) -> _Tree | None:
        taken = self._sum()
        start = self._sum() if taken is not None and self._accept("from") else self._previous
        return self._with("subtract", start, taken)

    def _by(self, operator: Operator) -> _Tree | None:
        """`multiply [x] by y`: without x, the value before."""

        def parts() -> _Tree | None:
            left = self._sum() or self._previous
            return self._with(operator, left, self._sum()) if self._accept("by") else None

        return self._attempt(parts)

    def _listed_product(self) -> _Tree | None:
        factors = self._list(self._sum)
        return _fold("multiply", factors) if len(factors) > 1 else None

    def _joined(self) -> _Tree | None:
        """`times 3`, `minus 4`: an operator that goes on from the value before."""
        token = self._peek()
        if self._previous is None or token is None or token == _DASH:
            return None
        operator = _SUMS.get(token.kind) or _PRODUCTS.get(token.kind)
        if operator is None:
            return None
        self._at += 1
        return self._with(operator, self._previous, self._sum())

    def _sum(self) -> _Tree | None:
        return self._chain(self._product, _SUMS)

    def _product(self) -> _Tree | None:
        return self._chain(self._factor, _PRODUCTS)

    def _chain(
        self, operand: Callable[[], _Tree | None], operators: dict[str, Operator]
    ) -> _Tree | None:
        tree = operand()
        while tree is not None:
            token = self._peek()
            if token is None or token.kind not in operators:
                break
            self._at += 1
            right = operand()
            if right is None:  # "3 times a day": the operator was only a word
                self._at -= 1
                break
            tree = _Node(operators[token.kind], tree, right)
        return tree

    def _factor(self) -> _Tree | None:
        if self._depth >= _MAX_DEPTH:
            return None
        self._depth += 1
        try:
            return self._attempt(self._bare_factor)
        finally:
            self._depth -= 1

    def _bare_factor(self) -> _Tree | None:
        token = self._peek()
        if token is None:
            return None
        self._at += 1
        if token.kind == "number":
            return _Leaf(Fraction(token.text))
        if token.kind == "it":
            return self._previous
        if token.kind == "-":
            return self._negative()
        if token.kind == "(":
            inner = self._sum()
            return inner if self._accept(")") else None
        if token.kind in ("twice", "half"):
            operator: Operator = "multiply" if token.kind == "twice" else "divide"
            return self._with(operator, self._factor(), _TWO)
        if token.kind in _NAMED:
            terms = self._list(self._product)
            return _fold(_NAMED[token.kind], terms) if len(terms) > 1 else None
        return None

    def _negative(self) -> _Tree | None:
        inner = self._factor()
        if isinstance(inner, _Leaf):
            return _Leaf(-inner.value)
        return self._with("subtract", _Leaf(Fraction(0)), inner)

    def _list(self, operand: Callable[[], _Tree | None]) -> list[_Tree]:
        terms: list[_Tree] = []
        back_to = self._at
        while (term := operand()) is not None:
            terms.append(term)
            back_to = self._at
            if not (self._accept(",") | self._accept("and")) or self._peek() == _MINUS:
                break
        self._at = back_to
        return terms

    def _with(self, operator: Operator, left: _Tree | None, right: _Tree | None) -> _Tree | None:
        return None if left is None or right is None else _Node(operator, left, right)

    def _attempt(self, rule: Callable[[], _Tree | None]) -> _Tree | None:
        start = self._at
        tree = rule()
        if tree is None:
            self._at = start
        return tree

    def _accept(self, kind: str) -> bool:
        token = self._peek()
        if token is None or token.kind != kind:
            return False
        self._at += 1
        return True

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


def _fold(operator: Operator, terms: Sequence[_Tree | None]) -> _Tree | None:
    tree = terms[0]
    for term in terms[1:]:
        if tree is None or term is None:
            return None
        tree = _Node(operator, tree, term)
    return tree
