"""The host's side of decoding JPEGs on a device's SMs, in Python: what src/gpu/jpeg/sm makes of files, as
kernels/jpeg.cuh has it."""

import re

import numpy as np
from layouts import layout

WORD = 32
PADDING = 16
LAYOUT = layout("jpeg")
IMAGE, PLANE, SEGMENT, TASK, PASS = LAYOUT.Image, LAYOUT.Plane, LAYOUT.Segment, LAYOUT.Task, LAYOUT.Pass
AHEAD, LUT_BITS, TAIL = LAYOUT.AHEAD, LAYOUT.LUT_BITS, LAYOUT.TAIL
SKIP_WINDOW_BITS, DECODE_WINDOW_BITS = (WORD * (words - 4) for words in (LAYOUT.SKIP_WINDOW, LAYOUT.DECODE_WINDOW))
SCAN_THREADS = LAYOUT.SCAN_THREADS
SKIP_THREADS, DECODE_THREADS, PIXEL_BLOCKS = LAYOUT.SKIP_THREADS, LAYOUT.DECODE_THREADS, LAYOUT.PIXELS_THREADS // 8
PAIRS_BYTES = LAYOUT.Pairs.itemsize
DENSE_MCU_BITS, MAX_MCU_BITS, MOST_GUESSES = 1024, 8192, LAYOUT.GUESSES
RESTARTS = re.compile(rb"\xff[\xd0-\xd7]")
# What follows the data of a scan.
SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


