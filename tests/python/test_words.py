"""Under `gesso.as_dali` messages say what DALI says of the same mistake, too."""

import json
import subprocess
import sys
import textwrap

import pytest

# What is wrong > words of DALI 2.4.
WRONG = {
    "fn.external_source(lambda: 1, parallel=True)": "Got a callable that does not accept arguments instead.",
    "fn.external_source(lambda a, b: 1)": "The `source` callable must accept either 0 or 1 positional arguments",
    "fn.external_source(iter([1]), parallel=True, batch=False)": "Parallel external source with an iterable must be run in a batch mode",
    "fn.external_source(num_outputs=2)": "The parameter ``num_outputs`` is only valid when using ``source`` to provide data.",
    "fn.pad(picture(), axes=[5])": "Axis 5 out of range. Expected range is [-3, 2] for a 3D input",
    "fn.pad(picture(), axes=[0], align=[-1])": "Values of `align` argument must be positive.",
    "fn.slice(picture(), start=[0], end=[1], shape=[1], axes=[0])": '"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive',
    "fn.slice(picture(), rel_start=[.5, .5], rel_shape=[.9, .9], axes=[0, 1])": "Slice can't be placed out of bounds with current policy. Got: "
    "input_shape={10, 12, 3}, slice_anchor={5, 6, 0}, slice_shape={9, 11, 3}",
    "fn.squeeze(picture(), axes=[0])": "Requested a shape with 36 elements but the original shape has 360 elements.",
    "fn.reshape(picture(), shape=[5, 5])": "Requested a shape with 25 elements but the original shape has 360 elements.",
    "fn.reshape(feed(np.zeros((320, 0))), rel_shape=[-1, 1])": "Cannot infer the extent of dimension 0 when the volume of the other extents is 0. "
    "Input shape: 320 x 0",
    "fn.expand_dims(picture(), axes=[-1])": "Axis value can't be negative",
    "fn.expand_dims(picture(), axes=[0], new_axis_names='A')": "Specifying ``new_axis_names`` requires an input with a proper layout.",
    "fn.multi_paste(fn.external_source(lambda: [np.zeros((2, 3, 3), np.uint8), np.zeros((2, 4, 3), np.uint8)]), in_ids=np.array([0, 1]))": "If the "
    "`output_size` is not specified, all the input samples must have the same shape.",
    "fn.zeros(shape=[2, 3, 4], layout='HW')": "Layout 'HW' has 2 dimensions but output shape has 3",
    "fn.random.beta(alpha=1.0, beta=-1.0)": "The `beta` must be a positive float32",
    "fn.random.choice(-5)": "Expected positive number of elements for sampling, got: -5 for sample: 0.",
    "fn.roi_random_crop(picture(), roi_start=[0, 0], roi_shape=[4, 4], crop_shape=[20, 20])": "Cropping shape can't be bigger than the input shape.",
    "fn.roi_random_crop(picture(), roi_start=[-1, 0], roi_shape=[4, 4], crop_shape=[2, 2])": "ROI can't be out of bounds.",
    "fn.sequence_rearrange(feed(np.zeros((5, 1)), layout='FH'), new_order=[6])": "must be between 0 and input_sequence_length = 5 for sample 0, but it is: 6",
    "fn.decoders.numpy(feed(np.zeros(100, np.uint8)))": "Got bad magic string for numpy header",
    "fn.decoders.image(feed(np.frombuffer(b'\\xff\\xd8\\xff\\xe0 and no more', np.uint8)))": "Failed to decode",
    "fn.debayer(picture(), blue_position=[0, 0])": "The debayer operator expects grayscale (i.e. single channel) images",
    "fn.debayer(feed(np.zeros((9, 12), np.uint8)), blue_position=[0, 0])": "The height and width of the image to debayer must be even",
    "fn.mfcc(feed(np.zeros((4, 5), np.float32)), axis=2)": "Axis 2 is out of bounds [0,2)",
    "fn.permute_batch(picture(), indices=[0, 5])": "5 is not a valid index for an input batch of 2 tensors.",
    "fn.spectrogram(feed(np.zeros(10, np.float32)), window_length=512, center_windows=False)": "Signal is too short",
    "fn.crop(picture(), crop=types.Constant(np.array([2, 2], np.float32)).gpu())": "Invalid device \"gpu\" for argument 'crop' of operator 'nvidia.dali.fn.crop'",
}


@pytest.fixture(scope="module")
def said():
    """What is said of each, found out in a process of its own, in which `nvidia.dali` is Gesso."""
    program = """
        import gesso.as_dali, json, sys
        import numpy as np
        from nvidia.dali import fn, pipeline_def, types

        def feed(sample, **options):
            return fn.external_source(lambda: [sample] * 2, **options)

        def picture():
            return feed(np.zeros((10, 12, 3), np.uint8))

        said = {}
        for wrong in json.loads(sys.argv[1]):
            try:
                pipeline_def(batch_size=2, num_threads=1, device_id=None)(lambda: eval(wrong))().run()
            except (RuntimeError, TypeError, ValueError) as error:
                said[wrong] = str(error)
        print(json.dumps(said))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), json.dumps(list(WRONG))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("wrong", WRONG)
def test_words_of_dali_are_there(said, wrong):
    assert WRONG[wrong] in said[wrong]
