"""Images of FITS files: written here by hand as the standard says, and by astropy where it is."""

import gzip
import zlib

import numpy as np
import pytest
from gesso import Pipeline, fn, types

BITS = {"u1": 8, "i2": 16, "i4": 32, "i8": 64, "f4": -32, "f8": -64}


def pipeline(files, batch_size=1, **options):
    made = Pipeline(batch_size, 1)
    with made:
        outputs = fn.experimental.readers.fits(files=[str(file) for file in files], name="fits", **options)
        made.set_outputs(*(outputs if isinstance(outputs, list) else [outputs]))
    return made


def read(path, **options):
    return [out.at(0) for out in pipeline([path], **options).run()]


def padded(data, fill=b"\0"):
    return data + fill * (-len(data) % 2880)


def header(**cards):
    def card(key, value):
        text = {True: "T", False: "F"}.get(value, value) if isinstance(value, bool) else value
        text = f"'{text:8}'" if isinstance(value, str) else text
        return f"{key:8}= {text:>20} / what it is".ljust(80)

    return padded("".join([*(card(key, value) for key, value in cards.items()), "END".ljust(80)]).encode(), b" ")


PRIMARY = header(SIMPLE=True, BITPIX=8, NAXIS=0)


def image(array, first=False, **more):
    big = array.astype(array.dtype.newbyteorder(">"))
    kind = {"SIMPLE": True} if first else {"XTENSION": "IMAGE"}
    axes = {f"NAXIS{i + 1}": extent for i, extent in enumerate(array.shape[::-1])}
    return header(**kind, BITPIX=BITS[array.dtype.str[1:]], NAXIS=array.ndim, **axes, **more) + padded(big.tobytes())


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4)])
def test_every_type_and_shape(tmp_path, dtype, shape):
    array = (np.random.default_rng(3).random(shape) * 100).astype(dtype)
    (tmp_path / "a.fits").write_bytes(PRIMARY + image(array))
    (found,) = read(tmp_path / "a.fits")
    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_several_parts_are_several_outputs(tmp_path):
    first, second = np.arange(3000, dtype="i4"), np.ones((2, 2), "f4")
    (tmp_path / "a.fits").write_bytes(image(first, True) + image(second))
    found = read(tmp_path / "a.fits", hdu_indices=[2, 1])
    assert np.array_equal(found[0], second) and np.array_equal(found[1], first)


def test_numbers_that_are_scaled(tmp_path):
    def of(array, **cards):
        (tmp_path / "a.fits").write_bytes(PRIMARY + image(array, **cards))
        return read(tmp_path / "a.fits")[0]

    stored = np.array([-32768, 0, 32767], "i2")
    found = of(stored, BZERO=32768, BSCALE=1)
    assert found.dtype == np.uint16 and found.tolist() == [0, 32768, 65535]
    found = of(np.array([0, 128, 255], "u1"), BZERO=-128)
    assert found.dtype == np.int8 and found.tolist() == [-128, 0, 127]
    found = of(stored, BZERO=1.5, BSCALE=2.0, BLANK=0)
    assert found.dtype == np.float32 and found[[0, 2]].tolist() == [-65534.5, 65535.5] and np.isnan(found[1])
    assert of(np.array([3], "i4"), BSCALE=0.5).dtype == np.float64


def table(array, method, tiles, **cards):
    """An image whose rows are tiles."""
    rows, at = b"", 0
    for tile in tiles:
        rows += np.array([len(tile), at], ">i4").tobytes()
        at += len(tile)
    heap = b"".join(tiles)
    axes = {f"ZNAXIS{i + 1}": extent for i, extent in enumerate(array.shape[::-1])}
    made = header(
        **{
            "XTENSION": "BINTABLE",
            "BITPIX": 8,
            "NAXIS": 2,
            "NAXIS1": 8,
            "NAXIS2": len(tiles),
            "PCOUNT": len(heap),
            "GCOUNT": 1,
        },
        **{"TFIELDS": 1, "TTYPE1": "COMPRESSED_DATA", "TFORM1": "1PB(99)", "ZIMAGE": True, "ZCMPTYPE": method},
        **{"ZBITPIX": BITS[array.dtype.str[1:]], "ZNAXIS": array.ndim, **axes, **cards},
    )
    return PRIMARY + made + padded(rows + heap)


