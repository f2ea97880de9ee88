"""Makes the files in this directory: small synthetic pictures in every format, and what DALI answers for them.

    python make.py            (needs nvidia-dali, numpy, pillow)

The recorded answers are from nvidia-dali-cuda130 2.4.0 with nvidia-nvimgcodec-cu13 0.9.0.20, CPU pipelines, x86-64;
pictures were encoded with Pillow 13.0.0. DALI runs in a child process, because some inputs crash it.

Writes
    pictures.npz   name -> encoded file, 1-D uint8
    answers.npz    name -> array that DALI returned
    cases.json     [{file, color, dtype, orient, window, answer | error}], [{file, color, orient, shape | error}]
"""

import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib

import numpy as np

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"]
COLORS = ["rgb", "bgr", "gray", "ycbcr", "any"]


# ---- DALI, in a child process ----------------------------------------------------------------------------------------


def ask_dali(data, color="rgb", dtype="uint8", orient=True, peek=False, window=None, fast_idct=False):
    from nvidia.dali import fn, pipeline_def, types

    color = {"rgb": types.RGB, "bgr": types.BGR, "gray": types.GRAY, "ycbcr": types.YCbCr, "any": types.ANY_DATA}[color]
    dtype = {
        "uint8": types.UINT8,
        "int8": types.INT8,
        "uint16": types.UINT16,
        "int16": types.INT16,
        "uint32": types.UINT32,
        "int32": types.INT32,
        "float32": types.FLOAT,
        "float16": types.FLOAT16,
        "float64": types.FLOAT64,
        "int64": types.INT64,
        "uint64": types.UINT64,
    }[dtype]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe():
        x = fn.external_source(name="x", dtype=types.UINT8, ndim=1)
        if peek:
            return fn.peek_image_shape(x, image_type=color, adjust_orientation=orient)
        more = dict(output_type=color, dtype=dtype, adjust_orientation=orient, use_fast_idct=fast_idct)
        if window:
            x0, y0, w, h = window
            return fn.decoders.image_slice(x, start=[y0, x0], shape=[h, w], axes=[0, 1], **more)
        return fn.decoders.image(x, **more)

    p = pipe()
    p.build()
    p.feed_input("x", [np.frombuffer(data, np.uint8)])
    return np.array(p.run()[0].at(0))


def serve():
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while head := sys.stdin.buffer.read(4):
        args = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        try:
            answer = ask_dali(**args)
        except Exception as error:  # whatever DALI raises is the recorded answer
            answer = str(error)
        blob = pickle.dumps(answer)
        out.write(struct.pack("<I", len(blob)) + blob)
        out.flush()


