"""All readers, by their names in files. One that the library has itself comes from there."""

from .caffe import Caffe, Caffe2
from .coco import COCO
from .csv import Csv
from .file import File
from .file_read import Read
from .fits import Fits
from .hdf5 import HDF5
from .nemo_asr import NemoAsr
from .numpy import Numpy
from .parquet import Parquet
from .records import MXNet, TFRecord
from .sequence import Sequence
from .video import OlderVideo, Video, VideoResize
from .webdataset import Webdataset

_READ_HERE = (Fits, HDF5, Parquet, Read)
_ALL = (
    *_READ_HERE,
    File,
    Caffe,
    Caffe2,
    COCO,
    Csv,
    MXNet,
    NemoAsr,
    Numpy,
    Sequence,
    TFRecord,
    Video,
    OlderVideo,
    VideoResize,
    Webdataset,
)
READERS = {kind.schema_name: kind for kind in _ALL}
OLD_NAMES = {
    "FileReader": File,
    "CaffeReader": Caffe,
    "Caffe2Reader": Caffe2,
    "COCOReader": COCO,
    "MXNetReader": MXNet,
    "NemoAsrReader": NemoAsr,
    "NumpyReader": Numpy,
    "SequenceReader": Sequence,
    "TFRecordReader": TFRecord,
    "VideoReader": OlderVideo,
    "VideoReaderResize": VideoResize,
}
