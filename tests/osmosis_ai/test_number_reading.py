"""Which number a ground truth is, and which one an answer gives."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from osmosis_ai.number_reading import numbers_in, read_answer, read_truth
from osmosis_ai.scorers import number

HALF = Fraction(1, 2)
ANSWERS: dict[str, int | str | Fraction] = {
    # Signs of any kind.
    "−5": -5, "-5": -5, "–5": -5, "﹣5": -5, "－5": -5, "+5": 5, "x = −5": -5, "x=-5": -5,
    "(-5)": -5, "It is -5.": -5, "-$5": -5, "$-5": -5, "−1 000": -1000, "-.5": -HALF,
    # Thousands of any kind, decimals, exponents.
    "1,000": 1000, "1 000": 1000, "1\u00a0000": 1000, "1\u2009000": 1000, "1\u202f000": 1000,
    "1_000": 1000, "1'000": 1000, "1’000": 1000, "12 345 678": 12345678, "1,234.50": "1234.5",
    r"1\,000": 1000, "1{,}000": 1000, "１２": 12, "８．５": "8.5", "８，０００": 8000,
    ".5": HALF, "1e5": 100000, "1.5E-3": "0.0015",
    "٣٫٥": "3.5", "١٬٢٣٤": 1234, "७२ सेब": 72, "มี๕ลูก": 5, "𝟕𝟐": 72, "5٪": 5,
    "2×10^3": 2000, "2 x 10^3": 2000, "2·10³": 2000, r"2 \times 10^{-3}": "0.002", "2*10**3": 2000,
    # Fractions, units, currency, percent, LaTeX, Markdown, HTML.
    "3/4": "3/4", "-3 / 4": "-3/4", "1,000/4": 250, r"\frac{3}{4}": "3/4", r"-\dfrac{1}{2}": -HALF,
    "½": HALF, "−½": -HALF, "2½ cups": "2.5", "1 ½": "1.5", "-2½": "-2.5", r"-\$5": -5,
    r"$\tfrac12$": HALF, r"\frac{-1}{2}": -HALF, "50 %": 50, r"5\%": 5, "€ 5": 5,
    "5€": 5, "5 USD": 5, "$ 1,234.50": "1234.5", r"\$5": 5, "5km": 5, "5 km/h": 5, "90°": 90,
    r"90^\circ": 90, "12 apples": 12, r"5\text{ cm}": 5, r"\[ 42 \]": 42,
    "*42*": 42, "`42`": 42, "__42__": 42, "<answer>42</answer>": 42, "42!": 42,
    "| total | 42 |": 42, "答えは42です": 42,
    # The place that decides: a box, a mark, a sentence, what is bold alone, the last.
    r"\boxed{42} and 7": 42, r"\boxed{41}, no: \boxed{42}": 42, r"\boxed{\frac{1}{2}}": HALF,
    r"\boxed {5}": 5, r"\fbox{5} and 7": 5, r"\boxed{{5}}": 5, "Answer: [5]": 5,
    '{"answer": 5}': 5, '{"why": "4 + 1", "answer": 5, "sure": 0.9}': 5, "{'result': 5}": 5,
    "\\boxed{5}, so:\n\\boxed{6}": 6,
    r"\boxed{x = 5}": 5, r"\boxed{\left(5\right)}": 5, "1⁄2": HALF,
    r"\boxed{42\text{ cm}}": 42, r"\boxed{42\text{cm}^2}": 42, r"\boxed{\text{Total: }42}": 42,
    r"The answer is 7. \boxed{\$1{,}000}": 1000,
    "#### 1,000": 1000, "#### $18\nI checked it 2 times": 18, "#### Step 2\nThe answer is 7": 7,
    "The answer is 42. I checked it in 2 ways.": 42, "The answer is 6 * 7 = 42": 42,
    "She makes 9 * 2 = <<9*2=18>>18 dollars.": 18, r"\underline{18}": 18,
    "The answer is 42 because 6 * 7 = 42": 42, "Answer:\n\n$$42$$\nSee step 7.": 42,
    "**Answer:** 42, of 50 asked": 42, "The final answer is approx. 3.5 km.": "3.5",
    "The answer is 12 (3 * 4)": 12, "So the answer is therefore 7": 7,
    "**42**, checked on 2024-05-01": 42, "<b>42</b> of them are in row 7": 42,
    "She has **9** and makes **$18**": 18, "It's **5**, not **6**.": 5,
    "So she makes 9 * 2 = $18": 18, "x = 5, y = 6": 6, "3 + 5 = 8, see page 2": 8,
    "42 (on January 5, at 9:30)": 42, "42, as version 1.2.3 of GPT-4 has it": 42,
    "1. First 7\n2. Then 8": 8, "In 2023, 5 people came": 5, "Of the 10, 4 were red": 4,
    "It is 5, not 6": 5, "42 (x^2 + 3x)": 42, "EUR42": 42,
    # Mixed numbers.
    "1 1/2": "1.5", "2 1/2 cups": "2.5", "-1 1/2": "-1.5", r"2\frac{1}{2}": "2.5",
    r"It is $2 \dfrac12$.": "2.5", r"\boxed{2\tfrac{1}{2}}": "2.5", "= 1 3/4 hours": "1.75",
}  # fmt: skip
UNCLEAR = [
    "", "none", "eighteen", "2023-01-05", "05/12/2023", "05/12", "January 5, 2024", "5 January",
    "at 9:30", "at 5 pm", "3:4", "1.2.3", "192.168.1.1", "COVID-19", "A4", "x2", "row_3", "5th",
    "a 5-year plan", "#5", "f(5)", "[5]", "see Section 4", "Room 12", "http://x.org/a/5", "5.pdf",
    "x^2", "2√3", "3x + 5", "3 + 5", "8 = 3 + 5", "5 - 3", "5-3", "5–10", "x -5", "2π", "1/0",
    r"\boxed{5!}", r"\boxed{5\text{th}}", r"0.\overline{3}", "0.(3)", "0.333...", r"1.2 \ldots",
    r"\boxed{2\sqrt{3}}", r"\boxed{}", r"5 \boxed{x}", r"5 \boxed{6", r"2\frac{3}{2}", "#### ?",
    "1,5", "12,34", "0,123", "1.234,50", "1.234.567", "1,234 567", "3 boys have 1,5 each",
    "3, 6", "2 and 3", "It is 5 or 6.", "2 to 3", "3 of 4", "3 out of 4", "5 3/2", "2 and a half",
    r"\boxed{5}, \boxed{6}", r"$\boxed{5}$ or $\boxed{6}$",
    "$18-$20", "€5–€6", "1 234 ½", "½ or ¼", "x½",
    "2 hours 30 minutes", "The answer is 8 h 30 min", "5 feet and 3 inches",
    "5k", "5 million", "2 dozen", "5万", "minus 5", "Total - 5", "– 5", "—5", "±5", "x > 5",
    "> 5", "―5",
    "at least 5", "more than 5", "5 or more", "The answer is 5 or 6", "The answer is not 5",
    "The answer is 5, 6", "The answer is 5 apples and 3 pears", "answer: between 3 and 5",
    "The answer is unknown. There were 3 tries.", "The answer is 0.1+0.2", "1e999999999",
    "9" * 5000, '{"answer": [5, 6]}', "[5, 6]", "-(5)", "x = 3 or x = 5", "x=3, x=5", "12 345 1/2",
    "x^2 1/2", r"x^{2\frac{1}{2}}",
]  # fmt: skip
TRUTHS = [
    "5", "-5", "−5", "+5", "1,000", "1 000", "1'000", "1_000", "１２", ".5", "0.1", "1e5", "1e-07",
    "2×10^5", "1/2", r"\frac{1}{2}", r"$\dfrac{1}{2}$", "50%", "$5", "5 km", "5km", "5 m/s",
    "1 1/2", r"2\frac{1}{2}",
    "5 apples", "12 square meters", r"5\text{ cm}", r"5\text{cm}^2", "90°", "5.", "½", "٧٢",
    "500円", "So \\boxed{7}.\n\n\\boxed{7}",
    "so it is\n#### 1,000", r"Hence $\boxed{72}$.", r"3 \boxed{\text{72}}",
]  # fmt: skip
NO_TRUTHS = [
    "2023-01-05", "9:30", "3, 6", "3,6", "x^2", "10^5", "2√3", "Section 4", "eighteen", "1,5", "5,",
    "1.234,5", "1.234.567", "12,34", "5 or 6", "5-6", "x = 5", "about 5", "(5)", "5!", "5x", "5th",
    "5 million", "5 pm", "5 January", "2 pi", "3 dozen", "1 3/2", "1/2/3", "3:4", "6'2\"", "nan",
    "inf", "true", "A", "1e999999999", "5 feet 3 inches", "#### 3, 6", r"\boxed{x}",
    "#### 5 or so 6", r"\boxed{5} or \boxed{6} or none",
    r"$\boxed{5}$ and $\boxed{6}$.", "5 6", "-", "%", "> 5",
    "±5", "5k", "7 of 9", "9" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_gives_one_number(text: str):
    assert read_answer(text) == Fraction(ANSWERS[text])


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_is_unclear_or_belongs_to_something_else_is_no_number(text: str):
    assert isinstance(read_answer(text), str)


@pytest.mark.parametrize("text", TRUTHS)
def test_a_ground_truth_is_one_number(text: str):
    truth = read_truth(text)
    assert truth is not None
    assert number()(f"So: {text}" if "boxed" not in text else text, text)["score"] == 1.0


@pytest.mark.parametrize("text", NO_TRUTHS)
def test_anything_else_is_no_ground_truth(text: str):
    assert read_truth(text) is None


SIGNS = st.sampled_from(["", "-", "−", "–", "+"])
SEPARATORS = st.sampled_from(["", ",", " ", "\u00a0", "\u2009", "\u202f", "_", "'", "’"])
AROUND = st.sampled_from(
    [
        "{}", "{}.", "It is {}.", "The answer is {}.", "Answer: {}", "**{}**, by 2 ways", "x = {}",
        r"So \boxed{{{}}}", "2 + 3 gives\n#### {}", "${}$", "€{}", "{}%", "{} km", "({})", "`{}`",
        "{} apples", r"{}\text{{ cm}}", "<b>{}</b>", "Step 1: think.\n\nThe answer is:\n{}",
    ]
)  # fmt: skip


@st.composite
def written(draw: st.DrawFn) -> tuple[Fraction, str]:
    """A number, and one of the ways in which it may be written."""
    value = draw(st.integers(min_value=0, max_value=10**9))
    decimals = draw(st.text(alphabet="0123456789", max_size=6))
    form = draw(st.sampled_from(["plain", "fraction", "frac", "mixed", "power", "e"]))
    sign = draw(SIGNS)
    exact = Fraction(f"{value}.{decimals or 0}")
    text = f"{value:,}".replace(",", draw(SEPARATORS)) + (f".{decimals}" if decimals else "")
    if form in ("fraction", "frac"):
        bottom = draw(st.integers(min_value=1, max_value=9999))
        exact = Fraction(value, bottom)
        text = f"{value}/{bottom}" if form == "fraction" else rf"\frac{{{value}}}{{{bottom}}}"
        assume(form == "frac" or not str(value).startswith("0"))
    elif form == "mixed":
        whole, bottom = draw(st.integers(1, 999)), draw(st.integers(2, 999))
        top = draw(st.integers(1, bottom - 1))
        exact = whole + Fraction(top, bottom)
        form = draw(st.sampled_from(["{} {}/{}", r"{}\frac{{{}}}{{{}}}"]))
        text = form.format(whole, top, bottom)
    elif form in ("power", "e"):
        exponent = draw(st.integers(min_value=-12, max_value=12))
        exact *= Fraction(10) ** exponent
        text += f"e{exponent}" if form == "e" else rf" \times 10^{{{exponent}}}"
    return (-exact if sign in ("-", "−", "–") else exact), sign + text


@given(number_as_text=written(), around=AROUND)
def test_a_number_that_is_written_in_any_way_is_read_as_itself(
    number_as_text: tuple[Fraction, str], around: str
):
    value, text = number_as_text
    assert read_answer(around.format(text)) == value
    assert read_truth(text) == value


@given(one=written(), other=written(), around=AROUND)
def test_a_wrong_number_never_scores(
    one: tuple[Fraction, str], other: tuple[Fraction, str], around: str
):
    verdict = number()(around.format(one[1]), other[1])
    assert verdict["score"] == float(one[0] == other[0])


@pytest.mark.parametrize(
    "part",
    [
        "1 ", "1,", "1,234", "9", "-", "5 - ", "answer is ", "**5** ", r"\boxed{", "{", r"\frac{",
        "1e", "$ ", "<a", "*", "####", "1/2 ", "2023-01-05 ", r"\text{", " ", "1. x\n", "=5", "a5 ",
        "\n", ". ", "\ue0001", "5:30 ", "a",
    ],
)  # fmt: skip
def test_a_long_text_is_read_in_one_pass(part: str):
    text = part * (30_000 // len(part))
    read_answer(text)
    read_answer(f"The answer is 5 {text}")
    read_truth(text)
    assert all(isinstance(each, Fraction) for each in numbers_in(text))
