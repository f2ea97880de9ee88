"""The order in which readers give their samples, as real DALI does: `record.py` records it, tests/python/test_orders.py
compares Gesso with it.

`sets` makes data sets, `running` runs a configuration in either package, `chosen` says which configurations there are.
"""
