"""Writes the .npy and .npz files of this folder with numpy and ml_dtypes.

    python make.py        # numpy 2, ml_dtypes 0.5
"""
import os

import ml_dtypes
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))

arrays = {
    "pred": np.array([True, False, True]),
    "s8": np.array([-128, 127], np.int8),
    "s16": np.array([-32768, 32767], np.int16),
    "s32": np.arange(6, dtype=np.int32).reshape(2, 3),
    "s64": np.array([-(2**63), 2**63 - 1], np.int64),
    "u8": np.array([0, 255], np.uint8),
    "u16": np.array([0, 65535], np.uint16),
    "u32": np.array([0, 2**32 - 1], np.uint32),
    "u64": np.array([0, 2**64 - 1], np.uint64),
    "f16": np.array([0.5, -65504, np.inf], np.float16),
    "f32": np.array([[0.1, -np.inf], [np.nan, 1e-45]], np.float32),
    "f64": np.array(0.1, np.float64),
    "c64": np.array([1 + 2j], np.complex64),
    "c128": np.array([[0.1 - 1j]], np.complex128),
    "bf16": np.array([1.5, -3.0], ml_dtypes.bfloat16),
    "f8e4m3fn": np.array([448, -1], ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.array([57344, -1], ml_dtypes.float8_e5m2),
    "s4": np.array([-8, 7, -1], ml_dtypes.int4),
    "u4": np.array([15, 0], ml_dtypes.uint4),
    "f4e2m1fn": np.array([6, -0.5], ml_dtypes.float4_e2m1fn),
    "empty": np.zeros((0, 3), np.float32),
    "dir/name.with.dots": np.zeros((1, 1, 1), np.float32),
    "größe": np.ones(2, np.float32),
}
np.savez("stored.npz", **arrays)
np.savez_compressed("deflated.npz", zeros=np.zeros((100, 100), np.float32), **arrays)
np.savez("small.npz", a=np.arange(3, dtype=np.int32), b=np.eye(2, dtype=np.float32))
np.savez_compressed("small_deflated.npz", a=np.arange(3, dtype=np.int32), b=np.zeros(500, np.float32))
np.save("fortran.npy", np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)))
np.save("big_endian.npy", np.arange(3, dtype=">f4"))
np.save("strings.npy", np.array(["ab", "c"]))
np.save("objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
np.save("structured.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
for version in (2, 3):
    with open(f"version{version}.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(4, dtype=np.float32), version=(version, 0))
