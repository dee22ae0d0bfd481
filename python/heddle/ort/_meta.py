"""What a model says of itself, read from the file without its graph."""
import mmap


def _fields(data, begin, end):
    """(number, value) of a protobuf message: an int, or the place of bytes as (begin, end)."""
    at = begin

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            if at >= end or shift > 63:
                raise ValueError("damaged")
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
    while at < end:
        key = varint()
        kind, number = key & 7, key >> 3
        if kind == 0:
            yield number, varint()
        elif kind == 2:
            size = varint()
            if size > end - at:
                raise ValueError("damaged")
            yield number, (at, at + size)
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("damaged")


def _read(data):
    found = {"producer_name": "", "producer_version": "", "domain": "", "description": "",
             "graph_name": "", "graph_description": "", "version": 0, "custom_metadata_map": {}}

    def text(place):
        return bytes(data[place[0]:place[1]]).decode("utf-8", "replace")
    texts = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "description"}
    for number, value in _fields(data, 0, len(data)):
        if number in texts:
            found[texts[number]] = text(value)
        elif number == 5:
            found["version"] = value
        elif number == 7:
            for inner, part in _fields(data, *value):
                if inner in (2, 10):
                    found["graph_name" if inner == 2 else "graph_description"] = text(part)
        elif number == 14:
            entry = {1: "", 2: ""}
            entry.update((inner, text(part)) for inner, part in _fields(data, *value))
            found["custom_metadata_map"][entry[1]] = entry[2]
    return found


def read_meta(model):
    """Of a path or bytes, a dictionary; of what is no ONNX model, with nothing in it."""
    try:
        if isinstance(model, bytes):
            return _read(model)
        with open(model, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data)
    except (ValueError, OSError, TypeError, AttributeError):
        return _read(b"")
