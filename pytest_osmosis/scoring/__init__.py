"""Eval functions: from whatever callable the user wrote to one finite number a run.

    load_eval_fns        the functions that an option names
    eval_fn              one EvalFn of one callable
    EvalFn               an eval function, ready to be called
    EvalFnError          it gave no score
    last_assistant_text  what simple-mode functions score
    copied               a deep copy of JSON-like values

Knows signatures and return values; does not know rows, rollouts, timeouts or pytest.
"""

from __future__ import annotations

from .copies import copied
from .functions import EvalFn, EvalFnError, RunSync
from .loading import eval_fn, load_eval_fns, refuse_double
from .text import last_assistant_text, text_of

__all__ = [
    "EvalFn",
    "EvalFnError",
    "RunSync",
    "copied",
    "eval_fn",
    "last_assistant_text",
    "load_eval_fns",
    "refuse_double",
    "text_of",
]
