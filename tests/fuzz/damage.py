"""What chance does to texts, bytes and plain values."""

ODD = (
    "nan", "inf", "-inf", "1e999", "-1", "0", "", " ", "1,5", "1e-400", "0x10", "1_000", "True",
    "9" * 40, "\x00", "π", "'", '"', "#", "../..", "a" * 5000, "=1+1", "<script>", "${HOME}",
    "\ufeff",
)  # fmt: skip


def changed_bytes(data, rng):
    """Bytes changed, cut, repeated, moved or put in, one to three times."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not out:
            break
        place, length = int(rng.integers(len(out))), int(rng.integers(1, 40))
        match int(rng.integers(6)):
            case 0:
                out[place] ^= 1 << int(rng.integers(8))
            case 1:
                out[place : place + length] = rng.bytes(length)
            case 2:
                del out[place:]
            case 3:
                del out[place : place + length]
            case 4:
                out[place:place] = out[place : place + length] * int(rng.integers(1, 30))
            case _:
                out[place:place] = ODD[int(rng.integers(len(ODD)))].encode()
    return bytes(out)


def changed_json(value, rng):
    """A copy of plain values in which one thing is another."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[int(rng.integers(len(value)))]
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: changed_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = int(rng.integers(len(value)))
        return [*value[:place], changed_json(value[place], rng), *value[place + 1 :]]
    odd = (None, True, -1, 0, 1e300, 10**400, -0.0, "x", [], {}, [[1]], {"a": 1}, 1e-320, 2**63)
    return odd[int(rng.integers(len(odd)))]


def pick(rng, values):
    """One of some values, whatever their types."""
    return values[int(rng.integers(len(values)))]
