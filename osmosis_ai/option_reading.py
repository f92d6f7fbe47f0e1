"""The options of a multiple-choice row, the one that is right, and the one that an answer names.

An option is named by its label, a letter where the row has none, or by its text. What could name
two is never read: of a ground truth `OptionError` says so, of an answer the reason does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from string import ascii_uppercase
from typing import Any

from .folding import fold, is_blank
from .whole_words import word_places

LISTS = ("choices", "options", "endings")
"""Names that datasets give the column of options."""
_LABELS = ("label", "labels", "key", "id")
_TEXTS = ("text", "texts", "content", "value")
_ASCII = str.maketrans(
    {
        **{chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)},
        **{chr(0x24B6 + place): letter for place, letter in enumerate(ascii_uppercase)},
        **dict.fromkeys("【〔", "["),
        **dict.fromkeys("】〕", "]"),
    }
)
"""Full-width characters, circled letters and brackets of East Asian texts."""
_LETTERED = re.compile(r"\b[Aa]\s?[).:](?=[^\n]*\S)(?s:.+)\b[Bb]\s?[).:]")
_SHOWN = 60
_SENTENCE = 500
"""Characters behind an "answer is" that are looked at."""
_TRIED = 50
"""How many of these are, from the last one."""


class OptionError(ValueError):
    """What is wrong with the options of a row, or with its ground truth; a sentence."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen of."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    """As they are compared; empty where only the prompt has them."""
    shown: tuple[str, ...] = ()
    """The texts as they stand in the row."""
    has_own_labels: bool = False
    are_numbers: bool = False

    def name(self, index: int) -> str:
        """Return how reasons call an option."""
        return self.labels[index] + (f" ({_shown(self.shown[index])})" if self.shown else "")


LETTERS = Options(tuple(ascii_uppercase), ())
"""Of rows whose options stand in the prompt alone."""


def options_of(row: Mapping[str, Any], column: str) -> Options:
    """Return the options in a column of a row; `LETTERS` where it has no column `choices`.

    Raises:
        OptionError: where it lacks the column, and has others or should have this one.
    """
    if row.get(column) is not None and not (column == LISTS[0] and has_letters(row[column])):
        return read_options(row[column], column)
    others = [
        name
        for name in row
        if name.lower() in LISTS and row[name] is not None and not has_letters(row[name])
    ]
    if column == LISTS[0] and not others:
        return LETTERS
    instead = others or [name for name, value in row.items() if isinstance(value, list | dict)]
    hint = f"; try choice(options={instead[0]!r})" if instead else ""
    raise OptionError(f"the row has no {column!r}{hint}")


def has_letters(text: Any) -> bool:
    """Return whether a text has options with letters, as they stand in a prompt."""
    return isinstance(text, str) and _LETTERED.search(text) is not None


