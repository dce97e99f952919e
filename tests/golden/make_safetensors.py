"""Writes all_dtypes.safetensors with the Python library, as tests/safetensors.cpp expects it byte for byte.

Ran with torch 2.15.0 and safetensors 0.8.0: python3 make_safetensors.py
"""

import pathlib

import torch
from safetensors.torch import save_file

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "f8e5m2": torch.float8_e5m2,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "i16": torch.int16,
    "u16": torch.uint16,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i32": torch.int32,
    "u32": torch.uint32,
    "f32": torch.float32,
    "f64": torch.float64,
    "i64": torch.int64,
    "u64": torch.uint64,
}

tensors = {}
for name, dtype in DTYPES.items():
    # element i is i % 2 for bool, else i: exact in every type
    count = torch.arange(6).reshape(2, 3)
    tensors[f"matrix.{name}"] = (count % 2 if name == "bool" else count).to(dtype)
    tensors[f"empty.{name}"] = torch.zeros(0, 4).to(dtype)
tensors["scalar"] = torch.tensor(-1.5)
tensors['quote " \\ / ñ \U0001f600'] = torch.tensor([1], dtype=torch.int32)
save_file(tensors, pathlib.Path(__file__).parent / "all_dtypes.safetensors", metadata={"format": "pt"})
