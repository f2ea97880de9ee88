"""DALI's place of `Invocation`."""

from ...._dynamic.invocation import Invocation, InvocationResult  # noqa: F401