def read_options(value: Any, column: str) -> Options:
    """Return the options in a column.

    That is a list of texts, a list of objects with `label` and `text`, an object with two such
    lists, or an object of texts by their labels; also as the text of such JSON.

    Raises:
        OptionError: for anything else.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise OptionError(f"{column!r} is a text, not a list of options") from None
    labels, texts = _columns_of(value)
    if texts is None or not all(isinstance(text, str | int | float) for text in texts):
        raise OptionError(f"{column!r} is no list of options, but {_shown(value)}")
    if len(texts) < 2:
        raise OptionError(f"{column!r} has {len(texts)} options; there must be 2 to choose of")
    if labels is None and len(texts) > len(ascii_uppercase):
        raise OptionError(f"{column!r} has {len(texts)} options, more than there are letters")
    if labels is not None and (
        len(labels) != len(texts)
        or len({_plain(str(label)).strip() for label in labels}) != len(labels)
    ):
        raise OptionError(f"{column!r} needs one label of its own for each text")
    return Options(
        tuple(_plain(str(label)).strip() for label in labels or ascii_uppercase[: len(texts)]),
        tuple(_text(str(text)) for text in texts),
        shown=tuple(map(str, texts)),
        has_own_labels=labels is not None,
        are_numbers=not any(isinstance(text, str) for text in texts),
    )


def _columns_of(value: Any) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    """Return the labels, None where there are none, and the texts, None where they are neither."""
    if isinstance(value, list | tuple):
        if value and all(isinstance(one, Mapping) for one in value):
            labels, texts = ([_member(one, names) for one in value] for names in (_LABELS, _TEXTS))
            return (None if None in labels else labels), (None if None in texts else texts)
        return None, value
    if not isinstance(value, Mapping):
        return None, None
    labels, texts = _member(value, _LABELS), _member(value, _TEXTS)
    if isinstance(texts, list | tuple):
        return labels, texts
    named = {label: text for label, text in value.items() if text is not None}  # Parquet's structs
    return [*named], [*named.values()]


def _member(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if name in value), None)


# ---- the ground truth


def right_options(truth: Any, options: Options, base: int | None) -> frozenset[int]:
    """Return the places, from 0, of the options that a ground truth says are right.

    Raises:
        OptionError: where it names none, or may name two.
    """
    if truth is None or truth == [] or (isinstance(truth, str) and is_blank(truth)):
        which = (
            "missing" if truth is None else "blank" if isinstance(truth, str) else "an empty list"
        )
        raise OptionError(f"'ground_truth' is {which}")
    if isinstance(truth, list | tuple):
        return frozenset(_right(one, options, base) for one in truth)
    return frozenset([_right(truth, options, base)])


def _right(truth: Any, options: Options, base: int | None) -> int:
    if isinstance(truth, bool) or not isinstance(truth, str | int | float):
        raise OptionError(f"'ground_truth' is {_shown(truth)}, which names no option")
    text = _plain(str(int(truth) if isinstance(truth, float) and truth.is_integer() else truth))
    index = _index(truth, text.strip(), options, base)
    found = set() if index is None else {index}
    is_certain = index is not None and (isinstance(truth, str) or not options.are_numbers)
    if not is_certain or options.has_own_labels:
        found |= {*_labelled(text, options)}
        if index is None or options.are_numbers:
            found |= {at for at, option in enumerate(options.texts) if option == _text(text)}
    if len(found) == 1:
        return found.pop()
    if not found:
        which = "no letter, and the row has no options"
        if options.texts:
            which = f"none of the options {', '.join(options.labels[:10])}, by label or text"
        raise OptionError(f"'ground_truth' is {_shown(truth)}, which is {which}")
    names = " and ".join(map(options.name, sorted(found)))
    raise OptionError(f"'ground_truth' is {_shown(truth)}, which can be {names}")


def _index(truth: Any, text: str, options: Options, base: int | None) -> int | None:
    """Return what a number says; None where the truth is none, or a label or text."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        return None
    if options.has_own_labels and text in options.labels:
        return None if base is None else _counted(text, options, base)
    if base is not None:
        return _counted(text, options, base)
    if not isinstance(truth, str) and options.texts:
        return _counted(text, options, 0)
    if int(text) > len(options.labels) and _text(text) in options.texts:
        return None
    raise OptionError(
        f"'ground_truth' is {_shown(truth)}: is the first option 0 or 1? Say so: "
        "choice(base=0) or choice(base=1)"
    )


def _counted(text: str, options: Options, base: int) -> int:
    index = int(text) - base
    if not 0 <= index < len(options.labels):
        last = base + len(options.labels) - 1
        raise OptionError(f"'ground_truth' is {text}, and the options are {base} to {last}")
    return index


def has_place(truth: Any) -> bool:
    """Return whether a ground truth, or a member of it, is the number of an option, or digits."""
    members = truth if isinstance(truth, list | tuple) else [truth]
    return any(re.fullmatch(r"\s*[0-9]{1,9}(?:\.0)?\s*", _plain(str(one))) for one in members)


def _labelled(text: str, options: Options) -> Iterator[int]:
    bare = text.strip().strip("()[].:*\"' ")
    if (option := _label(bare, options)) is not None:
        yield option


# ---- the answer

