"""All readers, by their names in files. One that the library has itself comes from there."""

from .caffe import Caffe, Caffe2
from .coco import COCO
from .file import File
from .numpy import Numpy
from .records import MXNet, TFRecord
from .webdataset import Webdataset

READERS = {kind.schema_name: kind for kind in (File, Caffe, Caffe2, COCO, MXNet, Numpy, TFRecord, Webdataset)}
OLD_NAMES = {
    "FileReader": File,
    "CaffeReader": Caffe,
    "Caffe2Reader": Caffe2,
    "COCOReader": COCO,
    "MXNetReader": MXNet,
    "NumpyReader": Numpy,
    "TFRecordReader": TFRecord,
}
