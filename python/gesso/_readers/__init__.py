"""Readers: operators that find, shuffle and read data sets. They run in the interpreter and give samples in DALI's
order.

`order` says which sample comes next, `source` what a reader is to a pipeline, and each other module one kind of data
set."""