class Dali:
    def __init__(self):
        self.child = None

    def __call__(self, **args):
        if self.child is None or self.child.poll() is not None:
            self.child = subprocess.Popen(
                [sys.executable, __file__, "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        blob = pickle.dumps(args)
        self.child.stdin.write(struct.pack("<I", len(blob)) + blob)
        self.child.stdin.flush()
        head = self.child.stdout.read(4)
        if len(head) < 4:
            self.child.wait()
            return "crash"
        return pickle.loads(self.child.stdout.read(struct.unpack("<I", head)[0]))


# ---- pictures --------------------------------------------------------------------------------------------------------


def picture(w, h, channels, seed=7):
    """Smooth ramps, a disc, saturated edges and noise: every decoder's rounding shows."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w]
    planes = [x * 255 / max(w - 1, 1), y * 255 / max(h - 1, 1), (x + y) * 255 / max(w + h - 2, 1), 255 - x * y % 256]
    image = np.stack(planes[:channels], -1)
    image += rng.normal(0, 18, image.shape)
    disc = (x - w / 2) ** 2 + (y - h / 2) ** 2 < (min(w, h) / 4) ** 2
    image[disc] = 255 - image[disc]
    image[: h // 6, : w // 6] = 0
    image[-(h // 6) :, -(w // 6) :] = 255
    return np.clip(image + 0.5, 0, 255).astype(np.uint8)


def save(array, fmt, mode=None, **options):
    from PIL import Image

    if not isinstance(array, Image.Image):
        array = Image.fromarray(array[:, :, 0] if array.shape[2:] == (1,) else array)
    image = array
    if mode:
        image = image.convert(mode)
    out = io.BytesIO()
    image.save(out, fmt, **options)
    return out.getvalue()


def exif(orientation, endian="<", kind=3, thumbnail_first=False):
    """A TIFF block with one entry: the orientation."""
    value = struct.pack(endian + ("HH" if kind == 3 else "I"), *((orientation, 0) if kind == 3 else (orientation,)))
    head = (b"II" if endian == "<" else b"MM") + struct.pack(endian + "HI", 42, 8)
    return head + struct.pack(endian + "HHHI", 1, 0x112, kind, 1) + value + struct.pack(endian + "I", 0)


def jpeg_segment(code, payload):
    return bytes([0xFF, code]) + struct.pack(">H", len(payload) + 2) + payload


def jpeg_with(data, segment, at=2):
    return data[:at] + segment + data[at:]


def jpeg_find(data, code):
    """Offset of the first segment with this code, before the entropy-coded data."""
    i = 2
    while data[i + 1] != code:
        i += 2 + struct.unpack(">H", data[i + 2 : i + 4])[0]
    return i


def jpeg_without(data, code):
    i = jpeg_find(data, code)
    return data[:i] + data[i + 2 + struct.unpack(">H", data[i + 2 : i + 4])[0] :]


def jpeg_patch(data, code, offset, value):
    i = jpeg_find(data, code) + offset
    return data[:i] + bytes([value]) + data[i + 1 :]


def png_chunk(kind, payload):
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def png(array, color_type, depth, before=b"", interlace=False):
    """Samples are given one per array element; PNG's own packing is done here."""
    h, w = array.shape[:2]

    def rows(part):
        if part.size == 0:
            return b""
        flat = part.reshape(part.shape[0], -1)
        out = b""
        for row in flat:
            if depth == 16:
                raw = row.astype(">u2").tobytes()
            elif depth == 8:
                raw = row.astype(np.uint8).tobytes()
            else:
                bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :].reshape(-1)
                raw = np.packbits(bits).tobytes()
            out += b"\0" + raw
        return out

    if interlace:
        passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
        raw = b"".join(rows(array[y::dy, x::dx]) for y, dy, x, dx in passes)
    else:
        raw = rows(array)
    head = struct.pack(">IIBBBBB", w, h, depth, color_type, 0, 0, int(interlace))
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", head)
        + before
        + png_chunk(b"IDAT", zlib.compress(raw, 9))
        + png_chunk(b"IEND", b"")
    )


def bmp(w, h, bits, pixels, palette=b"", compression=0, masks=b""):
    head = struct.pack("<IiiHHIIiiII", 40, w, h, 1, bits, compression, len(pixels), 2835, 2835, len(palette) // 4, 0)
    offset = 14 + len(head) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(pixels), 0, 0, offset) + head + masks + palette + pixels


def bmp_rows(rows):
    return b"".join(r + b"\0" * (-len(r) % 4) for r in rows)


