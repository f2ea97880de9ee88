"""Definitions: what is refused, what operators get as names, seeds and arguments, what files say."""

import inspect

import numpy as np
import pytest
from gesso import Pipeline, fn, math, newaxis, ops, pipeline_def, types


@pipeline_def(batch_size=2, num_threads=1)
def empty(build):
    return build()


def described(build, **settings):
    return empty(build, **settings).description()


def test_operators_are_named_by_class_and_number():
    names = [
        op["instance"]
        for op in described(lambda: fn.resize(fn.random.uniform(shape=[4, 4, 3]), size=[2, 2]))["operators"]
    ]
    assert names == ["__Uniform_0", "__Resize_1"]


def test_arithmetic_says_what_it_computes():
    a = described(lambda: (fn.random.uniform() * 2 + 1.5) > types.Constant(3).uint8())["operators"]
    assert [op["arguments"]["expression_desc"] for op in a[1:]] == [
        ["mul(&0 $0:int32)"],
        ["add(&0 $0:float32)"],
        ["gt(&0 $0:uint8)"],
    ]


def test_indices_become_subscripts():
    operator = described(lambda: fn.random.uniform(shape=[3, 3])[1:, 0])["operators"][1]
    assert operator["arguments"] == {"lo_0": [1], "at_1": [0], "num_subscripts": [2]}
    expanded = described(lambda: fn.random.uniform(shape=[3])[newaxis])["operators"][-1]
    assert (expanded["name"], expanded["arguments"]) == ("ExpandDims", {"axes": [0]})


@pytest.mark.parametrize(
    "build, error, text",
    [
        (lambda: fn.resize(fn.random.uniform(), foo=1), KeyError, '"foo" is not defined for operator "Resize"'),
        (lambda: fn.cast(dtype=types.FLOAT), ValueError, "expects from 1 to 1 inputs, but received 0"),
        (lambda: fn.cast("a", dtype=types.FLOAT), TypeError, "input `0` of operator"),
        (lambda: bool(fn.random.uniform()), TypeError, "enable_conditionals=True"),
        (lambda: list(fn.random.uniform()), TypeError, "not iterable"),
        (lambda: fn.random.uniform()[...], NotImplementedError, "Ellipsis"),
        (lambda: fn.cast(fn.random.uniform(), dtype=fn.random.uniform()), TypeError, "is a `DataNode`, expected"),
    ],
)
def test_mistakes_are_named(build, error, text):
    with pytest.raises(error, match=text.replace("(", r"\(")):
        empty(build)


def test_a_missing_argument_names_the_line():
    with pytest.raises(RuntimeError, match=r'"angle"[\s\S]*test_authoring.py'):
        described(lambda: fn.rotate(fn.random.uniform(shape=[2, 2, 1])))


def test_names_are_unique():
    with pytest.raises(RuntimeError, match="have one name"):
        described(lambda: fn.random.uniform(name="a") + fn.random.uniform(name="a"))


def test_functions_have_signatures_and_documentation():
    parameters = inspect.signature(fn.resize).parameters
    assert parameters["resize_x"].annotation is float
    assert "interp_type" in fn.resize.__doc__


def test_classes_take_arguments_twice():
    with pytest.raises(ValueError, match="already specified in __init__"):
        empty(lambda: ops.Resize(size=[2, 2])(fn.random.uniform(shape=[3, 3, 1]), size=[1, 1]))


def test_mathematics():
    operator = described(lambda: math.clamp(fn.random.uniform(), 0, 1.0))["operators"][1]
    assert operator["arguments"]["expression_desc"] == ["clamp(&0 $0:int32 $0:float32)"]


def test_a_file_comes_back_and_runs_the_same():
    def define():
        return fn.random.normal(shape=[3]) * fn.random.coin_flip()

    pipeline = empty(define, seed=7)
    again = Pipeline.deserialize(pipeline.serialize())
    for _ in range(3):
        np.testing.assert_array_equal(pipeline.run()[0].as_array(), again.run()[0].as_array())