def rice(values, width):
    """Rice's code in blocks of 32, with two low bits."""
    code_bits = {1: 3, 2: 4, 4: 5}[width]
    bits = format(int(values[0]) % (1 << 8 * width), f"0{8 * width}b")
    steps = np.diff(np.concatenate([values[:1], values]).astype(np.int64))
    for begin in range(0, len(values), 32):
        block = steps[begin : begin + 32]
        if not block.any():
            bits += "0" * code_bits
            continue
        bits += format(3, f"0{code_bits}b")
        for step in block:
            folded = 2 * step if step >= 0 else -2 * step - 1
            bits += "0" * (folded >> 2) + "1" + format(folded & 3, "02b")
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_rice(tmp_path, dtype):
    array = np.random.default_rng(1).integers(0, 60, (5, 70)).astype(dtype)
    array[2] = 9
    width = array.itemsize
    made = table(
        array,
        "RICE_1",
        [rice(row, width) for row in array],
        ZNAME1="BLOCKSIZE",
        ZVAL1=32,
        ZNAME2="BYTEPIX",
        ZVAL2=width,
    )
    (tmp_path / "a.fits").write_bytes(made)
    (found,) = read(tmp_path / "a.fits")
    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_gzip(tmp_path):
    array = np.random.default_rng(1).integers(-3000, 3000, (4, 9)).astype("i2")
    rows = [row.astype(">i2").tobytes() for row in array]
    for method, order in (("GZIP_1", bytes), ("GZIP_2", lambda data: data[::2] + data[1::2])):
        (tmp_path / "a.fits").write_bytes(table(array, method, [gzip.compress(order(row)) for row in rows]))
        assert np.array_equal(read(tmp_path / "a.fits")[0], array)
    with pytest.raises(RuntimeError, match="compressed by PLIO_1, expected one of"):
        (tmp_path / "a.fits").write_bytes(table(array, "PLIO_1", rows))
        read(tmp_path / "a.fits")


def test_files_that_are_damaged(tmp_path):
    whole = PRIMARY + image(np.arange(3000, dtype="i4"))
    path = tmp_path / "a.fits"
    for data, words in (
        (whole[:-6000], "the file ends .* bytes too early"),
        (whole[:4000], "ends within a header"),
        (PRIMARY, "has 1 parts, but part 2 is wanted"),
        (b"nothing" * 1000, "is no FITS file"),
        (whole.replace(b"   3000", b"9999999999999999999"[:7]), "bytes"),
        (table(np.zeros((2, 2), "i2"), "GZIP_1", [b"no"] * 2), "a tile is damaged"),
        (table(np.zeros((2, 2), "i2"), "GZIP_1", [zlib.compress(b"long" * 999)] * 2), "a tile has not 4 bytes"),
        (table(np.zeros((2, 64), "i4"), "RICE_1", [b"\1\2\3\4\5"] * 2), "ends too early"),
        (table(np.zeros((2, 2), "i2"), "GZIP_1", [b""] * 3), "3 tiles, expected 2"),
    ):
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match=words):
            read(path)


def test_types_are_checked(tmp_path):
    (tmp_path / "a.fits").write_bytes(PRIMARY + image(np.zeros(3, "f4")))
    assert read(tmp_path / "a.fits", dtypes=[types.FLOAT])[0].dtype == np.float32
    with pytest.raises(RuntimeError, match="has the type float32, but `dtypes` says INT16"):
        read(tmp_path / "a.fits", dtypes=[types.INT16])


def test_a_folder_of_files(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.fits").write_bytes(PRIMARY + image(np.full((i + 1, 2), i, "i2")))
    made = Pipeline(2, 1)
    with made:
        made.set_outputs(fn.experimental.readers.fits(file_root=str(tmp_path), pad_last_batch=True, name="fits"))
    assert made.reader_meta("fits")["epoch_size"] == 5
    assert [[int(a[0, 0]) for a in made.run()[0].arrays] for _ in range(3)] == [[0, 1], [2, 3], [4, 4]]


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2", "NOCOMPRESS"])
def test_what_astropy_writes(tmp_path, method):
    fits = pytest.importorskip("astropy.io.fits")
    random = np.random.default_rng(0)
    for number, (array, options) in enumerate(
        (
            (random.integers(-9000, 9000, (40, 50)).astype(np.int16), {"tile_shape": (16, 20)}),
            (random.integers(0, 60000, (3, 20, 30)).astype(np.uint16), {}),
            (random.normal(0, 100, (50, 60)).astype(np.float32), {"quantize_method": -1}),
            (random.normal(0, 100, (50, 60)).astype(np.float32), {"quantize_method": 1, "dither_seed": 9990}),
            (
                random.normal(5, 1, (130, 90)) * (random.random((130, 90)) > 0.3),
                {"quantize_method": 2, "tile_shape": (100, 90)},
            ),
        )
    ):
        path = tmp_path / f"{number}.fits"
        fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(array, compression_type=method, **options)]).writeto(path)
        expected = np.asarray(fits.getdata(path, 1))
        (found,) = read(path)
        assert found.dtype == expected.dtype.newbyteorder("=") and np.array_equal(found, expected), number