def webp(chunks):
    body = b"WEBP" + b"".join(k + struct.pack("<I", len(p)) + p + b"\0" * (len(p) % 2) for k, p in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pictures():
    from PIL import Image

    files = {}
    big = picture(61, 45, 3)
    rgb = picture(23, 17, 3)
    rgba = picture(23, 17, 4)
    gray = picture(23, 17, 1)
    la = np.dstack([gray, picture(23, 17, 3)[:, :, 2]])
    wide = picture(23, 17, 4, 3).astype(np.uint16) * 257 ^ np.random.default_rng(5).integers(
        0, 256, (17, 23, 4), dtype=np.uint16
    )

    # JPEG
    for name, subsampling in [("444", 0), ("422", 1), ("420", 2)]:
        files[f"jpeg_{name}"] = save(big, "JPEG", quality=90, subsampling=subsampling)
    files["jpeg_prog"] = save(big, "JPEG", quality=85, subsampling=2, progressive=True)
    files["jpeg_rst"] = save(big, "JPEG", quality=85, subsampling=2, restart_marker_blocks=3)
    files["jpeg_gray"] = save(gray, "JPEG", quality=90)
    files["jpeg_1x1"] = save(rgb[:1, :1], "JPEG", quality=90)
    files["jpeg_rgb"] = save(rgb, "JPEG", quality=90, keep_rgb=True)
    # Other samplings with as many blocks per picture: the same entropy-coded data, another sampling factor.
    square = save(picture(61, 59, 3), "JPEG", quality=90, subsampling=2)
    files["jpeg_411"] = jpeg_patch(square, 0xC0, 11, 0x41)
    files["jpeg_441"] = jpeg_patch(square, 0xC0, 11, 0x14)
    files["jpeg_440"] = jpeg_patch(save(picture(29, 30, 3), "JPEG", quality=90, subsampling=1), 0xC0, 11, 0x12)
    cmyk = save(Image.fromarray(rgba, "CMYK"), "JPEG", quality=90)
    files["jpeg_cmyk"] = cmyk
    files["jpeg_cmyk_plain"] = jpeg_without(cmyk, 0xEE)
    files["jpeg_ycck"] = jpeg_patch(cmyk, 0xEE, 15, 2)
    small = save(rgb, "JPEG", quality=90, subsampling=2)
    bare = jpeg_without(small, 0xE0)
    adobe = b"Adobe\0\x64\0\0\0\0"
    for transform in [0, 1, 5]:
        files[f"jpeg_adobe{transform}"] = jpeg_with(bare, jpeg_segment(0xEE, adobe + bytes([transform])))
    files["jpeg_adobe0_jfif"] = jpeg_with(small, jpeg_segment(0xEE, adobe + b"\0"), 20)
    files["jpeg_bare"] = bare
    ids = bare
    for i, letter in enumerate(b"RGB"):
        ids = jpeg_patch(jpeg_patch(ids, 0xC0, 10 + 3 * i, letter), 0xDA, 5 + 2 * i, letter)
    files["jpeg_ids_rgb"] = ids
    for o in range(0, 10):
        files[f"jpeg_exif{o}"] = jpeg_with(small, jpeg_segment(0xE1, b"Exif\0\0" + exif(o)))
    files["jpeg_exif6_be"] = jpeg_with(small, jpeg_segment(0xE1, b"Exif\0\0" + exif(6, ">")))
    files["jpeg_exif6_long"] = jpeg_with(small, jpeg_segment(0xE1, b"Exif\0\0" + exif(6, "<", 4)))
    files["jpeg_exif6_late"] = jpeg_with(small, jpeg_segment(0xE1, b"Exif\0\0" + exif(6)), jpeg_find(small, 0xDA))
    files["jpeg_exif6_second"] = jpeg_with(
        small, jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>") + jpeg_segment(0xE1, b"Exif\0\0" + exif(6))
    )
    files["jpeg_exif63"] = jpeg_with(
        small, jpeg_segment(0xE1, b"Exif\0\0" + exif(6)) + jpeg_segment(0xE1, b"Exif\0\0" + exif(3))
    )
    files["jpeg_exif_broken"] = jpeg_with(small, jpeg_segment(0xE1, b"Exif\0\0" + exif(6)[:16]))
    files["jpeg_exif6_gray"] = jpeg_with(files["jpeg_gray"], jpeg_segment(0xE1, b"Exif\0\0" + exif(6)))
    files["jpeg_jfif3"] = jpeg_patch(small, 0xE0, 9, 3)
    files["jpeg_bad_icc"] = jpeg_with(small, jpeg_segment(0xE2, b"ICC_PROFILE\0\x02\x03abc"), 20)
    files["jpeg_trailing_zeros"] = small + bytes(64)
    files["jpeg_trailing_garbage"] = small + bytes(range(256))
    files["jpeg_twice"] = small + save(gray, "JPEG")
    files["jpeg_fill"] = jpeg_with(small, b"\xff\xff\xff", 20)
    files["jpeg_garbage_in_header"] = jpeg_with(small, b"\1\2\3", 20)
    files["jpeg_garbage_before_eoi"] = small[:-2] + b"\x55" * 9 + small[-2:]
    files["jpeg_no_eoi"] = small[:-2]
    files["jpeg_truncated"] = small[:-30]
    files["jpeg_cut_with_eoi"] = small[:-120] + small[-2:]
    prog = save(rgb, "JPEG", quality=90, progressive=True)
    files["jpeg_prog_cut_with_eoi"] = prog[:-100] + prog[-2:]
    files["jpeg_prog_truncated"] = prog[:-100]
    scan = jpeg_find(small, 0xDA) + 14
    for name, patch in [("bit", bytes([small[scan + 90] ^ 0x41])), ("rst", b"\xff\xd0"), ("ff05", b"\xff\x05")]:
        files[f"jpeg_corrupt_{name}"] = small[: scan + 90] + patch + small[scan + 90 + len(patch) :]
    restarts = save(rgb, "JPEG", quality=90, restart_marker_blocks=1)
    i = restarts.find(b"\xff\xd2")
    files["jpeg_rst_wrong"] = restarts[: i + 1] + b"\xd5" + restarts[i + 2 :]
    files["jpeg_header_only"] = small[: jpeg_find(small, 0xDA)]
    files["jpeg_header_cut"] = small[: jpeg_find(small, 0xC0) + 6]

    # PNG
    files["png_rgb"] = png(rgb, 2, 8)
    files["png_rgba"] = png(rgba, 6, 8)
    files["png_gray"] = png(gray, 0, 8)
    files["png_la"] = png(la, 4, 8)
    files["png_rgb16"] = png(wide[:, :, :3], 2, 16)
    files["png_rgba16"] = png(wide, 6, 16)
    files["png_gray16"] = png(wide[:, :, 0], 0, 16)
    files["png_la16"] = png(wide[:, :, :2], 4, 16)
    palette = picture(16, 16, 3, 2).reshape(-1, 3)
    index = np.random.default_rng(3).integers(0, 256, (17, 23))
    for depth in [1, 2, 4, 8]:
        plte = png_chunk(b"PLTE", palette[: 1 << depth].tobytes())
        files[f"png_p{depth}"] = png(index % (1 << depth), 3, depth, plte)
        if depth < 8:
            files[f"png_l{depth}"] = png(index % (1 << depth), 0, depth)
    plte = png_chunk(b"PLTE", palette.tobytes())
    files["png_p8_trns"] = png(index, 3, 8, plte + png_chunk(b"tRNS", bytes(range(200))))
    files["png_p8_gray"] = png(index, 3, 8, png_chunk(b"PLTE", np.repeat(np.arange(256), 3).astype(np.uint8).tobytes()))
    files["png_rgb_trns"] = png(rgb, 2, 8, png_chunk(b"tRNS", struct.pack(">HHH", *rgb[5, 5].tolist())))
    files["png_gray_trns"] = png(gray, 0, 8, png_chunk(b"tRNS", struct.pack(">H", int(gray[5, 5, 0]))))
    files["png_l1_trns"] = png(index % 2, 0, 1, png_chunk(b"tRNS", struct.pack(">H", 0)))
    files["png_rgb16_trns"] = png(
        wide[:, :, :3], 2, 16, png_chunk(b"tRNS", struct.pack(">HHH", *wide[5, 5, :3].tolist()))
    )
    files["png_interlaced"] = png(rgb, 2, 8, interlace=True)
    files["png_l2_interlaced"] = png(index % 4, 0, 2, interlace=True)
    files["png_gamma"] = png(rgb, 2, 8, png_chunk(b"gAMA", struct.pack(">I", 100000)))
    for o in [3, 5, 6]:
        files[f"png_exif{o}"] = png(rgb, 2, 8, png_chunk(b"eXIf", exif(o)))
    files["png_rgba16_exif8"] = png(wide, 6, 16, png_chunk(b"eXIf", exif(8, ">")))
    whole = files["png_rgb"]
    files["png_truncated"] = whole[: len(whole) // 2]
    files["png_no_iend"] = whole[:-12]
    files["png_trailing"] = whole + b"more"
    bad = bytearray(whole)
    bad[-14] ^= 1
    files["png_bad_crc"] = bytes(bad)

    # BMP
    files["bmp_rgb"] = save(rgb, "BMP")
    files["bmp_gray"] = save(gray, "BMP")
    files["bmp_p8"] = save(Image.fromarray(rgb).quantize(100), "BMP")
    files["bmp_1"] = save(gray, "BMP", mode="1")
    files["bmp_rgba"] = save(rgba, "BMP")
    top = rgb[:, :, ::-1]
    files["bmp_topdown"] = bmp(23, -17, 24, bmp_rows(r.tobytes() for r in top))
    colors = np.pad(palette[:, ::-1], ((0, 0), (0, 1)))
    nibbles = (index % 16).astype(np.uint8)
    nibbles = np.pad(nibbles, ((0, 0), (0, 1)))
    files["bmp_p4"] = bmp(
        23, 17, 4, bmp_rows((r[::2] << 4 | r[1::2]).tobytes() for r in nibbles), colors[:16].tobytes()
    )
    files["bmp_p1"] = bmp(
        23, 17, 1, bmp_rows(np.packbits((r % 2).astype(np.uint8)).tobytes() for r in index), colors[:2].tobytes()
    )
    bgrx = np.dstack([top, rgba[:, :, 3]])
    files["bmp_32"] = bmp(23, 17, 32, bgrx.tobytes())
    five = top.astype(np.uint16) >> 3
    files["bmp_555"] = bmp(
        23, 17, 16, bmp_rows(r.tobytes() for r in five[..., 2] << 10 | five[..., 1] << 5 | five[..., 0])
    )
    packed = (top[..., 2].astype(np.uint16) >> 3) << 11 | (top[..., 1].astype(np.uint16) >> 2) << 5 | five[..., 0]
    files["bmp_565"] = bmp(
        23, 17, 16, bmp_rows(r.tobytes() for r in packed), compression=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    )
    runs = b"".join(b"".join(bytes([1, int(v)]) for v in row) + b"\0\0" for row in index) + b"\0\1"
    files["bmp_rle8"] = bmp(23, 17, 8, runs, colors.tobytes(), 1)
    files["bmp_truncated"] = files["bmp_rgb"][:-300]

    # PNM
    files["pnm_p6"] = save(rgb, "PPM")
    files["pnm_p5"] = save(gray, "PPM")
    files["pnm_p4"] = save(gray, "PPM", mode="1")
    ascii_rows = lambda a: b"\n".join(b" ".join(str(v).encode() for v in r) for r in a.reshape(a.shape[0], -1).tolist())
    files["pnm_p3"] = b"P3\n# a comment\n23 17\n255\n" + ascii_rows(rgb) + b"\n"
    files["pnm_p2"] = b"P2 23 17 255\n" + ascii_rows(gray) + b"\n"
    files["pnm_p1"] = b"P1\n23 17\n" + ascii_rows(index % 2) + b"\n"
    files["pnm_p6_16"] = b"P6 23 17 65535\n" + wide[:, :, :3].astype(">u2").tobytes()
    files["pnm_p5_16"] = b"P5 23 17 65535\n" + np.ascontiguousarray(wide[:, :, 0]).astype(">u2").tobytes()
    files["pnm_p5_max100"] = b"P5 23 17 100\n" + (gray.astype(int) * 100 // 255).astype(np.uint8).tobytes()
    files["pnm_p6_max1000"] = b"P6 23 17 1000\n" + (rgb.astype(int) * 1000 // 255).astype(">u2").tobytes()
    files["pnm_p2_max100"] = b"P2 23 17 100\n" + ascii_rows(gray.astype(int) * 100 // 255) + b"\n"
    files["pnm_p3_max1000"] = b"P3 23 17 1000\n" + ascii_rows(rgb.astype(int) * 1000 // 255) + b"\n"
    files["pnm_p7"] = b"P7\nWIDTH 23\nHEIGHT 17\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n" + rgb.tobytes()
    files["pnm_comment"] = b"P6\n# one\n23 # two\n17\n255\n" + rgb.tobytes()
    files["pnm_truncated"] = files["pnm_p6"][:-100]

    # TIFF
    for compression in ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"]:
        name = compression.replace("tiff_", "").replace("adobe_", "")
        files[f"tiff_{name}"] = save(rgb, "TIFF", compression=compression)
    files["tiff_gray"] = save(gray, "TIFF")
    files["tiff_1"] = save(gray, "TIFF", mode="1")
    files["tiff_g4"] = save(gray, "TIFF", mode="1", compression="group4")
    files["tiff_rgba"] = save(rgba, "TIFF")
    files["tiff_la"] = save(Image.fromarray(la), "TIFF")
    files["tiff_p8"] = save(Image.fromarray(rgb).quantize(100), "TIFF")
    files["tiff_gray16"] = save(Image.fromarray(np.ascontiguousarray(wide[:, :, 0])), "TIFF")
    files["tiff_float"] = save(Image.fromarray(gray[:, :, 0].astype(np.float32) / 255), "TIFF")
    files["tiff_cmyk"] = save(Image.fromarray(rgba, "CMYK"), "TIFF")
    files["tiff_ycbcr"] = save(Image.fromarray(rgb).convert("YCbCr"), "TIFF")
    for o in range(2, 9):
        files[f"tiff_exif{o}"] = save(rgb, "TIFF", tiffinfo={274: o})
    files["tiff_rgb16"] = tiff(wide[:, :, :3].astype("<u2").tobytes(), 23, 17, [16] * 3, 2)
    files["tiff_rgb16_be"] = tiff(wide[:, :, :3].astype(">u2").tobytes(), 23, 17, [16] * 3, 2, endian=">")
    files["tiff_white_zero"] = tiff(gray.tobytes(), 23, 17, [8], 0)
    planar = b"".join(np.ascontiguousarray(rgb[:, :, c]).tobytes() for c in range(3))
    files["tiff_planar"] = tiff(planar, 23, 17, [8] * 3, 2, planes=3)
    files["tiff_l4"] = tiff(b"".join((r[::2] << 4 | r[1::2]).tobytes() for r in nibbles), 23, 17, [4], 1)
    files["tiff_truncated"] = files["tiff_raw"][:-100]

    # WebP
    files["webp_lossy"] = save(rgb, "WEBP", quality=80)
    files["webp_lossless"] = save(rgb, "WEBP", lossless=True)
    files["webp_lossless_alpha"] = save(rgba, "WEBP", lossless=True)
    files["webp_lossy_alpha"] = save(rgba, "WEBP", quality=80)
    files["webp_lossy_exif6"] = save(rgb, "WEBP", quality=80, exif=b"Exif\0\0" + exif(6))
    files["webp_truncated"] = files["webp_lossy"][:-60]
    tail = files["webp_lossy"][12:]
    files["webp_vp8x_plain"] = webp([(b"VP8X", struct.pack("<I", 0) + b"\x16\0\0\x10\0\0"), (tail[:4], tail[8:])])

    files["webp_animated"] = save(rgb, "WEBP", save_all=True, append_images=[Image.fromarray(rgb[::-1])], lossless=True)

    # Not decoded
    files["gif"] = save(gray, "GIF")
    files["jp2"] = b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(20)
    files["j2k"] = b"\xff\x4f\xff\x51" + bytes(20)
    files["avif"] = b"\0\0\0\x20ftypavif" + bytes(20)
    files["empty"] = b""
    files["text"] = b"hello, this is not a picture"
    return files


def tiff(pixels, w, h, bits, photometric, endian="<", planes=1):
    n = len(bits)
    entries = [
        (256, 3, 1, w),
        (257, 3, 1, h),
        (258, 3, n, bits),
        (259, 3, 1, 1),
        (262, 3, 1, photometric),
        (273, 4, planes, None),
        (277, 3, 1, n),
        (278, 3, 1, h),
        (279, 4, planes, None),
        (284, 3, 1, 2 if planes > 1 else 1),
    ]
    extra_at = 8 + 2 + 12 * len(entries) + 4
    extra = b""

    def values(kind, numbers):
        nonlocal extra
        raw = struct.pack(endian + str(len(numbers)) + ("H" if kind == 3 else "I"), *numbers)
        if len(raw) <= 4:
            return raw.ljust(4, b"\0")
        at = extra_at + len(extra)
        extra += raw
        return struct.pack(endian + "I", at)

    data_at = extra_at + 64
    size = len(pixels) // planes
    body = b""
    for tag, kind, count, value in entries:
        numbers = {273: [data_at + size * i for i in range(planes)], 279: [size] * planes}.get(
            tag, value if isinstance(value, list) else [value]
        )
        body += struct.pack(endian + "HHI", tag, kind, count) + values(kind, numbers)
    head = (b"II" if endian == "<" else b"MM") + struct.pack(endian + "HI", 42, 8)
    return (head + struct.pack(endian + "H", len(entries)) + body + bytes(4) + extra).ljust(data_at, b"\0") + pixels


# ---- cases -----------------------------------------------------------------------------------------------------------


def cases(files):
    rescaled = [
        "jpeg_420",
        "jpeg_gray",
        "jpeg_cmyk",
        "png_rgb",
        "png_gray",
        "png_rgb16",
        "png_rgba16",
        "png_gray16",
        "png_l1",
        "tiff_gray16",
        "tiff_rgb16",
        "tiff_float",
        "tiff_raw",
        "pnm_p6_16",
        "pnm_p5_16",
        "webp_lossless",
        "bmp_rgb",
        "jpeg_exif6",
        "pnm_p5_max100",
        "pnm_p6_max1000",
    ]
    for name in files:
        for color in COLORS:
            yield dict(file=name, color=color, dtype="uint8", orient=True, window=None)
            if name in rescaled:
                for dtype in DTYPES[1:]:
                    if color in ("rgb", "gray") or dtype in ("uint16", "float32"):
                        yield dict(file=name, color=color, dtype=dtype, orient=True, window=None)
    for name in ["jpeg_exif6", "png_exif6", "tiff_exif6"]:
        yield dict(file=name, color="rgb", dtype="uint8", orient=False, window=None)
    for name in ["jpeg_420", "jpeg_exif6", "jpeg_exif3", "png_rgb16", "tiff_exif6", "webp_lossy"]:
        for window in [(0, 0, 5, 7), (3, 2, 11, 9), (9, 10, 8, 7), (16, 16, 1, 1)]:
            yield dict(file=name, color="rgb", dtype="uint8", orient=True, window=window)
    yield dict(file="jpeg_420", color="ycbcr", dtype="float32", orient=True, window=(17, 15, 9, 11))
    for window in [(20, 0, 10, 4), (0, 10, 4, 10)]:
        yield dict(file="png_rgb", color="rgb", dtype="uint8", orient=True, window=window)
    for dtype in ["uint32", "int32", "int16", "int8"]:
        for name in ["png_rgb", "png_rgb16", "png_gray"]:
            yield dict(file=name, color="ycbcr", dtype=dtype, orient=True, window=None)
    for dtype in ["float16", "float64", "int64", "uint64"]:
        yield dict(file="jpeg_420", color="rgb", dtype=dtype, orient=True, window=None)


def why(message):
    """The line of DALI's message that says what is wrong."""
    if message == "crash":
        return message
    skip = (
        "Critical error",
        "Error in CPU",
        "which was used",
        "File ",
        "return ",
        "encountered",
        "Stacktrace",
        "[frame",
        "Current pipeline",
        "C++ context",
    )
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines if line and not line.startswith(skip)), "error")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    dali = Dali()
    files = pictures()
    answers, names, decoded, peeked = {}, {}, [], []
    for case in cases(files):
        answer = dali(data=files[case["file"]], **{k: v for k, v in case.items() if k != "file"})
        if isinstance(answer, str):
            decoded.append({**case, "error": why(answer)})
            continue
        key = hashlib.sha1(f"{answer.shape}{answer.dtype}".encode() + answer.tobytes()).hexdigest()
        if key not in names:
            names[key] = f"a{len(names):04}"
            answers[names[key]] = answer
        decoded.append({**case, "answer": names[key]})
    for name in files:
        for color, orient in [("rgb", True), ("rgb", False), ("any", True), ("gray", True)]:
            answer = dali(data=files[name], color=color, orient=orient, peek=True)
            outcome = {"error": why(answer)} if isinstance(answer, str) else {"shape": answer.tolist()}
            peeked.append({"file": name, "color": color, "orient": orient, **outcome})
    np.savez_compressed(os.path.join(here, "pictures.npz"), **{k: np.frombuffer(v, np.uint8) for k, v in files.items()})
    np.savez_compressed(os.path.join(here, "answers.npz"), **answers)
    with open(os.path.join(here, "cases.json"), "w") as out:
        out.write(
            '{"decode": [\n'
            + ",\n".join(map(json.dumps, decoded))
            + '\n],\n"peek": [\n'
            + ",\n".join(map(json.dumps, peeked))
            + "\n]}\n"
        )
    print(len(files), "pictures", len(decoded), "cases", len(answers), "answers")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
