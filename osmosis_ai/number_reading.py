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
_WHOLE = r"(?<![0-9.,_'^/\w])(?<![0-9] )(?<!\^\{)([0-9]{1,3})"
_FRAC = re.compile(rf"(?:{_WHOLE}[ ~]?)?\\[dtc]?frac{_PART}{_PART}")
_MIXED = re.compile(rf"{_WHOLE} ([0-9]{{1,3}}) ?/ ?([0-9]{{1,3}})(?![\w/]|[.,][0-9])")
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
        text = _COMMAND.sub(lambda command: _COMMANDS[command[1]], text)
        text = _FRAC.sub(_fraction, text).replace(f"–{_FRACTION_MARK}", f"-{_FRACTION_MARK}")
    text = _MIXED.sub(lambda parts: _mixed(*parts.groups()) or parts[0], text)
    text = _DELIMITER.sub(" ", _TAG.sub(" ", text))
    text = _EMPHASIS.sub("", text)
    text = _POWER_OF_TEN.sub(lambda power: f"^{power[0].translate(_SUPERSCRIPT)}", text)
    text = _BRACED_POWER.sub(r"^\1", text).replace("^°", "°").replace("**", "^")
    return re.sub(r"[ \t]+", " ", text).replace(" ^", "^").strip()


def _fraction(parts: re.Match[str]) -> str:
    top, bottom = parts[2] or parts[3], parts[4] or parts[5]
    return _mixed(parts[1], top, bottom) or f"{parts[1] or ''}{_FRACTION_MARK}{top}/{bottom}"


def _mixed(whole: str | None, top: str, bottom: str) -> str | None:
    """Return 1 1/2 as 3/2; None where that is no mixed number."""
    if not (whole and top.isdigit() and bottom.isdigit() and 0 < int(top) < int(bottom)):
        return None
    return f"{_FRACTION_MARK}{int(whole) * int(bottom) + int(top)}/{bottom}"


def _vulgar(parts: re.Match[str]) -> str:
    """Return ½ as 1/2, and 2½ as 5/2."""
    top, bottom = map(int, unicodedata.normalize("NFKC", parts[2]).split("⁄"))
    return f"{_FRACTION_MARK}{int(parts[1] or 0) * bottom + top}/{bottom}"


# ---- one number

