"""Operators that DALI has on a GPU only. Pipelines are DALI's files; the answers are those of OpenCV, of LZ4 and of
numpy."""

import cv2
import lz4.block
from record import case, fn, noise, np, source, types

BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect_101": cv2.BORDER_REFLECT_101,
}
TYPES = {np.uint8: types.UINT8, np.uint16: types.UINT16, np.int16: types.INT16, np.float32: types.FLOAT}
PHOTOS = {"X": noise((20, 33, 3), (31, 17, 3), (7, 9, 3))}


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options)).gpu()


def each_image(function, sample, layout):
    """The function of each image of a sample, whose channels come last or are images of their own."""
    if len(layout) > 3 or layout == "CHW":
        return np.stack([each_image(function, part, layout[1:]) for part in sample])
    return function(sample).reshape(sample.shape)


def morphed(sample, layout="HWC", largest=True, size=(3, 3), anchor=(-1, -1), iterations=1, border="constant"):
    function = cv2.dilate if largest else cv2.erode
    mask = cv2.getStructuringElement(cv2.MORPH_RECT, tuple(map(int, size)))
    anchor = tuple(map(int, anchor))
    return each_image(
        lambda image: function(
            np.ascontiguousarray(image), mask, anchor=anchor, iterations=iterations, borderType=BORDERS[border]
        ),
        sample,
        layout,
    )


def by_opencv(function):
    """OpenCV"""

    def answer(**inputs):
        """OpenCV"""
        made = [function(*sample) for sample in zip(*inputs.values())]
        return [list(output) for output in zip(*made)]

    return answer


def declare(function, name, **options):
    function.__name__ = function.__qualname__ = name
    case(**options)(function)


for border in BORDERS:

    def both(border=border):
        return (
            fn.experimental.dilate(x(), mask_size=[5, 2], border_mode=border),
            fn.experimental.erode(x(), mask_size=[2, 4], anchor=[1, 0], border_mode=border),
        )

    declare(
        both,
        f"extremes_by_{border}",
        inputs=PHOTOS,
        answer=by_opencv(
            lambda image, border=border: (
                morphed(image, size=(5, 2), border=border),
                morphed(image, largest=False, size=(2, 4), anchor=(1, 0), border=border),
            )
        ),
    )

for dtype, of in TYPES.items():

    def planes(of=of):
        return (
            fn.experimental.dilate(x(of, layout="CHW"), iterations=3),
            fn.experimental.erode(x(of, layout="CHW")),
            fn.experimental.median_blur(x(of, layout="CHW")),
            fn.experimental.median_blur(x(of, layout="CHW"), window_size=5),
        )

    declare(
        planes,
        f"planes_of_{dtype.__name__}",
        inputs={"X": noise((3, 13, 17), (2, 4, 6), (1, 6, 9), dtype=dtype)},
        answer=by_opencv(
            lambda image: (
                morphed(image, "CHW", iterations=3),
                morphed(image, "CHW", largest=False),
                *(
                    each_image(lambda plane, size=size: cv2.medianBlur(np.ascontiguousarray(plane), size), image, "CHW")
                    for size in (3, 5)
                ),
            )
        ),
    )


@case(
    inputs=PHOTOS
    | {
        "K": [np.array(v, np.int32) for v in ((4, 3), (1, 6), (7, 1))],
        "A": [np.array(v, np.int32) for v in ((-1, -1), (0, 5), (6, 0))],
    },
    answer=by_opencv(lambda image, size, anchor: (morphed(image, size=size, anchor=anchor),)),
)
def dilated_by_sample():
    return fn.experimental.dilate(x(), mask_size=source("K", types.INT32, 1), anchor=source("A", types.INT32, 1))


def of_frames(video, sizes):
    return (
        np.stack([morphed(frame, largest=False, size=size) for frame, size in zip(video, sizes)]),
        np.stack([cv2.medianBlur(frame, 5) for frame in video]),
    )


@case(
    inputs={
        "X": noise((3, 9, 8, 3), (1, 7, 7, 3), (2, 5, 9, 3)),
        "K": [np.array(v, np.int32) for v in ([[3, 1], [2, 2], [1, 5]], [[4, 4]], [[1, 1], [3, 3]])],
    },
    answer=by_opencv(of_frames),
)
def frames():
    sizes = source("K", types.INT32, 2, layout="FK")
    return fn.experimental.erode(x(layout="FHWC"), mask_size=fn.per_frame(sizes)), fn.experimental.median_blur(
        x(layout="FHWC"), window_size=5
    )


