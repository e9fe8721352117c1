"""Write the digits that ship with the package: src/equicaps/data/files/mnist_subset.npz.

Run: python docs/make_embedded_digits.py [--data FOLDER] [--out FILE]

They are 400 training and 100 test digits of each class, evenly spaced in the order of MNIST, because the first half of
its test set is the easier one. The arrays are always the same; so are the bytes of the file with the same zlib.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equicaps.data import embedded, load_mnist

FILE = Path(embedded.__file__).parent / "files" / embedded.FILE


def choose(labels: NDArray[np.int64], each: int) -> NDArray[np.uint16]:
    """The sorted indices of ``each`` digits of every class."""
    of_class = (np.flatnonzero(labels == digit) for digit in range(10))
    chosen = [places[np.linspace(0, len(places) - 1, each).round().astype(int)] for places in of_class]
    return np.sort(np.concatenate(chosen)).astype(np.uint16)


def arrays(root: Path | None) -> dict[str, NDArray[np.generic]]:
    """The arrays of the file, by name."""
    found: dict[str, NDArray[np.generic]] = {}
    for split, each in (("train", 400), ("test", 100)):
        digits = load_mnist(split, root)
        labels = digits.labels.numpy()
        places = choose(labels, each)
        images = (digits.images[:, 0] * 255).round().byte().numpy()
        found |= {
            f"{split}_images": images[places],
            f"{split}_labels": labels[places].astype(np.uint8),
            f"{split}_indices": places,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds MNIST; by default wherever load_mnist finds it")
    parser.add_argument("--out", type=Path, default=FILE, help="file to write")
    arguments = parser.parse_args()
    np.savez_compressed(arguments.out, **arrays(arguments.data))
    content = arguments.out.read_bytes()
    print(f"{arguments.out}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