_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_LATEX = re.compile(r"\\(?:text|math)(?:bf|it|rm|tt)?\s?\{([^{}]*)\}|\\[()\[\]]|\$")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*|__([^_\n]{1,200})__")
_MARKS = re.compile(r"(?<!\w)[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?!\w)|^#+ ", re.MULTILINE)
_MARKERS = (
    re.compile(
        r"\b(?:answers?|(?:correct|right|best|final|my|good|selected|chosen) "
        r"(?:option|choice|one|statement|letter|selection))[\"']?"
        r"(?: ?[:=]| - |>|(?: [\w,']+){0,4}? (?:is|be|was)\b ?:?|[ \W]{0,3}\n)"
        r"|(?:^|\n)(?:correct|solution|response|choice|option|final) ?: ?"
        r"|<(?:final|choice|option|solution)>"
        r"|\b(?:antwort|réponse|respuesta|risposta|resposta|ответ)"
        r"(?: (?!no\b|não\b|не\b|n')[\w']+){0,2}?"
        r"(?: ?[:=]| (?:ist|est|es|è|é)\b ?:?)(?: (?:la|le|die|der|das|el)\b)?"
        r"|(?:答案|正解|答え)(?:是|为|は|[:：])|(?:故|应|應)?[选選]擇?择?[:：]?",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:(?:i|we)(?:'d| would| will|'ll)? (?:choose|chose|pick|select|go with|say)"
        r"|it(?:'s| is| must be| should be| would be)|leaves(?: us with| only| just)?"
        r"|so|therefore|thus|hence)\b[,:]?",
        re.IGNORECASE,
    ),
)
"""What is followed by the answer; those of the second kind only by a label or text at once."""
_SENTENCE_END = re.compile(r"(?:(?<=[^\W\d_]{2})|(?<=[)\]\"'0-9%]))[.!?](?= |$)|\n|</answer")
_NEGATION = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|except|without|than|instead of|unlike|lieu of"
    r"|nicht|kein\w*|no|pas|não|не"
    r"|(?:rul|eliminat|exclud|reject|discard)\w*(?: out)?)|n't|不[是选選])"
    r"(?: (?:be|an?|the|just|option|choice|answer|la|le|die|der|das|el))*[ :]*[(\[\"']*$",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"[)\]\"'.:]*(?: ?(?:is|are|was|were|seems|would be|can be)(?: \w+)? "
    r"(?:not|wrong|incorrect|false|eliminated|excluded|ruled)\b| ?(?:is|was|ca|wo|does)n't)",
    re.IGNORECASE,
)
_NONE = re.compile(r"\b(?:none|neither|not|cannot|can't|unclear|unknown|impossible)\b", re.I)
_JOINED = re.compile(
    r"[)\]\"']*\s?(?:[,/&+]|,?\s?(?:or|and|und|oder|et|ou|y|o)\b)"
    r"(?: (?:maybe|perhaps|possibly|even|else|also|option|choice|then)\b)*[\s(\[\"']*$"
)
_ARTICLE = r"(?!(?<=[AI]) (?!(?:is|or|and|because|since|as|was|seems|would)\b)[a-z]|(?<=I)'[a-z])"
_ENDS = r"(?![\w+#]|['’.-]\w|,[0-9a-z])"
_RIGHT = (
    r"(?= is (?:the |clearly |definitely |therefore |most )*(?:correct|right|best|true|answer))"
)
_QUOTES = "([)]\"' "
_LEADING = re.compile(
    r"(?:(?:probably|likely|most|clearly|definitely|indeed|therefore|option|choice|letter)\b"
    r"|[\s:(\[\"'])*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    option: int
    is_negated: bool
    is_denied: bool
    """Negated by what follows: "is wrong", or a question mark and more text."""
    is_label: bool
    is_bare: bool = False
    """A label that may be a word."""


def chosen_option(answer: str, options: Options) -> int | str:
    """Return the place, from 0, of the option that an answer names, or why it names none clearly.

    In the first of these places that names any: the last box, what follows the last `####`, the
    sentence behind the last "answer is" or its like, the beginning, what is bold alone, what is
    said to be chosen ("it is", "so"), all of the text.
    """
    # Spaces count as one, as in the texts of options; lines stay.
    text = "\n".join(" ".join(line.split()) for line in _plain(answer).split("\n"))
    text = _without_wraps(text, options)
    if boxes := [*_BOX.finditer(text)]:
        return _decide(_clean(_in_braces(text[boxes[-1].end() :])), options)
    if "####" in text:
        return _decide(_clean(text.rpartition("####")[2].strip().partition("\n")[0]), options)
    bold = {_clean(one[1] or one[2]) for one in _BOLD.finditer(text)}
    text = _clean(text)
    if (option := _whole(text, options)) is not None:
        return option
    for marker in reversed([*_MARKERS[0].finditer(text)][-_TRIED:]):
        sentence = _sentence(text[marker.end() : marker.end() + _SENTENCE])
        named = _named(sentence, options)
        if named or _NONE.search(sentence):
            return _one(named, options, sentence)
    if (option := _beginning(text, options)) is not None:
        return option
    if len(found := {_whole(one, options) for one in bold} - {None}) == 1:
        return found.pop() or 0
    for marker in reversed([*_MARKERS[1].finditer(text)][-_TRIED:]):
        sentence = _sentence(text[marker.end() : marker.end() + _SENTENCE])
        mentions = _mentions(sentence, options, bare=True)
        if mentions and _direct(sentence, mentions):
            return _one(_named(sentence, options), options, sentence)
    return _one(_said(_mentions(text, options, bare=False)), options, text)


def _without_wraps(text: str, options: Options) -> str:
    """Return a text where no line ends within an option's text."""
    several = sorted((one for one in options.texts if " " in one), key=len, reverse=True)
    if not several or "\n" not in text:
        return text
    found = "|".join(re.escape(one).replace("\\ ", "[ \\n]") for one in several)
    return re.sub(found, lambda one: one[0].replace("\n", " "), text, flags=re.IGNORECASE)


def _decide(place: str, options: Options) -> int | str:
    return _one(_named(place, options), options, place)


def _one(named: Sequence[int], options: Options, place: str) -> int | str:
    if len(named) == 1:
        return named[0]
    if not named:
        return f"names no option in {_shown(place)}"
    return f"names {' and '.join(map(options.name, named))}"


def _whole(place: str, options: Options) -> int | None:
    """Return the option that a place is, by its label or its text, and nothing else."""
    text = _text(place)
    found = {at for at, option in enumerate(options.texts) if option and option == text}
    if (option := _label(place.strip(" .,:;!()[]\"'\n"), options)) is not None:
        found.add(option)
    return found.pop() if len(found) == 1 else None


def _named(sentence: str, options: Options) -> list[int]:
    """Return the options that a sentence names, where it begins with one only that."""
    if (option := _whole(sentence, options)) is not None:
        return [option]
    mentions = _mentions(sentence, options, bare=True)
    if mentions and (first := _direct(sentence, mentions)) is not None:
        return first
    return _said(mentions)


def _direct(sentence: str, mentions: Sequence[_Mention]) -> list[int] | None:
    """Return the options that a sentence begins with: a label, a text, or both; None for none."""
    first = mentions[0]
    if first.is_negated or not _LEADING.fullmatch(sentence[: first.start]):
        return None
    named = {first.option}
    for one, other in pairwise(mentions):
        if not _is_joined(sentence, one, other):
            break
        if not other.is_negated:
            named.add(other.option)
    return sorted(named)


def _beginning(text: str, options: Options) -> int | None:
    """Return the option that the text begins with, set apart from what follows."""
    mentions = _mentions(text, options, bare=True)
    if not mentions or (named := _direct(text, mentions)) is None or len(named) != 1:
        return None
    is_list = len({one.option for one in mentions if _begins_line(text, one)}) > 1
    behind = text[mentions[0].end :]
    is_apart = re.match(r"[)\]\"']*(?:[.,:;!\n]| +[-–—(]|\s*$| (?:because|since|as)\b)", behind)
    return named[0] if is_apart and not is_list else None


def _begins_line(text: str, mention: _Mention) -> bool:
    return mention.is_label and not text[: mention.start].rpartition("\n")[2].strip("([ -•")


def _said(mentions: Sequence[_Mention]) -> list[int]:
    return sorted({mention.option for mention in mentions if not mention.is_negated})


def _mentions(place: str, options: Options, *, bare: bool) -> list[_Mention]:
    """Return where options are named, ascending.

    Labels that stand for themselves only where `bare`, or where they are joined: "A or B".
    """
    found = [*_texts_in(place, options), *_labels_in(place, options)]
    outermost: list[_Mention] = []
    for one in sorted(found, key=lambda mention: (mention.start, -mention.end)):
        if not outermost or one.end > outermost[-1].end:  # "Guilty" in "Guilty of Romance" is not
            outermost.append(one)
    return [one for one in _with_negation(place, outermost) if bare or not one.is_bare]


def _with_negation(place: str, mentions: Sequence[_Mention]) -> Iterator[_Mention]:
    """Yield mentions; what is said of "A and B" is said of each."""
    groups: list[list[_Mention]] = []
    for one in mentions:
        before = groups[-1][-1] if groups else None
        if before is not None and _is_joined(place, before, one):
            groups[-1].append(one)
        else:
            groups.append([one])
    for group in groups:
        last = place[group[-2].end : group[-1].start] if len(group) > 1 else ""
        is_one_or_ends = group[0].option == group[-1].option or re.search(r"\w", last) is not None
        is_negated = group[-1].is_denied or (
            group[0].is_negated and not group[0].is_denied and is_one_or_ends
        )
        yield from (replace(one, is_negated=True) for one in group) if is_negated else group


def _is_joined(place: str, one: _Mention, other: _Mention) -> bool:
    """Return whether two mentions stand in one list, or as a label and its text."""
    between = place[one.end : other.start]
    return _is_its_text(between, one, other) or _JOINED.fullmatch(between) is not None


def _is_its_text(between: str, one: _Mention, other: _Mention) -> bool:
    return one.is_label and not other.is_label and not between.strip(_QUOTES + ".:,-–—")


def _texts_in(place: str, options: Options) -> Iterator[_Mention]:
    folded = place.casefold()
    if len(folded) != len(place):  # places would not be those of the text
        folded = place.lower() if len(place.lower()) == len(place) else place
    for option, text in enumerate(options.texts):
        if len(text) > 1 or text.isdigit():
            for start in word_places(folded, text):
                yield _mention(place, start, start + len(text), option, is_label=False)


def _labels_in(place: str, options: Options) -> Iterator[_Mention]:
    mentions: list[tuple[_Mention, bool]] = []
    for match in _label_pattern(options.labels).finditer(place):
        which = match.lastindex or 1
        option, (start, end) = _label(match[which], options), match.span(which)
        if option is not None and not _is_initial(place[end : end + 200], option, options):
            is_set_apart = match.lastgroup != "bare"
            mentions.append((_mention(place, start, end, option, is_label=True), is_set_apart))
    joined = {
        id(mention)
        for (one, _), (other, _) in pairwise(mentions)
        if _JOINED.fullmatch(place[one.end : other.start])
        for mention in (one, other)
    }
    for mention, is_set_apart in mentions:
        yield replace(mention, is_bare=not is_set_apart and id(mention) not in joined)


def _is_initial(behind: str, option: int, options: Options) -> bool:
    """Return whether a letter is that of a name, as in E. coli."""
    if re.match(r"\. [a-z]", behind) is None or not options.texts:
        return False
    return not _text(behind[2:]).startswith(options.texts[option])


def _mention(place: str, start: int, end: int, option: int, *, is_label: bool) -> _Mention:
    before, behind = place[max(0, start - 40) : start], place[end : end + 40]
    is_question = is_label and re.match(r"[)\]\"']*\?\s+\w", behind) is not None
    is_denied = is_question or bool(_DENIAL.match(behind))
    is_negated = is_denied or bool(_NEGATION.search(before))
    return _Mention(start, end, option, is_negated, is_denied, is_label)


@lru_cache(maxsize=256)
def _label_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds labels: set apart by brackets or words, or `bare`."""
    known = sorted({*labels, *_aliases(labels)}, key=len, reverse=True)
    one = "|".join(map(re.escape, known))
    return re.compile(
        rf"[(\[]((?i:{one}))[)\]]"
        rf"|\b(?i:option|choice|letter)\s[\"']?({one}){_ENDS}"
        rf"|^[ \-•]*((?i:{one}))[.):](?=\s)"
        rf"|(?<![\w'’.+/\\-])({one}){_RIGHT}"
        rf"|(?<![\w'’.+\\-])(?<![0-9],)(?P<bare>{one}){_ARTICLE}{_ENDS}",
        re.MULTILINE,
    )


def _aliases(labels: Sequence[str]) -> str:
    """Return the letters that stand for labels that are digits: prompts have them instead."""
    return ascii_uppercase[: len(labels)] if all(label.isdigit() for label in labels) else ""


def _label(text: str, options: Options) -> int | None:
    """Return the option with this label; in another case where only one has it."""
    folded = text.casefold()
    for labels in (options.labels, _aliases(options.labels)):
        exact = [at for at, label in enumerate(labels) if label == text]
        found = exact or [at for at, label in enumerate(labels) if label.casefold() == folded]
        if len(found) == 1:
            return found[0]
    return None


def _sentence(text: str) -> str:
    text = text.lstrip(" \n:：*_")
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _in_braces(text: str) -> str:
    depth = 1
    for brace in re.finditer(r"\\[{}]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[: brace.start()]
    return ""


def _plain(text: str) -> str:
    return fold(text).translate(_ASCII)


def _clean(text: str) -> str:
    """Return a plain text without the marks of LaTeX and Markdown."""
    if "\\" in text or "$" in text:
        text = _LATEX.sub(lambda mark: mark[1] or "", _LATEX.sub(lambda mark: mark[1] or "", text))
    return _MARKS.sub("", text).strip()


def _text(text: str) -> str:
    """Return a text as texts of options are compared."""
    folded = " ".join(_clean(_plain(text)).casefold().split())
    return folded.rstrip(".!?,; ") or folded


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    cut = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return repr(cut) if isinstance(value, str) else cut