_CURRENCY = (
    r"(?:(?:US|CA|AU|HK|NZ|A|C|R)?\$|[¢£¤¥€\u20a0-\u20c0]"
    r"|(?:USD|EUR|GBP|JPY|CHF|CNY|INR)(?![A-Za-z_])|Rs\b\.?)"
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


def _value(number: re.Match[str]) -> Fraction | None:
    """Return what the digits say; None where they are no number, or too long a one."""
    digits = number["top"].lstrip("+-")
    signs = [*filter(None, (number["sign"], number["inner"], number["top"][: -len(digits)]))]
    value = _unsigned(digits)
    if len(signs) > 1 or value is None:
        return None
    exponent = number["e"] or number["ten"]
    if exponent is not None:
        if len(exponent) > 6 or abs(int(exponent)) > MAX_DIGITS:
            return None
        value *= Fraction(10) ** int(exponent)
    if number["bottom"] is not None:
        bottom = _unsigned(number["bottom"])
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
_LABELLED = (
    r"(?i:\b(?:section|room|chapter|page|figure|fig|table|step|question|problem|exercise|row|line|"
    r"item|equation|eq|part|case|method|option|no|nr|version|article|act|rule|gate|bus|flight|"
    r"route|highway|example|note|appendix|channel|id|isbn|zip|code)\.?[ #:]{0,2}$)"
)
_DATED = rf"\b{_MONTH}\.?(?:,? ?| [0-9]{{1,2}}(?:st|nd|rd|th)?,? )$"
_OPERATED = (
    r"(?i:(?:\b(?:times|plus|divided by|multiplied by|root of|sqrt|log|ln|sin|cos|tan|mod)"
    r"|[√∛÷×·⋅^/]) ?$)"
)
_NEGATED = r"(?i:(?:\bnot|n't)(?: (?:a|just|exactly|equal to|be))? ?$)"
_BOUND = (
    r"(?i:(?:\b(?:more|less|fewer|greater|larger|smaller|higher|lower) than|\bat (?:least|most)|"
    r"\b(?:minus|negative)|[<≤≥≠±∓]|(?<![=-])>) ?$)"
)
_ALTERNATIVE = r"[0-9%](?: [^\W\d_]{1,15})?,? (?:or|to) (?:[$€£] ?)?$|[0-9] (?:out )?of $"
_UNIT = (
    r"(?:km|cm|mm|nm|µm|μm|kg|mg|lbs?|oz|ml|mL|cl|dl|min|hrs?|h|s|sec|secs|ms|ns|ft|in|mi|mph|kph|"
    r"kmh|kWh|kW|MW|GW|Hz|kHz|MHz|GHz|[KMGT]i?B|bits?|bytes?|px|pt|dB|Pa|kPa|mol|kJ|cal|kcal|L|V|W|"
    r"N|A|g|USD|EUR|GBP|CHF|cents?|°[CFK]?|ha|rpm|fps)"
)
_SAME = r"\b([A-Za-z]\w?)\b[^=\n;.]{0,3}= ?-?[^=\n;]{1,12}?(?:,|;|\b(?:or|and)\b) ?\1 ?= ?$"
_DASHED = r"(?:^|\W)[–—―]$|[–—―] $"
_MEASURE = rf" ?(?:{_UNIT}|hours?|minutes?|feet|foot|pounds?|years?|months?|weeks?|days?|degrees)"
_COMPOUND = rf"[0-9]{_MEASURE},? (?:and )?$"
_SIGNED_PART = f"{_OPERATED}|{_NEGATED}"
_SIGNED_AMBIGUOUS = f"{_BOUND}|{_ALTERNATIVE}"
_PART_BEFORE = (
    rf"{_LABELLED}|{_DATED}|{_SIGNED_PART}|[\w)}}](?: ?\+| ?\*) ?$"
    r"|[0-9]:$|[\w).+-] ?\($|:[0-9]{1,2}\.?$|第$|[_#@/\\^.{\[&]$"
)
_AMBIGUOUS_BEFORE = f"{_SAME}|{_DASHED}|{_SIGNED_AMBIGUOUS}|{_COMPOUND}"
_LISTED = r"[0-9%](?:,|;|,? and|&) ?$"
_ENDS = r"[.!)\]}\"']*(?:\s*$|\n|\. )"
_BEHIND_UNIT = rf"(?:\^?[23]|[²³])?(?:[/·]{_UNIT}(?:\^?[23]|[²³])?)?(?![^\W_])"
_ATTACHED = rf"{_UNIT}{_BEHIND_UNIT}"
_SIGN_BEHIND = rf" ?(?:%|‰|{_CURRENCY}|°[CFK]?\b|°)"
_PART_BEHIND = (
    r"[.'][a-z0-9\\({]|:[0-9]|-[\w(\\$€£¥]|/(?![A-Za-z]{2,}|[hsmgL]\b)|[\^\\{√∛_(@\ue000]|\}[\w^{(]|![^\s.,;:!?)\"']"
    r"| ?[=≈≠<>≤≥÷×·⋅±√∛^]| ?\+ ?[\w(\\$.]| ?\* ?[\w(\\$.]| / ?[\w(]| - ?[0-9.$€£(\\]"
    r"| - ?[A-Za-z]\b| ?[xX] ?[0-9]| [xyzn]\b"
    r"| ?(?:am|pm|AM|PM|a\.m|p\.m|A\.M|P\.M|o'clock|[Uu]hr)\b"
    rf"| (?:st|nd|rd|th)\b|(?:st|nd|rd|th)? (?:of )?{_MONTH}"
    r"| (?:pi|sqrt|squared|cubed|factorial|times|plus|minus|divided|multiplied|mod)\b"
)
_AMBIGUOUS_BEHIND = (
    r"(?i:,[0-9]| [0-9\ue000]| ?[¼-¾⅐-⅞]|\+"
    r"| ?(?:hundred|thousand|[mbtr]+illion|dozen|lakh|crore|mio|mrd|bn|mn)s?\b"
    r"|(?: [^\W\d_]{1,15})?,? (?:or|to) (?:[$€£] ?)?(?:[0-9]|more\b|less\b|fewer\b)"
    r"| (?:out )?of [0-9]| (?:and )?(?:an? |one )?(?:hal(?:f|ves)|quarters?|thirds?|fourths?"
    r"|fifths?|sixths?|eighths?|tenths?|hundredths?)\b)"
)


def _kind(text: str, number: re.Match[str]) -> Kind:
    """Return what a number in a plain text is, by what stands around it."""
    start, end = number.span()
    before, behind = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    kind = _kind_by_sign(before, number) if number["sign"] else _kind_by_left(before, behind)
    kind = kind or _kind_by_right(behind)
    if kind is not None:
        return kind
    if "." in number["top"] and behind.lstrip().startswith(("...", "…")):
        return "ambiguous"  # cut, or it repeats
    if _value(number) is None:
        return "part" if _is_dotted(number["top"]) else "ambiguous"
    return "part" if number["bottom"] and re.match(r"0[0-9]", number["top"]) else "number"  # 05/12


def _is_dotted(digits: str) -> bool:
    return bool(
        re.fullmatch(r"[0-9]+(?:\.[0-9]+){2,}", digits)
        and not re.fullmatch(r"[0-9]+(?:\.[0-9]{3})+", digits)
    )


def _kind_by_sign(before: str, number: re.Match[str]) -> Kind | None:
    left = before.rstrip(" ")
    last = left[-1:]
    if last in ("-", "+", "±", "∓"):
        return "ambiguous"
    is_operand = last.isdigit() or last in (")", "]", "}", "%", "°") or _is_variable(left)
    if is_operand or (left == before and (last.isalnum() or last == "_")):
        return "part"
    is_apart = number["apart"] and last not in ("=", ":", "≈", "(")
    if is_apart and not re.search(r"\b(?:is|are|equals|becomes)$", left):
        return "ambiguous"
    if re.search(_SIGNED_PART, before):
        return "part"
    return "ambiguous" if re.search(_SIGNED_AMBIGUOUS, before) else None


def _is_variable(left: str) -> bool:
    return re.search(r"(?:^|\W)(?![aI])[A-Za-z]$", left) is not None


def _kind_by_left(before: str, behind: str) -> Kind | None:
    last = before[-1:]
    if last.isalnum() and not is_spaceless(last):
        return "part"
    if re.search(_PART_BEFORE, before):
        return "part"
    is_last = re.search(_LISTED, before) and re.match(_ENDS, behind)
    return "ambiguous" if is_last or re.search(_AMBIGUOUS_BEFORE, before) else None


def _kind_by_right(behind: str) -> Kind | None:
    if attached := re.match(_ATTACHED, behind):
        behind = behind[attached.end() :]
    elif (first := behind[:1]).isalnum():
        if not is_spaceless(first) or first in "年月日時时分秒号號":
            return "part"
        if first in "十百千万萬億亿兆半点":
            return "ambiguous"
    elif sign := re.match(_SIGN_BEHIND, behind):
        behind = behind[sign.end() :]
    if re.match(_AMBIGUOUS_BEHIND, behind):
        return "ambiguous"
    return "part" if re.match(_PART_BEHIND, behind) else None


# ---- a text that is one number

_ABOUT = r"(?i:(?:≈|about|approximately|approx\.?|roughly|around) ?)"
_UNIT_WORD = rf"(?:{_UNIT}|[mlC円元원]|[^\W\d_]{{2,30}})(?:\^?[23]|[²³])?"
_UNITS = rf" ?(?:{_UNIT_WORD}(?:(?: per |[ /·]){_UNIT_WORD}){{0,2}})\.?|/ ?{_UNIT_WORD}"
_NO_UNIT = (
    r"(?i:\b(?:a|am|an|and|below|bce?|by|cubed|dozen|factorial|fewer|fifths?|half|halves|hundred"
    r"|hundredths|less|minus|more|[mbtr]+illion|negative|not|of|off|or|over|pi|plus|pm|quarters?"
    r"|score|short|sqrt|squared|tenths?|than|thirds?|thousand|times|to|under|x|nd|rd|st|th"
    rf"|{_MONTH})\b)"
)


def _whole(text: str, *, behind_equals: bool = False) -> Fraction | None:
    """Return the value of a folded text that is one number with signs and units around it."""
    plain = _plain(text).strip("$ \n")
    plain = plain[:-1].rstrip("$ \n") if plain.endswith(".") else plain
    if behind_equals:
        plain = re.sub(f"^{_ABOUT}", "", re.split("[=≈]", plain)[-1].strip("$ "))
        plain = re.sub(r"^[(\[{] ?(.*?) ?[)\]}]$", r"\1", plain)
    number = _NUMBER.match(plain)
    if number is None or (value := _value(number)) is None:
        return None
    rest = plain[number.end() :]
    if re.match(r"[A-Za-z]", rest) and not re.match(_ATTACHED, rest):
        return None
    rest = re.sub(f"^{_SIGN_BEHIND}", "", rest)
    is_unit = not rest or (re.fullmatch(_UNITS, rest) and not re.search(_NO_UNIT, rest))
    return value if is_unit else None


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
_JOINED = (
    r"^(?: ?[^\W\d_]+){0,3} ?(?:(?:\b(?:and|or|to)\b|[&/-]) ?(?:[^\W\d_]+ ?)?|[,;] ?)[$€£]?$"
    rf"|^{_MEASURE} $"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_AND = r"\}[ $]*(?:[,;]|\b(?:and|or)\b|\\text\{ ?(?:and|or) ?\})[ $]*(?:(?:and|or) )?[ $]*$"
_GOES_BEFORE = r"[a-zA-Z_^0-9.:/]$|[0-9]-$"
_GOES_ON = r"[.:/,'-][0-9]|[.'-]?[a-zA-Z_^²³⁰¹⁴-⁹¼-¾]"
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
    bold = {_bold_value(text) for text in _BOLD.finditer(folded)} - {None}
    if len(bold) == 1 and (value := bold.pop()) is not None:
        return value
    return _last_in(plain)


def numbers_in(text: str) -> Iterator[Fraction]:
    """Yield every number of a text, but those of dates, times and identifiers."""
    plain = _plain(fold(text))
    for number in _NUMBER.finditer(plain):
        start, end = number.span()
        before, behind = plain[max(0, start - 2) : start], plain[end : end + _AROUND]
        value = _value(number)
        goes_on = re.match(_GOES_ON, behind) and not re.match(_ATTACHED, behind)
        if value is None or re.search(_GOES_BEFORE, before) or goes_on:
            continue
        is_operator = number["sign"] and re.search(r"[\w)%] ?$", before)
        yield abs(value) if is_operator else value


def answer_places(text: str) -> Iterator[str]:
    """Yield the places of an answer that decide, the first of them first; a box is the only one."""
    folded = fold(text)
    if (box := _last_box(folded)) is not None:
        yield box[0] or ""
        return
    if "####" in folded:
        yield folded.rpartition("####")[2].strip().partition("\n")[0]
        return
    if answers := [*_ANSWER.finditer(folded)]:
        rest = folded[answers[-1].end() :].lstrip(" \n:：*_")
        end = re.search(r"\*\*|[.!?](?= |$)|\n", rest)
        yield rest[: end.start()] if end else rest
        return
    yield folded.strip()
    yield folded.strip().rpartition("\n")[2]


def _one(content: str | None, place: str) -> Fraction | str:
    if content is None:
        return f"the last {place} is not closed"
    if (value := _whole(content, behind_equals=True)) is not None:
        return value
    plain = _plain(content)
    numbers = [*_NUMBER.finditer(plain)]
    is_clear = len(numbers) == 1 and _kind(plain, numbers[0]) == "number" and "!" not in plain
    value = _value(numbers[0]) if is_clear else None
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
    joined = before[-_SHOWN:] if re.search(_AND, before[-_SHOWN:]) else ""
    for brace in re.finditer(r"\\[{}]|[{}]", rest):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return joined + rest[: brace.start()], rest[brace.end() :]
    return None, ""


def _bold_value(text: re.Match[str]) -> Fraction | None:
    content: str = text[text.lastindex or 0]
    if re.fullmatch(r"[0-9]+[.):]", content.strip()):  # the marker of a list
        return None
    return _whole(content, behind_equals=True)


def _in_sentence(text: str) -> Fraction | str:
    """Return the number of the sentence that begins a plain text."""
    text = text.lstrip(" \n:：*_")
    end = _SENTENCE_END.search(text)
    sentence = text[: end.start()] if end else text
    first = _NUMBER.search(text)
    if first is None or first.start() >= len(sentence):
        return f"no number behind 'answer' in {sentence[:_SHOWN]!r}"
    if (value := _whole(sentence, behind_equals=True)) is not None:
        return value
    numbers = [*_NUMBER.finditer(sentence)]
    kinds = [_kind(sentence, number) for number in numbers]
    clear = [number for number, kind in zip(numbers, kinds, strict=True) if kind == "number"]
    is_direct = clear[:1] == numbers[:1] and len(sentence[: clear[0].start()].split()) <= 2
    if is_direct and len(numbers) > 1:
        between = sentence[numbers[0].end() : numbers[1].start()]
        is_direct = len(between) > _AROUND or re.search(_JOINED, between) is None
    if not clear or (not is_direct and "ambiguous" in kinds):
        return f"no clear number in {sentence[:_SHOWN]!r}"
    if not is_direct and len({_value(number) for number in clear}) > 1:
        return f"more than one number in {sentence[:_SHOWN]!r}"
    return _value(clear[0]) or Fraction()


def _last_in(plain: str) -> Fraction | str:
    """Return the last number that stands for itself."""
    markers = _list_markers(plain)
    for number in reversed([*_NUMBER.finditer(plain)]):
        if number.start() in markers:
            continue
        kind = _kind(plain, number)
        if kind == "ambiguous":
            around = plain[max(0, number.start() - 12) : number.end() + 12].strip()
            return f"{around!r} can be read in more than one way"
        if kind == "number":
            return _value(number) or Fraction()
    return ""


def _list_markers(plain: str) -> frozenset[int]:
    """Return where the numbers stand that only number the lines of a list."""
    places, expected = [], 1
    for marker in re.finditer(r"(?:^|\n) ?([0-9]{1,3})[.)] ", plain):
        number = int(marker[1])
        if number in (1, expected):
            places.append(marker.start(1))
            expected = number + 1
    return frozenset(places) if len(places) > 1 or expected > 2 else frozenset()