def median(image, size):
    """By numpy: OpenCV has windows of other sizes for bytes only, and no oblong ones."""
    width, height = map(int, np.broadcast_to(size, 2))
    padded = np.pad(image, ((height // 2,) * 2, (width // 2,) * 2, (0, 0)), "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (0, 1))
    return np.sort(windows.reshape(*image.shape, -1), -1)[..., height * width // 2]


@case(
    inputs=PHOTOS | {"K": [np.array(v, np.int32) for v in ((5, 3), (1, 7), (9, 9))]},
    answer=by_opencv(lambda image, size: (median(image, size), median(image, (1, 1)), cv2.medianBlur(image, 11))),
)
def medians_by_sample():
    return (
        fn.experimental.median_blur(x(), window_size=source("K", types.INT32, 1)),
        fn.experimental.median_blur(x(), window_size=1),
        fn.experimental.median_blur(x(), window_size=[11, 11]),
    )


@case(
    inputs={"X": noise((9, 11, 2), (6, 5, 1), (12, 3, 4), dtype=np.float32)},
    answer=by_opencv(lambda image: (median(image, (7, 3)),)),
)
def medians_of_floats():
    return fn.experimental.median_blur(x(types.FLOAT), window_size=[7, 3])


def resized(image, size):
    return cv2.resize(image, tuple(int(v) for v in size[::-1]), interpolation=cv2.INTER_LINEAR)


@case(
    inputs=PHOTOS | {"S": [np.array(v, np.float32) for v in ((41, 47), (60, 20), (14, 18))]},
    tol=1,
    mean=0.3,
    answer=by_opencv(lambda image, size: (resized(image, size),)),
)
def larger():
    return fn.experimental.resize(x(), size=source("S", types.FLOAT, 1))


def maps(*shapes, seed=3):
    """Places up to 3 pixels outside, none of which is halfway between two pixels."""
    rng = np.random.default_rng(seed)
    both = [[(rng.integers(-12, 4 * (side + 3), shape) + 0.5) / 4 for side in shape[1::-1]] for shape in shapes]
    return {"U": [u.astype(np.float32) for u, _ in both], "V": [v.astype(np.float32) for _, v in both]}


def seen(image, u, v, flag, shift=0.0):
    made = cv2.remap(
        image, u - np.float32(shift), v - np.float32(shift), flag, borderMode=cv2.BORDER_CONSTANT, borderValue=0
    )
    return made.reshape(*u.shape[:2], image.shape[2])


def uv(**options):
    return source("U", types.FLOAT, 2, **options).gpu(), source("V", types.FLOAT, 2, **options).gpu()


# OpenCV knows 32 places from a pixel to the next: an eighth is one of them.
@case(
    inputs=PHOTOS | maps((20, 33), (14, 40), (7, 9)),
    tol=1,
    mean=0.05,
    answer=by_opencv(
        lambda image, u, v: (
            seen(image, u, v, cv2.INTER_NEAREST),
            seen(image, u, v, cv2.INTER_LINEAR),
            seen(image, u, v, cv2.INTER_NEAREST, 0.5),
            seen(image, u, v, cv2.INTER_LINEAR, 0.5),
        )
    ),
)
def remapped():
    return (
        *(
            fn.experimental.remap(x(), *uv(), interp=interp, pixel_origin="center")
            for interp in (types.INTERP_NN, types.INTERP_LINEAR)
        ),
        fn.experimental.remap(x(), *uv(), interp=types.INTERP_NN),
        fn.experimental.remap(x(), *uv()),
    )


@case(
    inputs={"X": noise((8, 9, 1), (5, 6, 1), (3, 3, 1), dtype=np.float32)} | maps((8, 9), (5, 6), (3, 3)),
    tol=1e-3,
    answer=by_opencv(lambda image, u, v: (seen(image, u, v, cv2.INTER_LINEAR),)),
)
def remapped_floats():
    return fn.experimental.remap(x(types.FLOAT), *uv(), pixel_origin="center")


@case(
    inputs=PHOTOS | maps((20, 33), (14, 40), (7, 9)),
    tol=1,
    mean=0.05,
    answer=by_opencv(
        lambda image, u, v: tuple(
            seen(image, u, v, flag, shift) for flag in (cv2.INTER_CUBIC, cv2.INTER_LANCZOS4) for shift in (0.0, 0.5)
        )
    ),
)
def remapped_by_more_pixels():
    return tuple(
        fn.experimental.remap(x(), *uv(), interp=interp, pixel_origin=origin)
        for interp in (types.INTERP_CUBIC, types.INTERP_LANCZOS3)
        for origin in ("center", "corner")
    )


@case(
    inputs={"X": noise((8, 9, 1), (5, 6, 1), (3, 3, 1), dtype=np.float32)} | maps((8, 9), (5, 6), (3, 3)),
    tol=1e-3,
    answer=by_opencv(
        lambda image, u, v: tuple(seen(image, u, v, flag) for flag in (cv2.INTER_CUBIC, cv2.INTER_LANCZOS4))
    ),
)
def remapped_floats_by_more_pixels():
    return tuple(
        fn.experimental.remap(x(types.FLOAT), *uv(), interp=interp, pixel_origin="center")
        for interp in (types.INTERP_CUBIC, types.INTERP_LANCZOS3)
    )


VIDEO = noise((3, 9, 8, 3), (1, 7, 7, 3), (2, 5, 9, 3))


@case(
    inputs={"X": VIDEO}
    | {
        name: [np.stack([field + t for t in range(len(video))]) for field, video in zip(fields, VIDEO)]
        for name, fields in maps((9, 8), (7, 7), (5, 9)).items()
    },
    answer=by_opencv(lambda video, u, v: (np.stack([seen(*frame, cv2.INTER_NEAREST) for frame in zip(video, u, v)]),)),
)
def remapped_frames():
    u, v = (source(name, types.FLOAT, 3, layout="FHW").gpu() for name in "UV")
    return fn.experimental.remap(x(layout="FHWC"), u, v, interp=types.INTERP_NN, pixel_origin="center")


def packed(*samples):
    return [
        np.frombuffer(lz4.block.compress(np.ascontiguousarray(sample), store_size=False), np.uint8)
        for sample in samples
    ]


PLAIN = [np.repeat(sample, 4, 1) for sample in noise((6, 5, 3), (6, 2, 3), (6, 4, 3), dtype=np.int16)]


def as_they_were(**_):
    """LZ4"""
    return [PLAIN, [np.concatenate([sample.ravel(), np.zeros(500 - sample.size, np.int16)]) for sample in PLAIN]]


@case(inputs={"X": packed(*PLAIN), "S": [np.array(sample.shape, np.int32) for sample in PLAIN]}, answer=as_they_were)
def inflated():
    data = source("X", types.UINT8, 1).gpu()
    return (
        fn.decoders.inflate(data, shape=source("S", types.INT32, 1), dtype=types.INT16, layout="HWC"),
        fn.experimental.inflate(data, shape=500, dtype=types.INT16, check_output_size=True),
    )


CHUNKS = [packed(*sample) for sample in VIDEO]
SIZES = [np.array([len(chunk) for chunk in chunks], np.int32) for chunks in CHUNKS]


def frames_as_they_were(**_):
    """LZ4"""
    return [VIDEO, VIDEO, [video[::-1] for video in VIDEO]]


@case(
    inputs={
        "X": [np.concatenate(chunks) for chunks in CHUNKS],
        "S": [np.array(video.shape[1:], np.int32) for video in VIDEO],
        "N": SIZES,
        "O": [np.cumsum([0, *sizes[:-1]]).astype(np.int32) for sizes in SIZES],
    },
    answer=frames_as_they_were,
)
def inflated_frames():
    data, shape = source("X", types.UINT8, 1).gpu(), source("S", types.INT32, 1)
    sizes, offsets = source("N", types.INT32, 1), source("O", types.INT32, 1)
    return (
        fn.decoders.inflate(data, shape=shape, chunk_sizes=sizes, layout="HWC"),
        fn.decoders.inflate(data, shape=shape, chunk_offsets=offsets),
        fn.decoders.inflate(
            data,
            shape=shape,
            chunk_offsets=offsets[::-1],
            chunk_sizes=sizes[::-1],
            layout="HWC",
            sequence_axis_name="N",
        ),
    )


def philox(key, sequence, element):
    """The first two words of an element: Philox4x32-10, from 257 words an element."""

    def block(number):
        k, w = [key & 0xFFFFFFFF, key >> 32], [number & 0xFFFFFFFF, number >> 32, sequence & 0xFFFFFFFF, sequence >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * w[0], 0xCD9E8D57 * w[2]
            w = [(b >> 32) ^ w[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ w[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return w

    first = 257 * element
    words = block(first // 4) + block(first // 4 + 1)
    return words[first % 4], words[first % 4 + 1]


def jittered(image, seed, sequence, degree, fill):
    """Pixels from up to half of `degree` away; DALI draws them with cuRAND, whose numbers nobody else has."""
    made, most = np.full_like(image, fill), degree // 2
    height, width, _ = image.shape
    for y in range(height):
        for x in range(width):
            dx, dy = ((word * (2 * most + 1) >> 32) - most for word in philox(seed, sequence, y * width + x))
            if 0 <= x + dx < width and 0 <= y + dy < height:
                made[y, x] = image[y + dy, x + dx]
    return made


def by_numpy(batches=None, **options):
    def answer(X, **_):
        """numpy"""
        first, outputs = 0, []
        for count in batches or [len(X)]:
            outputs += [jittered(X[first + i], sequence=first + i * 65537, **options) for i in range(count)]
            first += count
        return [outputs]

    return answer


@case(inputs=PHOTOS, answer=by_numpy(seed=11, degree=2, fill=0))
def jitter():
    return fn.jitter(x(), seed=11)


@case(
    inputs={"X": noise((7, 8, 3), (6, 5, 3), (4, 4, 3), dtype=np.float32)}, answer=by_numpy(seed=12, degree=5, fill=7.5)
)
def jitter_of_floats():
    return fn.jitter(x(types.FLOAT), seed=12, nDegree=5, fill_value=7.5)
