"""How an `EvalResult` is shown and written; each module is a function of it."""
