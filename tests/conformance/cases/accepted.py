"""What DALI takes in several forms: one value for all axes, regions without extent, other words for a policy, steps and
enumerations as tensors."""

import io
import wave as waves

from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (9, 9, 3))}
VOLUMES = {"X": noise((5, 12, 10, 3), (4, 7, 9, 3), (6, 5, 5, 3))}
SIZE = {"S": [np.array(v, np.float32) for v in (7, 11, 8)]}
BOXES = {
    "B": [np.array([[0.1, 0.1, 0.9, 0.9], [0.3, 0.2, 0.5, 0.7]], np.float32)] * 3,
    "L": [np.array([1, 2], np.int32)] * 3,
}


def wave(frames):
    """A mono WAV file of 8,000 Hz."""
    out = io.BytesIO()
    with waves.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((np.arange(frames) * 37 % 20011).astype("<i2").tobytes())
    return np.frombuffer(out.getvalue(), np.uint8)


def x(**kw):
    return source("X", **({"layout": "HWC"} | kw))


@case(inputs=IMAGES, tol=1, mean=0.03)
def one_size_for_all_axes():
    image = x()
    return (
        fn.resize(image, size=12),
        fn.resize(image, size=12, mode="not_smaller"),
        fn.resize(image, size=[12], mode="not_larger", max_size=10),
        fn.resize(image, size=-9, max_size=0),
        fn.resize(image, size=13, roi_start=0.25, roi_end=7.5),
        fn.resize(image, resize_x=12, roi_start=0.1, roi_end=0.8, roi_relative=True),
        fn.resize_crop_mirror(image, size=16, crop=[8, 6], mode="not_smaller"),
        fn.random_resized_crop(image, size=8, seed=3),
    )


@case(inputs=IMAGES | SIZE, tol=1, mean=0.03)
def one_size_from_a_tensor():
    image, size = x(), source("S", types.FLOAT, 0)
    return (
        fn.resize(image, size=size),
        fn.resize(image, size=size, mode="not_smaller"),
        fn.resize(image, size=9, roi_start=0.0, roi_end=size),
        fn.resize_crop_mirror(image, size=size, crop=[6, 5]),
    )


@case(inputs=VOLUMES | SIZE, tol=1, mean=0.05)
def one_size_for_a_volume():
    volume, size = x(layout="DHWC"), source("S", types.FLOAT, 0)
    return (
        fn.resize(volume, size=6),
        fn.resize(volume, size=size),
        fn.resize(volume, size=5, mode="not_larger", roi_start=1, roi_end=4),
    )


@case(inputs={"X": noise((2, 12, 10, 3), (1, 7, 9, 3), (3, 5, 5, 3))}, tol=1, mean=0.03)
def one_size_for_frames():
    return fn.resize(x(layout="FHWC"), size=6), fn.resize(x(layout="FHWC"), size=6, mode="not_smaller")


@case(inputs=IMAGES, tol=1, mean=0.05)
def one_scale_for_all_dimensions():
    image = x()
    return (
        fn.tensor_resize(image, scales=0.75, axes=[0, 1]),
        fn.tensor_resize(image, sizes=11, axes=[0, 1], alignment=0.25),
        fn.tensor_resize(image, sizes=8, axes=[0, 1], roi_start=1, roi_end=6),
    )


@case(inputs=IMAGES, tol=1, mean=0.05)
def regions_without_extent():
    image = x()
    return (
        fn.resize(image, size=[6, 8], roi_start=[0.5, 0], roi_end=[0.5, 1], roi_relative=True),
        fn.resize(image, size=[6, 8], roi_start=[3, 4], roi_end=[3, 4]),
        fn.resize(image, size=[6, 8], roi_start=[3, 9], roi_end=[3.0002, 2]),
    )


@case(inputs=IMAGES, tol=1, mean=0.05)
def crops_larger_than_the_resized_image():
    image = x()
    return (
        fn.resize_crop_mirror(image, resize_longer=12, crop=(14, 14)),
        fn.resize_crop_mirror(image, resize_longer=12, crop=(16, 5), mirror=3, crop_pos_y=0.1),
    )


@case(inputs=IMAGES)
def policies_by_other_words():
    image = x()
    return tuple(
        fn.slice(image, start=[-2, 1], end=[12, 40], axes=[0, 1], out_of_bounds_policy=word)
        for word in ("const", "constant", "1001", "reflect1001", "101", "reflect101")
    )


@case(inputs=IMAGES | {"T": [np.array(v, np.int32) for v in (2, -1, 30)]})
def steps_from_a_tensor():
    image, step = x(), source("T", types.INT32, 0)
    return image[:, ::step], image[1:8:step, 2]


@case(inputs={"N": [np.array(v, np.int64) for v in (2**40, 2**31 + 5, 2**32)]})
def choices_of_many():
    return fn.random.choice(source("N", types.INT64, 0), shape=[7], seed=5)


@case(inputs={"X": noise((10, 12, 3), (10, 12, 3), (10, 12, 3))})
def a_canvas_with_channels():
    return fn.multi_paste(x(), in_ids=np.array([1, 0]), output_size=[12, 14, 3])


