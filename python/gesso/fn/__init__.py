"""Operators as functions. They come from the library's list of operators, so `dir(fn)` and `help(fn.resize)` say what
there is."""
