"""The number that a ground truth is, and the one that an answer gives; exact, as a `Fraction`.

A ground truth must be one number and nothing else. In an answer, what belongs to a date, a time, an
identifier or an expression is passed over; what can be read in more than one way is never read. All
patterns look at a text once, and at a few characters around each number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from .folding import fold, is_spaceless

MAX_DIGITS = 1_000
"""Of one number; longer ones, and larger exponents, are not read."""
_AROUND = 48
"""Characters before and behind a number that say what it belongs to."""
_SHOWN = 60

Kind = Literal["number", "part", "ambiguous"]
"""Stands for itself; belongs to something else; can be read in more than one way."""

# ---- text to plain text

_FRACTION_MARK = "\ue000"
_COMMANDS = {
    **dict.fromkeys(["times", "cdot", "ast"], "×"),
    **dict.fromkeys(["approx", "simeq", "sim"], "≈"),
    **dict.fromkeys(["le", "leq", "ge", "geq", "lt", "gt", "ne", "neq"], "≤"),
    **dict.fromkeys(["dots", "ldots", "cdots"], "…"),
    **dict.fromkeys(["quad", "qquad", "left", "right", "displaystyle", "textstyle", "Large"], " "),
    **dict.fromkeys(["to", "rightarrow", "Rightarrow", "implies", "therefore"], " → "),
    "div": "÷",
    "pm": "±",
    "mp": "±",
    "degree": "°",
    "circ": "°",
}
_COMMAND = re.compile(rf"\\({'|'.join(sorted(_COMMANDS, key=len, reverse=True))})(?![A-Za-z])")
_WORDS_IN = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf)|mbox|underline|operatorname|boldsymbol|bm)\s?"
    r"\{([^{}]{0,200})\}"
)
_PART = r"\s?(?:\{\s?([+-]?[0-9][0-9.,]{0,40})\s?\}|([0-9]))"
_FRAC = re.compile(rf"\\[dtc]?frac{_PART}{_PART}")
_NOTHING = re.compile(r"\\(?:!|(?=[%$#_&]))")
_DELIMITER = re.compile(r"\\[()\[\],;: ]|\$\$|[`~](?!/)")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>|<<[^<>\n]{0,80}>>")
_EMPHASIS = re.compile(
    r"(?<![\w)\]}*\\])(?:\*{1,3}(?=[^\s*])|_{1,2}(?=[^\s_]))"
    r"|(?<=[^\s*])\*{1,3}(?![\w(\[{*\\])|(?<=[^\s_])_{1,2}(?!\w)"
)
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_POWER_OF_TEN = re.compile(r"(?<=10)[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_BRACED_POWER = re.compile(r"\^\s?\{\s?([+-]?[0-9]+|°)\s?\}")


_ASCII = str.maketrans(
    {
        **{chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)},
        **dict.fromkeys("⁄∕", "/"),
        "➖": "-",
        "∙": "·",
        "٫": ".",
        "٬": ",",
        "٪": "%",
    }
)
_VULGAR = re.compile(r"(?<![0-9.,_'])(?<![0-9] )(?:([0-9]{1,9}) ?)?([¼-¾⅐-⅞])")


def _plain(text: str) -> str:
    """Return a folded text without the marks of LaTeX, Markdown and HTML."""
    text = _VULGAR.sub(_vulgar, text.translate(_ASCII)).replace("{,}", ",")
    if "\\" in text:
        text = _NOTHING.sub("", text.replace("\\\\", "\n"))
        text = _WORDS_IN.sub(r" \1 ", _WORDS_IN.sub(r" \1 ", text))
        text = _COMMAND.sub(lambda found: _COMMANDS[found[1]], text)
        text = _FRAC.sub(_fraction, text).replace(f"–{_FRACTION_MARK}", f"-{_FRACTION_MARK}")
    text = _DELIMITER.sub(" ", _TAG.sub(" ", text))
    text = _EMPHASIS.sub("", text)
    text = _POWER_OF_TEN.sub(lambda found: f"^{found[0].translate(_SUPERSCRIPT)}", text)
    text = _BRACED_POWER.sub(r"^\1", text).replace("^°", "°").replace("**", "^")
    return re.sub(r"[ \t]+", " ", text).replace(" ^", "^").strip()


def _fraction(found: re.Match[str]) -> str:
    return f"{_FRACTION_MARK}{found[1] or found[2]}/{found[3] or found[4]}"


def _vulgar(found: re.Match[str]) -> str:
    """Return ½ as 1/2, and 2½ as 5/2."""
    top, bottom = map(int, unicodedata.normalize("NFKC", found[2]).split("⁄"))
    return f"{_FRACTION_MARK}{int(found[1] or 0) * bottom + top}/{bottom}"


# ---- one number

_CURRENCY = (
    r"(?:(?:US|CA|AU|HK|NZ|A|C|R)?\$|[¢£¤¥€\u20a0-\u20c0]"
    r"|(?:USD|EUR|GBP|JPY|CHF|CNY|INR)\b|Rs\b\.?)"
)
_DIGITS = r"(?:[0-9]+(?:[.,_' ][0-9]+)*|\.[0-9]+)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-](?P<apart> )?)?(?:{_CURRENCY} ?(?P<inner>[+-])?)?{_FRACTION_MARK}?"
    rf"(?P<top>[+-]?{_DIGITS})(?:[eE](?P<e>[+-]?[0-9]+)| ?[×xX*·⋅∙] ?10 ?\^ ?(?P<ten>[+-]?[0-9]+))?"
    rf"(?: ?/ ?(?P<bottom>{_DIGITS}))?"
)
_WELL_FORMED = re.compile(
    r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
    r"|[1-9][0-9]{0,2}([,_' ])[0-9]{3}(?:\1[0-9]{3})*(?:\.[0-9]+)?"
)
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")


def _value(found: re.Match[str]) -> Fraction | None:
    """Return what the digits say; None where they are no number, or too long a one."""
    signs = [each for each in (found["sign"], found["inner"]) if each]
    top = found["top"]
    if top[0] in "+-":
        signs.append(top[0])
        top = top[1:]
    if len(signs) > 1:
        return None
    value = _unsigned(top)
    if value is None:
        return None
    exponent = found["e"] or found["ten"]
    if exponent is not None:
        if len(exponent) > 6 or abs(int(exponent)) > MAX_DIGITS:
            return None
        value *= Fraction(10) ** int(exponent)
    if found["bottom"] is not None:
        bottom = _unsigned(found["bottom"])
        if not bottom or exponent is not None:
            return None
        value /= bottom
    return -value if signs and signs[0][0] == "-" else value


def _unsigned(text: str) -> Fraction | None:
    if len(text) > MAX_DIGITS or _WELL_FORMED.fullmatch(text) is None:
        return None
    return Fraction(re.sub(r"[,_' ]", "", text))


# ---- what a number belongs to

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b"
)
_LABELLED = re.compile(
    r"\b(?:section|room|chapter|page|figure|fig|table|step|question|problem|exercise|row|line|"
    r"item|equation|eq|part|case|method|option|no|nr|version|article|act|rule|gate|bus|flight|"
    r"route|highway|example|note|appendix|channel|id|isbn|zip|code)\.?[ #:]{0,2}$",
    re.IGNORECASE,
)
_DATED = re.compile(rf"\b{_MONTH}\.?,? ?$|\b{_MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? $")
_OPERATED = re.compile(
    r"(?:\b(?:times|plus|divided by|multiplied by|root of|sqrt|log|ln|sin|cos|tan|mod)"
    r"|[√∛÷×·⋅^/]) ?$",
    re.IGNORECASE,
)
_PLUS = re.compile(r"(?:[\w)}] ?\+|[\w)}]\*|[\w)}] \*) ?$")
_NEGATED = re.compile(r"(?:\bnot|n't)(?: (?:a|just|exactly|equal to|be))? ?$", re.IGNORECASE)
_BOUND = re.compile(
    r"(?:\b(?:more|less|fewer|greater|larger|smaller|higher|lower) than|\bat (?:least|most)|"
    r"\b(?:minus|negative)|[<≤≥≠±∓]|(?<![=-])>) ?$",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"[0-9%](?: [^\W\d_]{1,15})?,? (?:or|to) (?:[$€£] ?)?$|[0-9] (?:out )?of $"
)
_UNIT = (
    r"(?:km|cm|mm|nm|µm|μm|kg|mg|lbs?|oz|ml|mL|cl|dl|min|hrs?|h|s|sec|secs|ms|ns|ft|in|mi|mph|kph|"
    r"kmh|kWh|kW|MW|GW|Hz|kHz|MHz|GHz|[KMGT]i?B|bits?|bytes?|px|pt|dB|Pa|kPa|mol|kJ|cal|kcal|L|V|W|"
    r"N|A|g|USD|EUR|GBP|CHF|cents?|°[CFK]?|ha|rpm|fps)"
)
_DASHED = re.compile(r"(?:^|\W)[–—―]$|[–—―] $")
_MEASURE = rf" ?(?:{_UNIT}|hours?|minutes?|feet|foot|pounds?|years?|months?|weeks?|days?|degrees)"
_COMPOUND = re.compile(rf"[0-9]{_MEASURE},? (?:and )?$")
_LISTED = re.compile(r"[0-9%](?:,|;|,? and|&) ?$")
_ENDS = re.compile(r"[.!)\]}\"']*(?:\s*$|\n|\. )")
_BEHIND_UNIT = rf"(?:\^?[23]|[²³])?(?:[/·]{_UNIT}(?:\^?[23]|[²³])?)?(?![^\W_])"
_ATTACHED = re.compile(rf"{_UNIT}{_BEHIND_UNIT}")
_SIGN_BEHIND = re.compile(rf" ?(?:%|‰|{_CURRENCY}|°[CFK]?\b|°)")
_PART_BEHIND = re.compile(
    r"[.'][a-z0-9\\({]|:[0-9]|-[\w(\\$€£¥]|/(?![A-Za-z]{2,}|[hsmgL]\b)|[\^\\{√∛_(@\ue000]|\}[\w^{(]|![^\s.,;:!?)\"']"
    r"| ?[=≈≠<>≤≥÷×·⋅±√∛^]| ?\+ ?[\w(\\$.]| ?\* ?[\w(\\$.]| / ?[\w(]| - ?[0-9.$€£(\\]"
    r"| - ?[A-Za-z]\b| ?[xX] ?[0-9]| [xyzn]\b"
    r"| ?(?:am|pm|AM|PM|a\.m|p\.m|A\.M|P\.M|o'clock|[Uu]hr)\b"
    rf"| (?:st|nd|rd|th)\b|(?:st|nd|rd|th)? (?:of )?{_MONTH}"
    r"| (?:pi|sqrt|squared|cubed|factorial|times|plus|minus|divided|multiplied|mod)\b"
)
_AMBIGUOUS_BEHIND = re.compile(
    r",[0-9]| [0-9\ue000]| ?[¼-¾⅐-⅞]|\+"
    r"| ?(?:hundred|thousand|[mbtr]+illion|dozen|lakh|crore|mio|mrd|bn|mn)s?\b"
    r"|(?: [^\W\d_]{1,15})?,? (?:or|to) (?:[$€£] ?)?(?:[0-9]|more\b|less\b|fewer\b)"
    r"| (?:out )?of [0-9]| (?:and )?(?:an? |one )?(?:hal(?:f|ves)|quarters?|thirds?|fourths?"
    r"|fifths?|sixths?|eighths?|tenths?|hundredths?)\b",
    re.IGNORECASE,
)


def _kind(text: str, found: re.Match[str]) -> Kind:
    """Return what the number in a plain text is, by what stands around it."""
    start, end = found.span()
    before, behind = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    kind = _kind_by_sign(before, found) if found["sign"] else _kind_by_left(before, behind, found)
    if kind != "number":
        return kind
    kind = _kind_by_right(behind)
    if kind != "number":
        return kind
    if "." in found["top"] and behind.lstrip().startswith(("...", "…")):
        return "ambiguous"  # cut, or it repeats
    if _value(found) is None:
        return "part" if _is_dotted(found) else "ambiguous"
    if found["bottom"] and re.match(r"0[0-9]", found["top"]):
        return "part"  # 05/12
    return "number"


def _is_dotted(found: re.Match[str]) -> bool:
    top = found["top"]
    return _DOTTED.fullmatch(top) is not None and not re.fullmatch(r"[0-9]+(?:\.[0-9]{3})+", top)


def _kind_by_sign(before: str, found: re.Match[str]) -> Kind:
    left = before.rstrip(" ")
    last = left[-1:]
    if last in ("-", "+", "±", "∓"):
        return "ambiguous"
    is_operand = last.isdigit() or last in (")", "]", "}", "%", "°") or _is_variable(left)
    if is_operand or (left == before and (last.isalnum() or last == "_")):
        return "part"
    if found["apart"] and last not in ("=", ":", "≈", "(") and not _says_is(left):
        return "ambiguous"
    if _OPERATED.search(before):
        return "part"
    if _NEGATED.search(before):
        return "part"
    return "ambiguous" if _BOUND.search(before) or _ALTERNATIVE.search(before) else "number"


def _says_is(left: str) -> bool:
    return re.search(r"\b(?:is|are|equals|becomes)$", left) is not None


def _is_variable(left: str) -> bool:
    last = re.search(r"(?:^|[^\w])([^\W\d_])$", left)
    return last is not None and last[1].isascii() and last[1] not in "aI"


def _kind_by_left(before: str, behind: str, found: re.Match[str]) -> Kind:
    last = before[-1:]
    if last and ((last.isalnum() and not is_spaceless(last)) or last in "_#@/\\^.{[&"):
        return "part"
    if _DASHED.search(before):
        return "ambiguous"
    if re.search(r"[0-9]:$|[\w).]\($|:[0-9]{1,2}\.?$", before) or last == "第":
        return "part"
    patterns = (_LABELLED, _DATED, _OPERATED, _NEGATED, _PLUS)
    if any(pattern.search(before) for pattern in patterns):
        return "part"
    if any(pattern.search(before) for pattern in (_BOUND, _ALTERNATIVE, _COMPOUND)):
        return "ambiguous"
    return "ambiguous" if _LISTED.search(before) and _ENDS.match(behind) else "number"


def _kind_by_right(behind: str) -> Kind:
    if attached := _ATTACHED.match(behind):
        behind = behind[attached.end() :]
    elif (first := behind[:1]).isalnum():
        if not is_spaceless(first):
            return "part"
        if first in "十百千万萬億亿兆半点":
            return "ambiguous"
        if first in "年月日時时分秒号號":
            return "part"
    elif sign := _SIGN_BEHIND.match(behind):
        behind = behind[sign.end() :]
    if _AMBIGUOUS_BEHIND.match(behind):
        return "ambiguous"
    return "part" if _PART_BEHIND.match(behind) else "number"


# ---- a text that is one number

_ABOUT = re.compile(r"(?:≈|about|approximately|approx\.?|roughly|around) ?", re.IGNORECASE)
_UNIT_WORD = rf"(?:{_UNIT}|[mlC円元원]|[^\W\d_]{{2,30}})(?:\^?[23]|[²³])?"
_UNITS = re.compile(rf" ?(?:{_UNIT_WORD}(?:(?: per |[ /·]){_UNIT_WORD}){{0,2}})\.?|/ ?{_UNIT_WORD}")
_NO_UNIT = re.compile(
    r"\b(?:a|am|an|and|below|bce?|by|cubed|dozen|factorial|fewer|fifths?|half|halves|hundred"
    r"|hundredths|less|minus|more|[mbtr]+illion|negative|not|of|off|or|over|pi|plus|pm|quarters?"
    r"|score|short|sqrt|squared|tenths?|than|thirds?|thousand|times|to|under|x|nd|rd|st|th"
    rf"|{_MONTH})\b",
    re.IGNORECASE,
)


def _whole(text: str, *, behind_equals: bool = False) -> Fraction | None:
    """Return the value of a folded text that is one number with signs and units around it."""
    plain = _plain(text).strip("$ \n")
    plain = plain[:-1].rstrip("$ \n") if plain.endswith(".") else plain
    if behind_equals:
        plain = re.split("[=≈]", plain)[-1].strip("$ ")
        about = _ABOUT.match(plain)
        plain = plain[about.end() :] if about else plain
        plain = re.sub(r"^[(\[{] ?(.*?) ?[)\]}]$", r"\1", plain)
    found = _NUMBER.match(plain)
    if found is None or _value(found) is None:
        return None
    rest = plain[found.end() :]
    if re.match(r"[A-Za-z]", rest) and not _ATTACHED.match(rest):
        return None
    sign = _SIGN_BEHIND.match(rest)
    rest = rest[sign.end() :] if sign else rest
    is_unit = not rest or (_UNITS.fullmatch(rest) and not _NO_UNIT.search(rest))
    return _value(found) if is_unit else None


def read_truth(text: str) -> Fraction | None:
    """Return the number that a ground truth is; None where it is anything else.

    A worked solution is one where it ends in `#### n` or `\\boxed{n}`.
    """
    folded = fold(text).strip()
    if "####" in folded:
        return _whole(folded.rpartition("####")[2])
    if (box := _last_box(folded)) is not None:
        content, rest = box
        return None if content is None or re.search(r"[^\W_]", rest) else _whole(content)
    return _whole(folded)


def is_bare(text: str) -> bool:
    """Return whether a text is a number without words, and no code such as 007."""
    bare = r"(?!0[0-9])[-+$€£%0-9.,_' /]+"
    return re.fullmatch(bare, fold(text).strip()) is not None


# ---- the number that an answer gives

_ANSWER = re.compile(r"\banswers?[\"']?(?: is\b| ?[:：])", re.IGNORECASE)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__|<(?:b|strong)>([^<\n]{1,80})</")
_JOINED = re.compile(
    r"^(?: ?[^\W\d_]+){0,3} ?(?:(?:\b(?:and|or|to)\b|[&/-]) ?(?:[^\W\d_]+ ?)?|[,;] ?)[$€£]?$"
    rf"|^{_MEASURE} $"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_AND = re.compile(
    r"\}[ $]*(?:[,;]|\b(?:and|or)\b|\\text\{ ?(?:and|or) ?\})[ $]*(?:(?:and|or) )?[ $]*$"
)
_GOES_BEFORE = re.compile(r"[a-zA-Z_^]$|[0-9.:/]$|[0-9]-$")
_GOES_ON = re.compile(r"[.:/,'-][0-9]|[.'-]?[a-zA-Z_^²³⁰¹⁴-⁹¼-¾]")
_SENTENCE_END = re.compile(r"(?<!approx)(?<!\bca)(?<!\bno)[.!?](?= |$)|\n")


def read_answer(text: str) -> Fraction | str:
    """Return the number that an answer gives, or why it gives none that is clear."""
    folded = fold(text)
    if (box := _last_box(folded)) is not None:
        return _one(box[0], "\\boxed{}")
    if "####" in folded:
        folded = folded.rpartition("####")[2]
        line = folded.strip().partition("\n")[0]
        if (value := _whole(line, behind_equals=True)) is not None:
            return value
    plain = _plain(folded)
    answers = [*_ANSWER.finditer(plain)]
    if answers:
        return _in_sentence(plain[answers[-1].end() :])
    bold = {_bold_value(found) for found in _BOLD.finditer(folded)} - {None}
    if len(bold) == 1 and (value := bold.pop()) is not None:
        return value
    return _last_in(plain)


def numbers_in(text: str) -> Iterator[Fraction]:
    """Yield every number of a text, but those of dates, times and identifiers."""
    plain = _plain(fold(text))
    for found in _NUMBER.finditer(plain):
        start, end = found.span()
        before, behind = plain[max(0, start - 2) : start], plain[end : end + _AROUND]
        value = _value(found)
        joined = _GOES_ON.match(behind) and not _ATTACHED.match(behind)
        if value is None or _GOES_BEFORE.search(before) or joined:
            continue
        is_operator = found["sign"] and re.search(r"[\w)%] ?$", before)
        yield abs(value) if is_operator else value


def _one(content: str | None, place: str) -> Fraction | str:
    if content is None:
        return f"the last {place} is not closed"
    if (value := _whole(content, behind_equals=True)) is not None:
        return value
    plain = _plain(content)
    found = [*_NUMBER.finditer(plain)]
    is_clear = len(found) == 1 and _kind(plain, found[0]) == "number" and "!" not in plain
    value = _value(found[0]) if is_clear else None
    return f"the last {place} holds {content[:_SHOWN]!r}" if value is None else value


def _last_box(text: str) -> tuple[str | None, str] | None:
    """Return what is in the last `\\boxed{}` and behind it; the first is None where it is cut.

    What is in one that a comma, "and" or "or" joins to it is there too.
    """
    boxes = [*_BOX.finditer(text)]
    if not boxes:
        return None
    rest, depth = text[boxes[-1].end() :], 1
    before = text[boxes[-2].end() : boxes[-1].start()] if len(boxes) > 1 else ""
    joined = before[-_SHOWN:] if _AND.search(before[-_SHOWN:]) else ""
    for brace in re.finditer(r"\\[{}]|[{}]", rest):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return joined + rest[: brace.start()], rest[brace.end() :]
    return None, ""


def _bold_value(found: re.Match[str]) -> Fraction | None:
    content = next(each for each in found.groups() if each is not None)
    if re.fullmatch(r"[0-9]+[.):]", content.strip()):  # the marker of a list
        return None
    return _whole(content, behind_equals=True)


def _in_sentence(text: str) -> Fraction | str:
    """Return the number of the sentence that begins a plain text."""
    text = text.lstrip(" \n:：*_")
    first = _NUMBER.search(text)
    end = _SENTENCE_END.search(text)
    sentence = text[: end.start()] if end else text
    if first is None or first.start() >= len(sentence):
        return f"no number behind 'answer' in {sentence[:_SHOWN]!r}"
    if (value := _whole(sentence, behind_equals=True)) is not None:
        return value
    found = [(_kind(sentence, each), each) for each in _NUMBER.finditer(sentence)]
    clear = [(each.start(), _value(each)) for kind, each in found if kind == "number"]
    values = {value for _, value in clear}
    is_first = clear and (found[0][0], found[0][1].start()) == ("number", clear[0][0])
    direct = is_first and len(sentence[: clear[0][0]].split()) <= 2
    if direct and len(found) > 1:
        between = sentence[found[0][1].end() : found[1][1].start()]
        direct = len(between) > _AROUND or _JOINED.search(between) is None
    if not clear or (not direct and any(kind == "ambiguous" for kind, _ in found)):
        return f"no clear number in {sentence[:_SHOWN]!r}"
    if len(values) > 1 and not direct:
        return f"more than one number in {sentence[:_SHOWN]!r}"
    assert clear[0][1] is not None
    return clear[0][1]


def _last_in(plain: str) -> Fraction | str:
    """Return the last number that stands for itself."""
    markers = _list_markers(plain)
    for found in reversed([*_NUMBER.finditer(plain)]):
        if found.start() in markers:
            continue
        kind = _kind(plain, found)
        value = _value(found)
        if kind == "ambiguous":
            around = plain[max(0, found.start() - 12) : found.end() + 12].strip()
            return f"{around!r} can be read in more than one way"
        if kind == "number" and value is not None:
            return value
    return ""


def _list_markers(plain: str) -> frozenset[int]:
    """Return where the numbers stand that only number the lines of a list."""
    places, expected = [], 1
    for found in re.finditer(r"(?:^|\n) ?([0-9]{1,3})[.)] ", plain):
        number = int(found[1])
        if number in (1, expected):
            places.append(found.start(1))
            expected = number + 1
    return frozenset(places) if len(places) > 1 or expected > 2 else frozenset()
