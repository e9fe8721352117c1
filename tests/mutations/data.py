"""Mistakes in finding, fetching, dividing and generating data."""

from mutations.mutant import mutants_of

MUTANTS = (
    *mutants_of(
        "src/equicaps/data/division.py",
        ("data/test_folder.py",),
        (
            "test images in training",
            "sorted(ordered[:count]), sorted(ordered[count:])",
            "sorted(ordered[:count]), files",
        ),
        (
            "a class without test images",
            "count = min(max(1, count), len(files) - 1)",
            "count = min(count, len(files) - 1)",
        ),
        ("seed of the division ignored", "_drawn(seed, _shown(file, root))", "_drawn(0, _shown(file, root))"),
        ("division by the place of the folder", "_drawn(seed, _shown(file, root))", "_drawn(seed, file)"),
        ("copies of test images stay in training", "for part in reversed(parts):", "for part in parts:"),
        ("classes not sorted", "for entry in sorted(folder.iterdir())", "for entry in folder.iterdir()"),
    ),
    *mutants_of(
        "src/equicaps/data/folder.py",
        ("data/test_folder.py",),
        (
            "size of the shorter sides",
            "median_low(sorted(map(max, sizes",
            "median_low(sorted(map(min, sizes",
        ),
    ),
    *mutants_of(
        "src/equicaps/data/reduced.py",
        ("data/test_reduced.py",),
        ("stored images of changed files", "return found.st_size, found.st_mtime_ns", "return 0, 0"),
        ("damaged images believed", "if zlib.crc32(text, checksum) == expected else", "if text else"),
        ("files in motion trusted", 'not (found["settled"] or fresh)', 'not (found["key"] or fresh)'),
        ("images of 16 bits as bytes", "np.uint16 if any(header.deep", "np.uint8 if any(header.deep"),
    ),
    *mutants_of(
        "src/equicaps/data/by_name.py",
        ("data/test_by_name.py::test_a_training_leaves_the_test_split_alone_where_there_is_a_validation_split",),
        ("evaluated on the test split on the way", '"valid" if "valid" in entry.parts else "test"', '"test"'),
    ),
    *mutants_of(
        "src/equicaps/data/dataset.py",
        ("data/test_dataset.py",),
        (
            "images with NaN accepted",
            "not all(math.isfinite(value) for value in self.value_range()):",
            "any(math.isinf(value) for value in self.value_range()):",
        ),
        ("angles of other images", "None if self.angles is None else self.angles[which]", "self.angles"),
        ("repeated images counted as different", "len(self.origins.unique())", "len(self.origins)"),
        ("copies taken for different images", "self.take(torch.from_numpy(first))", "self"),
        ("repeated images forgotten in parts", "None if self.origins is None else self.origins[which]", "None"),
        ("balanced classes of different sizes", "max(1, size)))[:wanted]", "max(1, size)))"),
    ),
    *mutants_of(
        "src/equicaps/data/labelled.py",
        ("data/test_dataset.py", "data/test_shapes.py"),
        ("a label too many", "int(labels.max()) < len(classes)", "int(labels.max()) <= len(classes)"),
        (
            "the first images for some images",
            "bounds[:-1] + (drawn * bounds.diff()).long()",
            "torch.arange(count)",
        ),
    ),
    *mutants_of(
        "src/equicaps/data/labelled.py",
        ("data/test_labelled.py",),
        ("of many small classes none is held back", "if missing < LEFT_OUT * count:", "if missing:"),
        ("other shapes of ModelNet10 held back", "if missing < LEFT_OUT * count:", "if missing <= 0:"),
        ("classes held back as a whole", "shares.append(min(share, max(size - 1, 0)))", "shares.append(share)"),
        ("the smallest classes give one more", "size if size >= FEWEST_TO_SHARE else 0", "size"),
        ("the smallest remainders first", "-remainders[label])[:missing]", "remainders[label])[:missing]"),
        ("the first classes give one more", "for label in drawn if", "for label in range(len(sizes)) if"),
    ),
    *mutants_of(
        "src/equicaps/data/damaged.py",
        ("data/test_damaged.py",),
        ("names of damaged files break lines", "printable(str(error))", "str(error)"),
        ("all files are damaged", "of=len(found) + len(damaged)", "of=len(damaged)"),
    ),
    *mutants_of(
        "src/equicaps/data/csv_rows.py",
        ("data/test_csv_rows.py",),
        ("rows with too many fields accepted", "if None in row:", "if None in names:"),
        ("lists without rows accepted", "if not rows:", "if not names:"),
    ),
    *mutants_of(
        "src/equicaps/data/surfaces.py",
        ("data/test_surfaces.py",),
        (
            "triangles equally likely",
            "triangle_areas(triangles).cumsum(0)",
            "triangle_areas(triangles).sign().cumsum(0)",
        ),
        ("points crowd at a corner of a triangle", "far = far.sqrt()", "far = far * 1"),
        ("points of voxels inside them", "across.scatter_(1, chosen[:, 3:].long(), 0.0)", "pass"),
    ),
    *mutants_of(
        "src/equicaps/data/centring.py",
        ("data/test_centring.py",),
        ("the centre of corners for that of the area", "if areas.sum() > 0:", "if areas.sum() < 0:"),
    ),
    *mutants_of(
        "src/equicaps/data/shape_files.py",
        ("data/test_shape_files.py",),
        ("truncated meshes accepted", "if faces < expected:", "if faces < 0:"),
        ("shapes with NaN accepted", "wrong = ~np.isfinite(found)", "wrong = np.isinf(found)"),
        ("pickles in arrays opened", 'mmap_mode="r", allow_pickle=False', "allow_pickle=True"),
    ),
    *mutants_of(
        "src/equicaps/data/modelnet10.py",
        ("data/test_modelnet10.py",),
        ("checksum of ModelNet10 not compared", "if found != SHA256:", "if not found:"),
    ),
    *mutants_of(
        "src/equicaps/data/dataset.py",
        ("data/test_reduced.py",),
        (
            "parts of a folder in memory",
            "self.images.chosen(which) if isinstance(self.images, StoredImages) else self.images[which]",
            "self.images[which]",
        ),
    ),
    *mutants_of(
        "src/equicaps/data/angles.py",
        ("data/test_angles.py",),
        ("infinite angles accepted", "if not math.isfinite(value):", "if math.isnan(value):"),
        ("contradicting angles accepted", "if now.degrees != before.degrees:", "if now.degrees < 0:"),
        ("angles of copies forgotten", "known[image.resolve()] = before", "pass"),
    ),
    *mutants_of(
        "src/equicaps/data/idx.py",
        ("data/test_mnist.py",),
        ("checksums of MNIST not compared", "if found != md5:", "if not found:"),
        ("sizes read in the wrong byte order", '">u4"', '"<u4"'),
    ),
    *mutants_of(
        "src/equicaps/data/mnist_rot.py",
        ("data/test_mnist_rot.py",),
        ("a training digit in validation", 'else rows[COUNTS["train"] :]', 'else rows[COUNTS["train"] - 1 :]'),
    ),
    *mutants_of(
        "src/equicaps/data/affnist.py",
        ("data/test_affnist.py",),
        (
            "rows and columns of affNIST exchanged",
            "np.ascontiguousarray(images.T).reshape(count, SIDE, SIDE)",
            "np.ascontiguousarray(images.T).reshape(count, SIDE, SIDE).swapaxes(1, 2)",
        ),
    ),
    *mutants_of(
        "src/equicaps/data/regenerated.py",
        ("data/test_regenerated.py",),
        ("affNIST's test digits from training", '"test": lambda: mnist_test,', '"test": lambda: mnist_train,'),
        ("one seed for all splits", "manual_seed(seed * len(_SPLITS) + _SPLITS.index(split))", "manual_seed(seed)"),
        ("angles of half the circle", "generator=generator) * 360", "generator=generator) * 180"),
    ),
    *mutants_of(
        "src/equicaps/data/galaxies.py",
        ("data/test_galaxies.py",),
        (
            "cutouts off centre",
            "margin : side - margin, margin : side - margin",
            "margin : side - margin, : side - 2 * margin",
        ),
        ("checksum of the galaxies not compared", "if found != SHA256:", "if not found:"),
        ("position angles mirrored", "(90 - degrees) % 180", "(degrees - 90) % 180"),
    ),
    *mutants_of(
        "src/equicaps/data/locate.py",
        ("data/test_locate.py",),
        ("lock of the cache not taken", "with lock_folder(cache, wait=True):", "if True:"),
        ("fetched again after waiting", "if missing := _missing(cache, files):", "if missing:"),
        ("offline switch ignored", 'not in ("", "0")', '== "never"'),
    ),
    *mutants_of(
        "src/equicaps/data/fetch.py",
        ("data/test_fetch.py",),
        ("checksum of a download not compared", 'url, md5 and f"md5:{md5}"', "url, None"),
        ("leftovers of killed processes kept", "shutil.rmtree(leftover, ignore_errors=True)", "pass"),
    ),
)
