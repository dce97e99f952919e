"""Writes tests/golden/float_formats.json: check sums of what numpy (f16) and ml_dtypes make of floats, and back.

    float_formats.py            # needs numpy and ml_dtypes

Every code is decoded; encoded are 2^20 words of all exponents, and each upper half of a word with lower halves at and
beside the ties of all formats. NaN counts as one value: as a float 0x7fc00000, as a code all ones.
"""
import json
import pathlib
import zlib

import ml_dtypes
import numpy

FORMATS = {"f16": numpy.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
           "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
LOWER_HALVES = [0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF]


def main():
    spread = numpy.arange(1 << 20, dtype=numpy.uint32) * numpy.uint32(2654435761) + numpy.uint32(12345)
    upper = numpy.arange(1 << 16, dtype=numpy.uint32) << 16
    ties = (upper[:, None] | numpy.array(LOWER_HALVES, dtype=numpy.uint32)[None, :]).ravel()
    values = numpy.concatenate([spread, ties]).view(numpy.float32)
    golden = {"made_with": f"numpy {numpy.__version__}, ml_dtypes {ml_dtypes.__version__}"}
    for name, kind in FORMATS.items():
        code = numpy.dtype(f"u{numpy.dtype(kind).itemsize}")
        decoded = numpy.arange(1 << 8 * code.itemsize).astype(code).view(kind).astype(numpy.float32)
        decoded.view(numpy.uint32)[numpy.isnan(decoded)] = 0x7FC00000
        narrow = values.astype(kind)
        encoded = narrow.view(code).copy()
        encoded[numpy.isnan(narrow.astype(numpy.float32))] = numpy.iinfo(code).max
        golden[name] = {"decoded": zlib.crc32(decoded.tobytes()), "encoded": zlib.crc32(encoded.tobytes())}
    path = pathlib.Path(__file__).parent.parent / "golden" / "float_formats.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
