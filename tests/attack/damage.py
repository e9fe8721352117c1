"""Ways to damage the content of a file."""

from random import Random


def damaged(random: Random, content: bytes) -> bytes:
    """A few changes: bits, bytes, blocks, lengths, the end."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 4)):
        place = (
            random.randrange(max(1, len(changed)))
            if random.random() < 0.5
            else random.randrange(min(64, len(changed) or 1))
        )
        kind = random.choice(("bit", "byte", "block", "cut", "insert", "repeat", "number"))
        if kind == "bit" and changed:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == "byte" and changed:
            changed[place] = random.randrange(256)
        elif kind == "block":
            changed[place : place + 16] = random.randbytes(16)
        elif kind == "cut":
            del changed[random.randrange(len(changed) + 1) :]
        elif kind == "insert":
            changed[place:place] = random.randbytes(random.randint(1, 64))
        elif kind == "repeat":
            changed += changed[place : place + 4096]
        else:
            changed[place : place + 4] = random.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"))
    return bytes(changed)
