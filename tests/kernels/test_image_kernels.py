"""The kernels of masks, canvases, displacements, projections and sensors on the host, against the recorded answers of
DALI."""

import json
import zipfile

import numpy as np
import pytest
from emulator import HERE, needs_compiler, place, table_kernel
from layouts import layout, packed
from test_elementwise_kernels import address, noise

TYPES = {"uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16, "int32_t": np.int32, "float": np.float32}

pytestmark = needs_compiler


def recorded(module, name):
    """The inputs of a recorded case by name, and its outputs: arrays, one a sample."""
    with zipfile.ZipFile(HERE.parent / f"conformance/data/{module}.zip") as archive:
        case = next(case for case in json.loads(archive.read("index.json"))["cases"] if case["name"] == name)

        def array(at):
            return np.frombuffer(archive.read(at["key"]), np.dtype(at["dtype"])).reshape(at["shape"])

        return {name: [array(a) for a in batch] for name, batch in case["inputs"].items()}, [
            [array(a) for a in batch] for batch in case["outputs"]
        ]


def c_type(array):
    return next(name for name, dtype in TYPES.items() if dtype == array.dtype)


# ---- masks


def test_grid_mask(kernel):
    inputs, outputs = recorded("augmentations", "grid_mask")
    angles, tiles = inputs["A"], inputs["T"]
    # Tile, ratio, angle, shift of each output.
    every = [
        lambda i: (100, 0.5, 0, 0, 0),
        lambda i: (10, 0.3, 0.4, 0, 0),
        lambda i: (tiles[i], 0.5, angles[i], 3, -1.5),
        lambda i: (9, angles[i], 0, 0, 0),
        lambda i: (5, 0.5, 0, 0, 0),
        lambda i: (1, 0.5, 0, 0, 0),
        lambda i: (10, 1, 0, 0, 0),
    ]
    for how, wanted in zip(every, outputs):
        run = kernel(
            "grid_mask", "to from pixels width channels grid:ratio,cos,sin,shift unused", ELEMENT=c_type(wanted[0])
        )
        images = [image.astype(wanted[0].dtype) for image in inputs["X"]]
        made = [np.full_like(image, 77) for image in images]
        rows = []
        for i, (image, out) in enumerate(zip(images, made)):
            tile, ratio, angle, *shift = (np.float32(value) for value in how(i))
            height, width, channels = image.shape
            rows.append(
                (
                    address(out),
                    address(image),
                    height * width,
                    width,
                    channels,
                    ratio,
                    np.cos(angle) / tile,
                    np.sin(angle) / tile,
                    *(s / tile for s in shift),
                    0,
                )
            )
        run(*rows)
        for found, expected in zip(made, wanted):
            np.testing.assert_array_equal(found, expected)


# ---- canvases


PASTE = "to regions count pixels width channels"


def canvas(sources, regions, size, dtype):
    """The canvas, its row, and what must live meanwhile; regions: index of the source, from, extent, to."""
    out = np.full((*size, sources[0].shape[2]), 77, dtype)
    table = b""
    for source, (top, left), (height, width), to in regions:
        image = sources[source]
        pitch = image.shape[1] * image.shape[2]
        start = address(image) + (top * pitch + left * image.shape[2]) * image.itemsize
        table += packed(layout("multi_paste").Region, "from pitch to size", start, pitch, *to, height, width)
    table = np.frombuffer(table, np.uint8).copy()
    return out, (address(out), address(table), len(regions), size[0] * size[1], size[1], out.shape[2]), table


@pytest.mark.parametrize(
    "output,source,size", [(1, "uint8_t", (9, 9)), (2, "uint8_t", (20, 30)), (7, "uint8_t", (6, 8))]
)
def test_multi_paste(kernel, output, source, size):
    inputs, outputs = recorded("augmentations", "multi_paste")
    wanted = outputs[output]
    images = [image.astype(TYPES[source]) for image in inputs["X"]]
    made = []
    for ids, anchors, shapes, expected in zip(inputs["I"], inputs["A"], inputs["S"], wanted):
        start = anchors if output == 1 else np.zeros_like(anchors)
        extent = shapes if output == 2 else np.array(images[0].shape[:2]) - start
        to = anchors if output == 2 else np.zeros_like(anchors)
        made.append(
            canvas(images, list(zip(ids.tolist(), start.tolist(), extent.tolist(), to.tolist())), size, expected.dtype)
        )
    kernel("multi_paste", PASTE, FROM=source, TO=c_type(wanted[0]))(*(row for _, row, _ in made))
    for (found, *_), expected in zip(made, wanted):
        np.testing.assert_array_equal(found, expected)


def test_a_canvas_without_regions_is_black(kernel):
    out, row, _ = canvas([noise(2, 3, 3)], [], (4, 5), np.uint8)
    kernel("multi_paste", PASTE, FROM="uint8_t", TO="uint8_t")(row)
    assert not out.any()


# ---- displacements


DISPLACE = "to from key sequence pixels channels size is_changed fill"
WAVES = "waves:amplitude,frequency,phase most is_linear"
FREQUENCY = 2 * np.pi / 128


def displaced(kernel, entry, images, waves=(0,) * 6, most=0, linear=0, fill=0.0, mask=None, key=0):
    made = [np.full_like(image, 77) for image in images]
    rows = [
        (
            address(out),
            address(image),
            key,
            i * 65537,
            image.shape[0] * image.shape[1],
            image.shape[2],
            image.shape[1],
            image.shape[0],
            mask[i] if mask else 1,
            fill,
        )
        for i, (image, out) in enumerate(zip(images, made))
    ]
    run = kernel("displace", DISPLACE, entry=entry, params=WAVES, ELEMENT=c_type(images[0]))
    run(*rows, param=(*waves, most, linear))
    return made


def nearly(found, wanted, largest):
    """Some pixels between two others may be taken from the other one."""
    for made, expected in zip(found, wanted):
        assert np.mean(np.abs(made.astype(float) - expected) > largest) < 0.001


def test_sphere(kernel):
    inputs, outputs = recorded("augmentations", "sphere")
    images, mask = inputs["X"], [int(m) for m in inputs["M"]]
    nearly(displaced(kernel, "sphere", images), outputs[0], 0)
    nearly(displaced(kernel, "sphere", images, linear=1, fill=7), outputs[1], 1)
    nearly(displaced(kernel, "sphere", images, fill=300 % 256, mask=mask), outputs[2], 0)
    inputs, outputs = recorded("augmentations", "sphere_of_floats")
    nearly(displaced(kernel, "sphere", inputs["X"], linear=1), outputs[0], 2e-3)
    nearly(displaced(kernel, "water", inputs["X"], waves=(10, FREQUENCY, 0) * 2, linear=1, fill=-3.5), outputs[1], 2e-3)


def test_water(kernel):
    inputs, outputs = recorded("augmentations", "water")
    nearly(
        displaced(kernel, "water", inputs["X"], waves=(10, FREQUENCY, 0) * 2, mask=[int(m) for m in inputs["M"]]),
        outputs[0],
        0,
    )
    nearly(displaced(kernel, "water", inputs["X"], waves=(3, 0.3, 0.5, 5, 0.2, 0.1), linear=1, fill=9), outputs[1], 1)


def test_jitter(kernel):
    inputs, outputs = recorded("gpu_alone", "jitter")
    for found, expected in zip(displaced(kernel, "jitter", inputs["X"], most=1, key=11), outputs[0]):
        np.testing.assert_array_equal(found, expected)
    inputs, outputs = recorded("gpu_alone", "jitter_of_floats")
    for found, expected in zip(displaced(kernel, "jitter", inputs["X"], most=2, key=12, fill=7.5), outputs[0]):
        np.testing.assert_array_equal(found, expected)


# ---- projections

PROJECT = "to from matrix pixels source width channels is_coarse border fill"
BORDERS = {
    "constant": "FILL",
    "replicate": "CLAMP",
    "reflect": "REFLECT_1001",
    "reflect_101": "REFLECT_101",
    "wrap": "WRAP",
}
MATRIX = np.array([1.1, 0.2, -3.0, -0.1, 0.9, 2.0, 0.001, -0.002, 1.0], np.float32).reshape(3, 3)


def mapped(matrix, inverse_map, corner):
    """The map that the kernel gets: shifted in float32, then turned around in double precision."""
    if corner:
        half, one = np.float32(0.5), matrix.astype(np.float32)
        moved = np.stack([one[:, 0], one[:, 1], half * one[:, 0] + half * one[:, 1] + one[:, 2]], 1)
        matrix = np.stack([moved[0] - half * moved[2], moved[1] - half * moved[2], moved[2]])
    return matrix.astype(np.float64) if inverse_map else np.linalg.inv(matrix.astype(np.float64))


def projected(kernel, images, maps, sampling, border, sizes, fill=(0,) * 4, planes=1):
    made, rows = [], []
    for image, matrix, (height, width) in zip(images, maps, sizes):
        source = image.shape[-2:] if planes > 1 else image.shape[:2]
        channels = 1 if planes > 1 else image.shape[2]
        out = np.full((planes, height, width) if planes > 1 else (height, width, channels), 77, image.dtype)
        coarse = int(image.dtype == np.int16 or channels == 2)
        for plane in range(planes):
            to, start = (address(a) + plane * a[0].nbytes if planes > 1 else address(a) for a in (out, image))
            rows.append(
                (
                    to,
                    start,
                    *matrix.ravel(),
                    height * width,
                    source[1],
                    source[0],
                    width,
                    channels,
                    coarse,
                    layout("perspective").constants[BORDERS[border]],
                    *fill,
                )
            )
        made.append(out)
    kernel("perspective", PROJECT, ELEMENT=c_type(images[0]), SAMPLING=sampling)(*rows)
    return made


@pytest.mark.parametrize(
    "name,sampling,borders,fill",
    [
        ("warp_perspective", 1, ["constant", "replicate", "reflect", "reflect_101", "wrap"], (255, 1, 3, 0)),
        ("warp_perspective_cubic", 2, ["constant", "replicate", "reflect_101"], (255, 1, 3, 0)),
        ("warp_perspective_coarse", 1, ["constant"], (100,) * 4),
        ("warp_perspective_of_floats", 1, ["constant"], (-9,) * 4),
        ("warp_perspective_cubic_of_floats", 2, ["constant"], (-9,) * 4),
        ("warp_perspective_of_planes", 1, ["constant"], (9,) * 4),
    ],
)
def test_projections(kernel, name, sampling, borders, fill):
    inputs, outputs = recorded("augmentations", name)
    images, planes = inputs["X"], 3 if name.endswith("planes") else 1
    sizes = [image.shape[-2:] if planes > 1 else image.shape[:2] for image in images]
    for i, border in enumerate(borders):
        ways = [
            ([mapped(MATRIX, True, True)] * 3, sizes),
            ([mapped(m, False, False) for m in inputs["M"]], sizes),
            ([mapped(MATRIX, True, True)] * 3, [(20, 16)] * 3),
        ]
        for (maps, shapes), wanted in zip(ways, outputs[3 * i :]):
            for found, expected in zip(projected(kernel, images, maps, sampling, border, shapes, fill, planes), wanted):
                difference = np.abs(found.astype(float) - expected)
                assert difference.max() <= (1 if found.dtype != np.float32 else 2e-2) and (
                    found.dtype == np.float32 or difference.mean() < 0.02
                )


def test_cubic_projections_far_outside(kernel):
    inputs, outputs = recorded("augmentations", "warp_perspective_cubic_far_outside")
    for i, wanted in enumerate(outputs):
        maps = [mapped(m, i % 2 == 0, True) for m in inputs["M"]]
        found = projected(kernel, inputs["X"], maps, 2, ["wrap", "reflect", "reflect_101"][i // 2], [(25, 40)] * 3)
        for made, expected in zip(found, wanted):
            difference = np.abs(made.astype(int) - expected)
            assert difference.max() <= 1 and difference.mean() < 0.02


def test_nearest_projections_are_the_hosts_to_the_last_bit(kernel):
    inputs, outputs = recorded("augmentations", "warp_perspective_to_the_last_bit")
    for i, wanted in enumerate(outputs):
        images = [image.astype(wanted[0].dtype) for image in inputs["X"]]
        maps = [mapped(m, i % 2 == 0, i % 4 < 2) for m in inputs["M"]]
        for made, expected in zip(
            projected(kernel, images, maps, 0, "replicate", [image.shape[:2] for image in images]), wanted
        ):
            np.testing.assert_array_equal(made, expected)


# ---- sensors


def debayered(kernel, images, position, algorithm):
    channels = [3, 3, 1, 3][algorithm]
    made = [np.full((*image.shape, channels), 77, image.dtype) for image in images]
    rows = [
        (address(out), address(image), *image.shape, 1 - position[0], 1 - position[1])
        for image, out in zip(images, made)
    ]
    kernel("debayer", "to from height width blue", ELEMENT=c_type(images[0]), ALGORITHM=algorithm)(*rows)
    return made


@pytest.mark.parametrize(
    "name,first,input,algorithm",
    [
        ("debayer", 0, "X", 0),
        ("debayer_algorithms", 0, "X", 1),
        ("debayer_algorithms", 4, "X", 2),
        ("debayer_algorithms", 8, "W", 1),
        ("debayer_algorithms", 12, "W", 2),
        ("debayer_by_gradients", 0, "X", 3),
    ],
)
def test_debayer(kernel, name, first, input, algorithm):
    inputs, outputs = recorded("augmentations", name)
    for i, position in enumerate([(y, x) for y in (0, 1) for x in (0, 1)]):
        for found, expected in zip(debayered(kernel, inputs[input], position, algorithm), outputs[first + i]):
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_sensors_without_an_inside_are_black(kernel):
    for algorithm in range(4):
        for out in debayered(kernel, [noise(2, 6), noise(8, 2), noise(0, 4)], (0, 0), algorithm):
            assert not out.any()


# ---- equalization by tiles

CLAHE = "to from tables lab step size tiles tile limit scale"


def lab_tables():
    """Those of src/cpu/lab.rs, as the kernel reads them."""
    linear = np.arange(256) / 255
    linear = np.rint(2040 * np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4))
    to_xyz = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    from_xyz = np.array(
        [[3.240479, -1.53715, -0.498535], [-0.969256, 1.875991, 0.041556], [0.055648, -0.204043, 1.057311]]
    )
    white = np.array([0.950456, 1.0, 1.088754])
    parts = np.zeros((3, 256, 4), np.int32)
    parts[..., :3] = np.rint(4096 * to_xyz / white[:, None]).T[:, None] * linear[None, :, None]
    parts[0, :, :3] += 2048
    value = (np.arange(3072) / 2040).astype(np.float32).astype(float)
    cube = np.cbrt(value).astype(np.float32)
    cube = np.where(cube.astype(float) > np.cbrt(value), np.nextafter(cube, np.float32(0)), cube).astype(float)
    roots = np.rint(32768 * np.where(value < 0.008856, value * 7.787 + 16 / 116, cube))
    light = np.arange(256) * 100 / 255
    dark, root = light * 27 / 24389, (light + 16) / 116
    lightness = np.where(
        (np.arange(256) <= 20)[:, None], np.stack([dark, 16 / 116 + dark * 841 / 108], 1), np.stack([root**3, root], 1)
    )
    level = np.arange(256)
    moves = np.stack(
        [((5 * level * 53687 + 128) >> 13) - 128 * 16384 // 500, ((level * 41943 + 16) >> 9) - 128 * 16384 // 200 + 1],
        1,
    )
    back = np.arange(4096) / 4096
    levels = np.rint(
        255 * np.where(back <= 0.0031308, 12.92 * back, 1.055 * np.maximum(back, 1e-9) ** (1 / 2.4) - 0.055)
    )
    words = [parts, roots, np.rint(16384 * lightness), moves, np.rint(4096 * from_xyz * white)]
    return np.frombuffer(
        b"".join(word.astype(np.int32).tobytes() for word in words) + levels.astype(np.uint8).tobytes(), np.uint8
    )


@pytest.mark.parametrize(
    "name,output,tiles,limit,luma_only",
    [
        ("clahe_gray", 0, (4, 4), 2.0, False),
        ("clahe_gray", 1, (1, 1), 1.5, False),
        ("clahe_gray", 2, (3, 5), 0.5, False),
        ("clahe_gray", 4, (8, 2), 0.0, False),
        ("clahe_colour", 0, (4, 4), 2.0, True),
        ("clahe_colour", 1, (2, 3), 3.0, False),
    ],
)
def test_clahe(tmp_path, name, output, tiles, limit, luma_only):
    inputs, outputs = recorded("augmentations", name)
    images = inputs["X"]
    colours = images[0].shape[2] == 3
    channels = 3 if colours and not luma_only else 1
    count, rows = len(images), []
    for i, image in enumerate(images):
        size = image.shape[1::-1]
        whole = all(extent % n == 0 for extent, n in zip(size, tiles))
        tile = [extent // n if whole else (extent + n - extent % n) // n for extent, n in zip(size, tiles)]
        area = tile[0] * tile[1]
        most = max(1, int(limit * area / 256)) if limit > 0 else 0
        for c in range(channels):
            tables = place(2 * count, (i * channels + c) * tiles[0] * tiles[1] * 256)
            rows.append(
                (
                    place(count + i, c),
                    place(i, c),
                    tables,
                    place(2 * count + 1),
                    image.shape[2],
                    *size,
                    *tiles,
                    *tile,
                    most,
                    np.float32(255) / np.float32(area),
                )
            )
    memory = (
        images
        + [np.full_like(image, 77) for image in images]
        + [np.zeros(len(rows) * tiles[0] * tiles[1] * 256, np.uint8), lab_tables()]
    )
    for number, (entry, threads) in enumerate((("tables", 512), ("equalized", 256))):
        folder = tmp_path / str(number)
        folder.mkdir()
        memory = table_kernel(folder, "clahe", CLAHE, entry=entry, LUMA=int(luma_only))(
            rows, memory, blocks=3, threads=threads
        )
    for found, expected in zip(memory[count:], outputs[output]):
        np.testing.assert_array_equal(found, expected)


# ---- anchors


@pytest.mark.parametrize("output,criteria,offset", [(0, 0.5, 0), (2, 0.2, 0), (4, 0.3, 1)])
def test_box_encoder(tmp_path, output, criteria, offset):
    inputs, outputs = recorded("boxes", "anchors")
    low = np.random.default_rng(4)
    low, more = low.uniform(0, 0.7, (12, 2)), low
    anchors = np.concatenate([low, low + more.uniform(0.05, 0.3, low.shape)], 1).astype(np.float32)
    boxes, labels, count = inputs["X"], inputs["L"], len(inputs["X"])
    memory = (
        boxes
        + labels
        + [np.zeros(b.shape[0], np.uint32) for b in boxes]
        + [np.full((12, 4), 9e9, np.float32) for _ in boxes]
        + [np.full(12, -7, np.int32) for _ in boxes]
        + [anchors]
    )
    rows = [
        (place(3 * count + i), place(4 * count + i), place(i), place(count + i), place(2 * count + i), b.shape[0])
        for i, b in enumerate(boxes)
    ]
    # And one without boxes.
    memory += [np.zeros((12, 4), np.float32), np.full(12, -7, np.int32)]
    rows.append((place(5 * count + 1), place(5 * count + 2), 0, 0, 0, 0))
    means, stds = ((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)) if offset else ((0,) * 4, (1,) * 4)
    param = (place(5 * count), 12, criteria, offset, 300 if offset else 1, *means, *stds)
    row, params = "told labels_told boxes labels closest count", "anchors count criteria tells_offsets scale means stds"
    run = table_kernel(tmp_path, "box_encoder", row, params=params)
    memory = run(rows, memory, blocks=1, threads=128, param=param)
    for i in range(count):
        np.testing.assert_allclose(memory[3 * count + i], outputs[output][i], atol=1e-5)
        np.testing.assert_array_equal(memory[4 * count + i], outputs[output + 1][i])
    assert not memory[-1].any() and (offset == 0 or not memory[-2].any())
