"""Messages of plain values and arrays, as one block of bytes or as text inside a page.

A block is the length of the header (four bytes, little endian), the header as JSON padded to a
multiple of eight bytes, then the arrays, each padded likewise. The header is
``{"message": ..., "arrays": [[name, type, offset, count], ...]}``; offsets count from the end of
the header. The front end reads it in ``codec.js``.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.runtime.plain import to_plain

_TYPES = {"float64": "f8", "float32": "f4", "uint32": "u4", "uint8": "u1"}


def layout(arrays: dict[str, NDArray[Any]]) -> tuple[list[list[Any]], bytes]:
    """Name, type, offset and count of each array, and all their bytes."""
    table: list[list[Any]] = []
    parts: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array)
        raw = data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()
        table.append([name, _TYPES[data.dtype.name], offset, int(data.size)])
        padding = -len(raw) % 8
        parts += [raw, b"\0" * padding]
        offset += len(raw) + padding
    return table, b"".join(parts)


def to_block(message: dict[str, Any], arrays: dict[str, NDArray[Any]] | None = None) -> bytes:
    """A message as one block of bytes."""
    table, body = layout(arrays or {})
    header = json.dumps({"message": to_plain(message), "arrays": table}).encode()
    header += b" " * (-(len(header) + 4) % 8)
    return struct.pack("<I", len(header)) + header + body


def from_block(block: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A message and its arrays; ValueError for bytes that are none."""
    if len(block) < 4:
        raise ValueError("a block has at least four bytes")
    (length,) = struct.unpack_from("<I", block)
    if length > len(block) - 4:
        raise ValueError("the header is longer than the block")
    header = json.loads(block[4 : 4 + length])
    if not isinstance(header, dict) or not isinstance(header.get("message"), dict):
        raise ValueError("the header has no message")
    types = {code: name for name, code in _TYPES.items()}
    arrays: dict[str, NDArray[Any]] = {}
    start = 4 + length
    for name, code, offset, count in header.get("arrays", []):
        dtype = np.dtype(types[code]).newbyteorder("<")
        if offset < 0 or count < 0 or start + offset + count * dtype.itemsize > len(block):
            raise ValueError("an array is longer than the block")
        arrays[str(name)] = np.frombuffer(block, dtype, count, start + offset)
    return header["message"], arrays


def to_text(message: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    """A message as JSON whose arrays are base64, for the inside of a page."""
    table, body = layout(arrays)
    packed = base64.b64encode(body).decode()
    text = json.dumps({"message": to_plain(message), "arrays": table, "body": packed})
    return text.replace("<", "\\u003c")  # no way out of a script element
