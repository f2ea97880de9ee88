"""`if`, `and`, `or`, `not` on results of operators: a definition is rewritten by its syntax tree, so that both branches
run.

`convert` finds and rewrites functions, `rewrite` knows the syntax, `runtime` is what the new code calls, `scopes`
splits and merges."""

from .convert import convert, is_converted, is_left_alone, leave_alone  # noqa: F401