class Jpeg:
    """A file taken apart: sequential of one scan, or progressive."""

    def __init__(self, file):
        self.quantisation, self.huffman, self.interval, at = {}, {}, 0, 2
        # First bit and bits of each segment, in data without stuffing.
        self.segments, self.data = [], b""
        # Of each scan of a progressive file its row, kinds and codes of its tables, and its first segment.
        self.passes, self.progressive = [], False
        while file[at + 1] != 0xD9:
            marker, length = file[at + 1], int.from_bytes(file[at + 2 : at + 4], "big")
            payload = file[at + 4 : at + 2 + length]
            at += 2 + length
            if marker == 0xDB:
                while payload:
                    self.quantisation[payload[0]] = np.frombuffer(payload[1:65], np.uint8).astype(np.uint16)
                    payload = payload[65:]
            elif marker == 0xC4:
                while payload:
                    end = 17 + sum(payload[1:17])
                    self.huffman[payload[0]] = (payload[1:17], payload[17:end])
                    payload = payload[end:]
            elif marker in (0xC0, 0xC1, 0xC2):
                self.progressive = marker == 0xC2
                self.height, self.width = int.from_bytes(payload[1:3], "big"), int.from_bytes(payload[3:5], "big")
                # Horizontal and vertical factor, quantisation table.
                self.components = [
                    (b >> 4, b & 15, q) for _, b, q in (payload[i : i + 3] for i in range(6, len(payload), 3))
                ]
                ids = [payload[i] for i in range(6, len(payload), 3)]
                if len(ids) == 1:
                    self.components = [(1, 1, self.components[0][2])]
                self.mcu = tuple(max(component[axis] for component in self.components) for axis in (0, 1))
                self.grid = (-(-self.width // (8 * self.mcu[0])), -(-self.height // (8 * self.mcu[1])))
                self.mcus, self.mcu_blocks = self.grid[0] * self.grid[1], sum(h * v for h, v, _ in self.components)
            elif marker == 0xDD:
                self.interval = int.from_bytes(payload, "big")
            elif marker == 0xDA:
                end = SCAN_END.search(file, at).start()
                if self.progressive:
                    self.add_pass(payload, ids)
                self.add_segments(file[at:end])
                at = end
                if not self.progressive:
                    break
        if self.progressive:
            self.tables, self.pair_of = [], [0] * len(self.components)
            return
        selectors = [payload[2 + 2 * i] for i in range(payload[0])]
        pairs = list(dict.fromkeys(selectors))
        self.pair_of = [pairs.index(selector) for selector in selectors]
        pairs = (pairs * 2)[:2]
        self.tables = [
            (kind, self.huffman[key]) for s in pairs for kind, key in (("dc", s >> 4), ("ac", 0x10 | s & 15))
        ]

    def add_segments(self, data):
        """The data of a scan."""
        for part in RESTARTS.split(data) if self.interval else [data]:
            bits = part.replace(b"\xff\x00", b"\xff")
            self.segments.append((8 * len(self.data), 8 * len(bits)))
            self.data += bits + b"\xff" * (PADDING + -len(bits) % 4)

    def add_pass(self, payload, ids):
        """A progressive scan, by its header."""
        row, tables = np.zeros((), PASS), {}
        first, last, bits = payload[-3:]
        parts = [(ids.index(payload[1 + 2 * i]), payload[2 + 2 * i]) for i in range(payload[0])]
        for component, selector in parts:
            row["components"] |= 1 << component
            if first:
                tables[component] = ("band", self.huffman[0x10 | selector & 15])
            elif not bits >> 4:
                tables[component] = ("dc", self.huffman[selector >> 4])
        row["across"], row["down"] = self.grid
        if len(parts) == 1:
            own, sides = self.components[parts[0][0]], (self.width, self.height)
            row["across"], row["down"] = (-(-sides[i] * own[i] // (8 * self.mcu[i])) for i in (0, 1))
        mcus = int(row["across"]) * int(row["down"])
        row["interval"] = self.interval or mcus
        row["segments"] = -(-mcus // int(row["interval"]))
        row["first"], row["last"], row["refines"], row["low"] = first, last, bits >> 4 > 0, bits & 15
        for number, (earlier, *_) in enumerate(self.passes):
            if earlier["components"] & row["components"] and earlier["first"] <= last and first <= earlier["last"]:
                row["waits"] |= 1 << number
        self.passes.append((row, tables, len(self.segments)))


def lookup(kind, counts, symbols):
    """`Table`: entries hold bits of the code, bits of the value, and how far k advances."""
    by_bits, entries = np.zeros(1 << 16, np.uint16), np.zeros(256, np.uint16)
    limits, bases, code, place = np.zeros(6, np.uint32), np.zeros(6, np.int32), 0, 0
    short = 0
    for length in range(1, 17):
        if length > LUT_BITS:
            bases[length - 11] = place - code
        for symbol in symbols[place : place + counts[length - 1]]:
            run, size = symbol >> 4, symbol & 15
            advance = run if kind == "band" else 1 if kind == "dc" else run + 1 if size else 16 if run == 15 else 64
            entries[place] = length | size << 5 | advance << 9
            by_bits[code << 16 - length : code + 1 << 16 - length] = entries[place]
            place, code = place + 1, code + 1
        if length > LUT_BITS:
            limits[length - 11] = code << 16 - length
        else:
            short = code << LUT_BITS - length
        code <<= 1
    lut = by_bits[:: 1 << 16 - LUT_BITS].copy()
    lut[short:] = 0
    table = np.zeros(1, LAYOUT.Table)
    table["lut"], table["tail"], table["sorted"], table["limit"], table["base"] = (
        lut,
        by_bits[-TAIL:],
        entries,
        limits,
        bases,
    )
    return table.tobytes()


def rows_of(struct, names, rows):
    """`rows`, each with values of the fields `names`."""
    made = np.zeros(len(rows), struct)
    for i, name in enumerate(names.split()):
        made[name] = [row[i] for row in rows]
    return made


def cut_of(jpeg, bits, guesses):
    """Bits of a piece, and guesses."""
    mcu = sum(length for _, length in jpeg.segments) // jpeg.mcus
    if mcu > DENSE_MCU_BITS:
        bits, guesses = max(bits, (min(mcu, MAX_MCU_BITS) // WORD | 1) * WORD), MOST_GUESSES
    return bits, min(guesses, jpeg.mcu_blocks)


class View:
    """What is wanted of a file: a window of the picture, reduced by 2 to the power of `shrink`; chroma smooth or
    not."""

    def __init__(self, jpeg, smooth=False, window=None, shrink=0):
        whole = [-(-side >> shrink) for side in (jpeg.width, jpeg.height)]
        self.left, self.top, self.width, self.height = window or (0, 0, *whole)
        self.shrink = shrink
        self.planes = [self.plane(jpeg, i, smooth) for i in range(len(jpeg.components))]
        # Planes, or else pixels at once.
        self.in_steps = shrink > 0 or any(plane["smooth"] for plane, _ in self.planes)

    def plane(self, jpeg, i, smooth):
        """As libjpeg has it: a component that is coarser than pixels is reduced less. And how many blocks of it are
        needed."""
        plane, side = np.zeros((), PLANE), 8 >> self.shrink
        across, down, _ = jpeg.components[i]
        while (
            side < 8
            and jpeg.mcu[0] * (8 >> self.shrink) % (across * side * 2) == 0
            and jpeg.mcu[1] * (8 >> self.shrink) % (down * side * 2) == 0
        ):
            side *= 2
        scale = [n * (8 >> self.shrink) // (own * side) for n, own in zip(jpeg.mcu, (across, down))]
        size = [
            -(-n * own * side // (most * 8))
            for n, own, most in zip((jpeg.width, jpeg.height), (across, down), jpeg.mcu)
        ]
        fancy = smooth and self.shrink < 3
        plane["smooth"] = fancy and (scale == [1, 2] or scale in ([2, 1], [2, 2]) and size[0] > 2)
        plane["factor_x"], plane["factor_y"] = (factor.bit_length() - 1 for factor in scale)
        plane["width"], plane["height"], plane["side"] = *size, side.bit_length() - 1
        more = int(plane["smooth"])
        ranges = []
        # Pixels are made eight at a time.
        whole_runs = [(self.left & ~7, self.left + self.width + 7 & ~7), (self.top, self.top + self.height)]
        for (first, behind), factor, limit in zip(whole_runs, scale, size):
            begin, end = max(0, first // factor - more), min(limit, (behind - 1) // factor + 1 + more)
            ranges.append((begin // side, -(-end // side)))
        (plane["left"], plane["top"]) = (begin * side for begin, _ in ranges)
        counts = [end - begin for begin, end in ranges]
        plane["across"], plane["stride"] = counts[0], counts[0] * side + 7 & ~7
        return plane, counts


def tables_of(jpegs, bits, guesses, halvings, of_a_warp, views=None, together=4):
    """Everything that goes to the device, as the emulator reads it; and the images, with where their pixels will be.
    Pieces are halved so often where they are decoded. So many threads of a warp are at work where codes are looked for,
    and where they are decoded, and so many progressive images are `together` in a block of threads."""
    images, views = np.zeros(len(jpegs), IMAGE), views or [View(jpeg) for jpeg in jpegs]
    segments, data, lookups, values = [], b"", {}, {}
    planes, samples, passes = [], 0, []
    pieces = blocks = pixels = 0
    tasks = {"pairs": [], "guess": [], "resolve": [], "decode": [], "progressive": [], "dc": []}
    tasks |= {"pixels": [], "planes": [], "upsample": []}

    def place_of(kind, table):
        made = lookup(kind, *table)
        if made not in lookups and kind != "band":
            tasks["pairs"].append((len(lookups), int(kind == "ac"), 0, 0))
        return lookups.setdefault(made, len(lookups))

    for number, (jpeg, image, view) in enumerate(zip(jpegs, images, views)):
        data += bytes(-len(data) % 16)
        image["data"], image["words"] = len(data), len(jpeg.data) // 4
        data += jpeg.data
        image["first_segment"], image["segments"] = len(segments), len(jpeg.segments)
        image["piece_bits"], image["guesses"] = size, guess = cut_of(jpeg, bits, guesses)
        own = 0
        for place, (first, length) in enumerate(jpeg.segments):
            segments.append((first, length, own, place * jpeg.interval * jpeg.mcu_blocks))
            own += 0 if jpeg.progressive else max(1, -(-length // size))
        image["first_piece"], image["pieces"], image["first_block"] = pieces, own, blocks
        image["blocks"] = jpeg.mcus * jpeg.mcu_blocks
        pieces, blocks = pieces + own, blocks + jpeg.mcus * jpeg.mcu_blocks
        if jpeg.progressive:
            tasks["progressive"].append((number, len(passes), len(jpeg.passes), 0))
        for place, (kind, table) in enumerate(jpeg.tables):
            image["tables"][place] = place_of(kind, table)
        for row, tables, first_segment in jpeg.passes:
            row = row.copy()
            row["first_segment"] = image["first_segment"] + first_segment
            for component, (kind, table) in tables.items():
                row["tables"][component] = place_of(kind, table)
            passes.append(row)
        first = 0
        for i, (across, down, table) in enumerate(jpeg.components):
            image["first"][i], image["across"][i] = first, across
            image["factor_x"][i] = (jpeg.mcu[0] // across).bit_length() - 1
            image["factor_y"][i] = (jpeg.mcu[1] // down).bit_length() - 1
            image["quantisation"][i] = values.setdefault(jpeg.quantisation[table].tobytes(), len(values))
            for block in range(first, first + across * down):
                image["pairs"] |= jpeg.pair_of[i] << block
                image["components"] |= i << 2 * block
            first += across * down
        image["mcu_blocks"], image["mcus_across"] = jpeg.mcu_blocks, jpeg.grid[0]
        image["width"], image["height"], image["color"] = view.width, view.height, len(jpeg.components) > 1
        image["mcu_width"], image["mcu_height"] = jpeg.mcu
        image["pixels"] = pixels
        pixels += 3 * view.width * view.height + 255 & ~255
        # Several short segments take more room than their bits.
        padded = size + (8 * PADDING + WORD if len(jpeg.segments) > 1 else 0)
        ahead = min(AHEAD * size, SKIP_WINDOW_BITS // 2)
        at_once = {
            "guess": (SKIP_THREADS // 32 * of_a_warp[0] // guess, SKIP_WINDOW_BITS - ahead),
            "decode": (DECODE_THREADS // 32 * of_a_warp[1] >> halvings, DECODE_WINDOW_BITS),
        }
        for kind, (most, room) in at_once.items():
            most = max(1, min(most, room // padded))
            tasks[kind] += [(number, i, min(most, own - i), 0) for i in range(0, own, most)]
        for kind, items in (("resolve", own), ("dc", jpeg.mcus)):
            # Blocks of threads of an image have a number.
            firsts = range(0, max(items, 1), SCAN_THREADS)
            tasks[kind] += [(number, i, min(SCAN_THREADS, items - i), place) for place, i in enumerate(firsts)]
        image["left"], image["top"] = view.left, view.top
        if view.in_steps:
            image["first_plane"] = len(planes)
            for i, (plane, (across, down)) in enumerate(view.planes):
                plane["samples"] = samples
                samples += int(plane["stride"]) * (down << int(plane["side"])) + 255 & ~255
                planes.append(plane)
                tasks["planes"] += [
                    (number, first, min(100, across * down - first), i) for first in range(0, across * down, 100)
                ]
            strips = view.height * -(-(view.left % 8 + view.width) // 256)
            tasks["upsample"] += [(number, first, min(20, strips - first), 0) for first in range(0, strips, 20)]
            continue
        sides = [8 * n for n in jpeg.mcu]
        (left, right), (top, bottom) = (
            (first // side, -(-(first + length) // side))
            for first, length, side in zip((view.left, view.top), (view.width, view.height), sides)
        )
        image["left_in_mcu"], image["top_in_mcu"] = view.left % sides[0], view.top % sides[1]
        image["first_mcu"], image["window_across"] = top * jpeg.grid[0] + left, right - left
        # Three groups of MCUs a task: some go over the end of a row.
        mcus, run = (right - left) * (bottom - top), 3 * (PIXEL_BLOCKS // jpeg.mcu_blocks)
        tasks["pixels"] += [(number, i, min(run, mcus - i), 0) for i in range(0, mcus, run)]
    segments = rows_of(SEGMENT, "first_bit bits first_piece first_block", segments)
    arrays = [images, segments, b"".join(lookups), b"".join(values), data]
    arrays += [rows_of(TASK, "image first count component", rows) for rows in tasks.values()]
    arrays += [np.array(planes, PLANE), np.array(passes, PASS)]
    arrays.append(np.array([pieces, blocks, samples, pixels, halvings, together], np.uint64))
    return images, [array if isinstance(array, bytes) else array.tobytes() for array in arrays]
