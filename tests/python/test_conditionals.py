"""`if`, `and`, `or`, `not` and `a if b else c` on what operators return."""

import numpy as np
import pytest
from gesso import fn, pipeline_def, types
from gesso.data_node import DataNode


def run(define, *sources, batch_size=4):
    @pipeline_def(batch_size=batch_size, num_threads=1, enable_conditionals=True)
    def pipeline():
        return define(*(fn.external_source(source, batch=False) for source in sources))

    return [out.as_array().tolist() for out in pipeline().run()]


def even(info):
    return np.array(info.idx_in_batch % 2 == 0)


def low(info):
    return np.array(info.idx_in_batch < 2)


def number(info):
    return np.array(info.idx_in_batch, np.int32)


def test_branches():
    def define(p, x):
        if p:
            y = x + 10
        else:
            y = x * -1
        return y

    assert run(define, even, number) == [[10, -1, 12, -3]]


def test_annotated_variables():
    def among(x, p) -> DataNode:
        small: DataNode
        if p:
            small: DataNode = x + 1
        else:
            small = x
        return small

    def define(p, x):
        y: DataNode = x
        if p:
            y = among(x, p) * 10
        return y

    assert run(define, even, number) == [[10, 1, 30, 3]]


def test_chains_and_early_definitions():
    def define(p, q, x):
        y = x
        if p and q:
            y = x + 100
        elif p or q:
            y = x + 10
        return y, not p

    assert run(define, even, low, number) == [[100, 11, 12, 3], [False, True, False, True]]


def test_returns_inside_of_branches():
    def helper(p, x):
        if p:
            return x + 1
        return x - 1

    assert run(lambda p, x: helper(p, x), even, number) == [[1, 0, 3, 2]]


def test_expressions_and_nested_functions():
    def define(p, x):
        def twice(v):
            return v * 2 if p else v

        return twice(x)

    assert run(define, even, number) == [[0, 1, 4, 3]]


def test_tuples_and_dictionaries_are_merged():
    def define(p, x):
        if p:
            out = {"a": (x, x + 1)}
        else:
            out = {"a": (x * 0, x)}
        return out["a"]

    assert run(define, even, number) == [[0, 0, 2, 0], [1, 1, 3, 3]]


def test_python_conditions_stay_pythons():
    def define(x):
        for i in range(5):
            if i == 2:
                break
            x = x + 1
        return x if i else x * 100

    assert run(define, number) == [[2, 3, 4, 5]]


def test_attributes_are_merged():
    class Box:
        value = None

    def define(p, x):
        box = Box()
        box.value = x
        if p:
            box.value = x + 5
        return box.value

    assert run(define, even, number) == [[5, 1, 7, 3]]


def test_variables_of_one_branch_are_named():
    def define(p, x):
        if p:
            y = x
        return y

    with pytest.raises(RuntimeError, match="`y` has none in the branch `else`"):
        run(define, even, number)


def test_different_structures_are_refused():
    def define(p, x):
        if p:
            y = (x, x)
        else:
            y = x
        return y

    with pytest.raises(ValueError, match="same nesting structure"):
        run(define, even, number)


def test_errors_name_the_line():
    def define(p, x):
        if p:
            y = fn.resize(x, nonsense=1)
        else:
            y = x
        return y

    with pytest.raises(KeyError, match="nonsense"):
        run(define, even, number)


def test_python_functions_inside_of_branches():
    def define(p, q, x):
        y = x
        if p:
            z = x * 2
            if q:
                y = fn.python_function(z + 1, function=lambda a: a * 100)
            else:
                y = z
            y = fn.python_function(y, function=lambda a: a + 1000) + 1
        return y

    assert run(define, low, even, number) == [[1101, 1003, 2, 3]]


def test_a_python_function_in_a_branch_without_samples():
    def never(info):
        return np.array(False)

    def define(p, x):
        if p:
            y = fn.python_function(x, function=lambda a: a + 1)
        else:
            y = x
        return y

    assert run(define, never, number) == [[0, 1, 2, 3]]


def test_random_numbers_of_a_branch_stay_when_a_function_is_in_it():
    def numbers(function):
        def define(p, x):
            if p:
                y = fn.random.normal(x, seed=5) + function(x)
            else:
                y = fn.cast(x, dtype=types.FLOAT)
            return y

        return run(define, even, number)

    assert numbers(lambda x: fn.python_function(x, function=lambda a: a * 0)) == numbers(lambda x: x * 0)


def test_branches_that_give_different_data_around_a_function():
    def define(p, x):
        if p:
            y = fn.python_function(x, function=lambda a: a.astype(np.float32))
        else:
            y = x
        return y

    with pytest.raises(RuntimeError, match="one makes float32 of 0 dimensions .* the other .* of 0 dimensions"):
        run(define, even, number)
