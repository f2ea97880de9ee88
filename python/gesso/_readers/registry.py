"""All readers, by their names in files. One that the library has itself comes from there."""

from .caffe import Caffe, Caffe2
from .file import File
from .numpy import Numpy

READERS = {kind.schema_name: kind for kind in (File, Caffe, Caffe2, Numpy)}
OLD_NAMES = {"FileReader": File, "CaffeReader": Caffe, "Caffe2Reader": Caffe2, "NumpyReader": Numpy}
