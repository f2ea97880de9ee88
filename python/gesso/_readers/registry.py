"""All readers, by their names in files. One that the library has itself comes from there."""

from .file_read import Read
from .fits import Fits
from .hdf5 import HDF5
from .of_library import COCO, Caffe, Caffe2, Csv, File, MXNet, NemoAsr, Numpy, Sequence, TFRecord, Webdataset
from .parquet import Parquet
from .video import OlderVideo, Video, VideoResize

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
