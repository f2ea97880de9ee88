"""The table of the readers beside their peers."""

import readers


def test_a_row_for_each_reader():
    found = {
        "gesso:file": [[100.0, 1], [300.0, 1], [200.0, 1]],
        "gesso:tfrecord": [[190.0, 1]],
        "dali:tfrecord": [[95.0, 1]],
        "webdataset": [[40.0, 1]],
    }
    _, rows = readers.table(found, ["file", "tfrecord", "lmdb"])
    assert rows == [
        ["file", "200", "1.00", "", ""],
        ["tfrecord", "190", "0.95", "95", "2.0 times"],
        ["lmdb", "", "", "", ""],
        ["webdataset", "40", "", "", ""],
    ]