@case(inputs=BOXES)
def windows_as_wide_as_the_picture():
    boxes, labels = source("B", types.FLOAT, 2), source("L", types.INT32, 1)
    one = fn.random_bbox_crop(
        boxes, labels, crop_shape=[100, 50], input_shape=[100, 100], bbox_layout="xyXY", allow_no_crop=False, seed=7
    )
    other = fn.random_bbox_crop(
        boxes, labels, crop_shape=[50, 100], input_shape=[100, 100], bbox_layout="xyXY", allow_no_crop=False, seed=7
    )
    return (*one, *other)


@case(inputs=BOXES)
def windows_of_a_size_are_never_the_whole_picture():
    boxes, labels = source("B", types.FLOAT, 2), source("L", types.INT32, 1)
    return tuple(
        fn.random_bbox_crop(
            boxes, labels, crop_shape=[60, 50], input_shape=[100, 100], bbox_layout="xyXY", total_num_attempts=9, seed=7
        )
    )


@case(inputs={"C": [np.array(v, np.float32) for v in (2, -1.5, 0)]})
def one_value_for_all_axes_of_a_matrix():
    center = source("C", types.FLOAT, 0)
    return (
        fn.transforms.scale(scale=[2.0, 3.0], center=5.0),
        fn.transforms.scale(scale=[2.0, 3.0, 0.5], center=center),
        fn.transforms.rotation(angle=30.0, center=center),
        fn.transforms.shear(shear=[0.5, 0.25], center=[4.0]),
        fn.transforms.rotation(angle=30.0, axis=2.0),
        fn.transforms.rotation(angle=30.0, axis=[1.0, 0.0, 1.0], center=3.0),
    )


@case()
def a_window_that_has_one_place_is_drawn():
    return (
        fn.roi_random_crop(crop_shape=[17, 10], roi_start=[0, 7], roi_shape=[3, 9], in_shape=[47, 41], seed=3),
        fn.roi_random_crop(crop_shape=[9, 10], roi_start=[0, 7], roi_shape=[9, 30], in_shape=[9, 41], seed=3),
    )


@case(inputs=IMAGES, tol=1, mean=0.05)
def filters_as_tensors():
    image = x()
    chosen = fn.random.choice([types.INTERP_LINEAR, types.INTERP_NN, types.INTERP_CUBIC], seed=2)
    return (
        fn.resize(image, size=[7, 8], interp_type=chosen),
        fn.resize(image, size=[7, 8], interp_type=types.Constant(types.INTERP_NN)),
        fn.resize(image, size=[40, 8], min_filter=chosen, mag_filter=types.Constant(types.INTERP_CUBIC)),
    )


@case()
def one_value_for_a_random_window():
    return (
        fn.roi_random_crop(crop_shape=[4, 5], roi_start=2, roi_shape=6, in_shape=20, seed=3),
        fn.roi_random_crop(crop_shape=[4, 5], roi_start=[1, 2], roi_end=9, seed=3),
        *fn.random_crop_generator(
            types.Constant(np.array([30, 40, 3], np.int64), dtype=types.INT64),
            random_area=0.5,
            random_aspect_ratio=1.0,
            seed=3,
        ),
    )


@case(inputs=IMAGES, tol=2, mean=0.1)
def one_size_of_a_perspective():
    return fn.experimental.warp_perspective(x(), matrix=[1, 0.1, 0, 0, 1, 0.2, 0, 0, 1], size=9.0)


FLAT = {
    "B": [
        np.array([[0.1, 0.1, 0.5, 0.1], [0.1, 0.1, 0.5, 0.6]], np.float32),
        np.array([[-0.1, 0.2, 1.5, 0.9]], np.float32),
        np.array([[0.4, 0.4, 0.4, 0.4]], np.float32),
    ],
    "L": [np.array([1, 2], np.int32), np.array([3], np.int32), np.array([4], np.int32)],
}


@case(inputs=FLAT, tol=1e-5)
def boxes_without_an_area_and_beyond_the_picture():
    boxes, labels = source("B", types.FLOAT, 2), source("L", types.INT32, 1)
    anchors = [-0.1, 0, 0.5, 0.5, 0.2, 0.2, 0.9, 0.9, 0.5, 0.5, 1.2, 1]
    return *fn.box_encoder(boxes, labels, anchors=anchors), fn.box_encoder(
        boxes, labels, anchors=anchors, criteria=0.1
    )[1]


@case(inputs=IMAGES)
def an_empty_list_is_as_none():
    image = x()
    return (
        fn.slice(image, start=[], end=[7, 8], axes=[0, 1]),
        fn.slice(image, start=[1, 2], rel_end=[], axes=[0, 1]),
        fn.slice(image, rel_start=[0.1, 0.2], shape=[], axes=[0, 1]),
        fn.slice(image, start=3, shape=[4, 5], axes=[0, 1]),
        fn.slice(image, start=2, end=[], axes=[1]),
    )


@case(inputs={"A": [wave(800), wave(333), wave(1)]}, tol=1e-6)
def a_rate_below_zero_is_that_of_the_file():
    encoded = source("A", types.UINT8, 1)
    return *fn.decoders.audio(encoded, sample_rate=-1.0), *fn.decoders.audio(encoded, sample_rate=0.0)
