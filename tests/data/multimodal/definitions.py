"""What make.py asks the packages, and what tests ask Gesso: processors by their fields, sizes of images, pictures and
sounds. Needs numpy alone."""

import io
import wave

import numpy as np

_HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

#: The fields of image processors, as models that use them have them.
PROCESSORS = {
    "qwen2-vl": {"image_processor_type": "Qwen2VLImageProcessor"},
    "qwen2.5-vl": {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056},
    "qwen3-vl": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "patch_size": 16,
        "size": {"shortest_edge": 65536, "longest_edge": 16777216},
        **_HALF,
    },
    "llava-next": {
        "image_processor_type": "LlavaNextImageProcessor",
        "size": {"shortest_edge": 336},
        "crop_size": {"height": 336, "width": 336},
    },
    "internvl": {
        "image_processor_type": "GotOcr2ImageProcessor",
        "size": {"height": 448, "width": 448},
        "crop_to_patches": True,
        "min_patches": 1,
        "max_patches": 12,
        **_IMAGENET,
    },
    "idefics3": {"image_processor_type": "Idefics3ImageProcessor"},
    "smolvlm": {
        "image_processor_type": "SmolVLMImageProcessor",
        "size": {"longest_edge": 2048},
        "max_image_size": {"longest_edge": 512},
        **_HALF,
    },
    "pixtral": {"image_processor_type": "PixtralImageProcessor"},
    "gemma3": {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}},
    "llama4": {"image_processor_type": "Llama4ImageProcessor"},
    "minicpm-v": {"image_processor_type": "MiniCPMV4_6ImageProcessor"},
}

#: The fields of video processors.
VIDEOS = {
    "qwen2-vl-video": {"video_processor_type": "Qwen2VLVideoProcessor"},
    "qwen2.5-vl-video": {
        "video_processor_type": "Qwen2VLVideoProcessor",
        "do_sample_frames": True,
        "fps": 8,
        "min_pixels": 3136,
        "max_pixels": 12845056,
        "cap_pixels_per_frame": True,
        "max_video_tokens": 20,
    },
    "qwen3-vl-video": {
        "video_processor_type": "Qwen3VLVideoProcessor",
        "size": {"shortest_edge": 4096, "longest_edge": 25165824},
    },
    "qwen3-vl-video-capped": {
        "video_processor_type": "Qwen3VLVideoProcessor",
        "fps": 0.5,
        "cap_pixels_per_frame": True,
    },
}

#: Videos of tests/data/video that they are asked for.
CLIPS = ("h264.mp4", "large_h264.mp4", "vp9.webm", "mjpeg.avi", "large_vp8_odd.webm")

#: Heights and widths: single pixels, thin ones, sides beside multiples of 14, 16 and 28, ties, photos.
SIZES = (
    *((1, 1), (1, 2), (1, 150), (150, 1), (2, 399), (400, 2), (3, 5), (13, 14), (14, 70), (27, 29), (42, 42)),
    *((56, 84), (28, 5600), (100, 100), (200, 300), (224, 224), (336, 672), (337, 671), (333, 500), (448, 448)),
    *((512, 513), (480, 640), (640, 480), (770, 1010), (1000, 700), (1080, 1920), (1365, 2048), (4000, 60)),
    (3000, 4000),
)
#: Processors that make a hundred megabytes of the largest.
WITHOUT_THE_LARGEST = ("qwen2.5-vl", "qwen3-vl")


def picture(height, width):
    """Ramps and noise that repeat, of whole numbers alone, so that every numpy makes the same."""
    rows, columns = (np.arange(height, dtype=np.uint64)[:, None], np.arange(width, dtype=np.uint64)[None, :])
    planes = []
    for channel in range(3):
        noise = (rows * 40503 + columns * 2654435761 + channel * 977) * 69069 % (1 << 32) >> 16
        ramp = (rows * (3 + channel) + columns * (5 - channel)) // 4 + channel * 50
        planes.append((ramp + noise % 48) % 256)
    return np.stack(planes, -1).astype(np.uint8)


def as_file(pixels):
    """A picture as a file of the format PPM."""
    return b"P6 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


#: The fields of feature extractors; a chunk of Whisper's is short here, so that answers are small. And samples of the
#: sounds that each is asked for, at 16,000 a second.
EXTRACTORS = {
    "whisper-80": ({"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 1}, (161, 20000)),
    "whisper-128": (
        {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "chunk_length": 1},
        (15999,),
    ),
    "wav2vec2": (
        {"feature_extractor_type": "Wav2Vec2FeatureExtractor"},
        (1, 2, 7, 8, 9, 127, 128, 129, 400, 4001, 15999, 16000, 40000, 480000),
    ),
    "seamless-m4t": ({"feature_extractor_type": "SeamlessM4TFeatureExtractor"}, (16000,)),
}


def sound(samples):
    """A tone that rises under noise that swells, as 16-bit levels made to floats; silence at the end."""
    at = np.arange(samples, dtype=np.int64)
    noise = (at * 69069 + 12345) * 40503 % (1 << 31) % 2001 - 1000
    saw = at * (at // 64 + 3) % 1999 - 999
    levels = noise * (at % 5000) // 5000 * 9 + saw * 7
    levels[samples * 9 // 10 :] = 0
    return (levels / 32768).astype(np.float32)


def as_wav(signal, rate=16000):
    """A sound as a file of the format WAV, of one channel and 16 bits."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((signal * 32768).astype("<i2").tobytes())
    return made.getvalue()
