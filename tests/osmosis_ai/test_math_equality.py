"""Whether answers are mathematically equal to ground truths, by math-verify in its process."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from osmosis_ai import math_equality, scorers

CASES = [
    (r"The answer is $\frac{1}{2}$.", "0.5", 1),
    (r"\boxed{(x+1)^2}", "x^2+2x+1", 1),
    (r"\boxed{2\sqrt{3}}", "2√3", 1),
    (r"\boxed{2}", r"2\sqrt{3}", 0),
    (r"\boxed{6}", "3, 6", 0),
    (r"\boxed{6, 3}", "3, 6", 1),
    ("The answer is 42. I checked it in 2 ways.", r"So\n\boxed{42}", 1),
    ("So it is\n\\[ x = 5 \\]", "5", 1),
    (r"\boxed{(2,1)}", "(1, 2)", 0),
    (r"\boxed{[0,1)}", "[0,1)", 1),
    (r"\boxed{[0,1]}", "[0,1)", 0),
    (r"\boxed{\pi}", "pi", 1),
    ("5 or 6", "6", 0),
    ("I do not know", "5", 0),
    (r"\boxed{\frac{x}", "5", 0),
    ("1/2", ["0.25", "1/2"], 1),
    ("<think>5</think>6", "5", 0),
    ("1 1/2", "3/2", 1),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 1),
    (r"\begin{pmatrix}1&2\\3&5\end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 0),
]


def test_answers_are_compared_as_mathematics_from_any_thread():
    """One test, for what is compared shares a process that takes seconds to start."""
    pytest.importorskip("math_verify")
    scorer: Any = scorers.named("math")
    found: list[float] = []

    def compare():
        found.extend(scorer(answer, truth)["score"] for answer, truth, _ in CASES)

    thread = threading.Thread(target=compare)
    thread.start()
    thread.join()
    assert found == [float(score) for *_, score in CASES]
    for truth in ("eighteen", "Section 4", "1,5", "2023-01-05", r"\frac{", "$"):
        assert scorer.refuse_ground_truth(truth), truth
    assert scorer.refuse_ground_truth(r"\frac{1}{2}") is None


def test_the_missing_package_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(math_equality, "PACKAGE", "no_such_package")
    with pytest.raises(ValueError, match=r"pip install 'pytest-osmosis\[math\]'"):
        scorers.named("math")


@pytest.mark.parametrize(
    "script",
    ["print('ready', flush=True); input()", "print('ready', flush=True)\nwhile True: pass"],
)
def test_a_process_that_does_not_answer_is_replaced(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
):
    path = tmp_path / "script.py"
    path.write_text(script)
    monkeypatch.setattr(math_equality, "PROCESS", path)
    monkeypatch.setattr(math_equality, "ANSWER_S", 0.2)
    process = math_equality._Process()
    assert process.ask(truth="1") is None
    path.write_text(
        "print('ready', flush=True)\nfor _ in iter(input, ''): print('true', flush=True)"
    )
    monkeypatch.setattr(math_equality, "ANSWER_S", 60)
    assert process.ask(truth="1") is True
    assert process._running is not None
    process._end(process._running)
