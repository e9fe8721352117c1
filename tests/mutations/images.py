"""Mistakes in reading, preparing, rotating and measuring images."""

from mutations.mutant import mutants_of

MUTANTS = (
    *mutants_of(
        "src/equicaps/images/resizing.py",
        ("images/test_resizing.py", "images/test_road.py"),
        ("images resized without smoothing", "reach = max(whole / side, 1)", "reach = 1"),
        ("padding is black", "colour = background(images).double()", "colour = torch.zeros(1, 1, 1, 1).double()"),
        ("an odd difference is cut off", "(given[:, :-1] + given[:, 1:]) / 2 if odd", "given[:, :-1] if odd"),
        ("16 bits read as 8", "images.float() / torch.iinfo(images.dtype).max", "images.float() / 255"),
    ),
    *mutants_of(
        "src/equicaps/images/background.py",
        ("images/test_background.py",),
        ("bytes are mixed without rounding", ".round_()", ""),
    ),
    *mutants_of(
        "src/equicaps/images/preparation.py",
        ("data/test_folder.py",),
        ("red and blue exchanged in grey", "(0.299, 0.587, 0.114)", "(0.114, 0.587, 0.299)"),
    ),
    *mutants_of(
        "src/equicaps/images/preparation.py",
        ("images/test_preparation.py",),
        ("NaN pixels let through", "if not images.isfinite().all():", "if images.isinf().any():"),
    ),
    *mutants_of(
        "src/equicaps/images/preparation.py",
        ("images/test_road.py",),
        ("transparent parts keep their colour", "on_black_or_white(images) if", "images[:, :3] if"),
        ("channels moved by exchanging axes", "np.moveaxis(images, -1, -3)", "np.swapaxes(images, -1, -3)"),
        (
            "resized to the network's size, not to the frame",
            "resized(seen, to.frame)",
            "resized(seen, to.size)",
        ),
    ),
    *mutants_of(
        "src/equicaps/models/sizes.py",
        ("images/test_road.py",),
        (
            "floor margins instead of symmetric ones",
            "F.avg_pool2d(images - colour, (2, 1), stride=1, padding=(1, 0))",
            "F.pad(images - colour, (0, 0, 0, 1))",
        ),
    ),
    *mutants_of(
        "src/equicaps/images/rotation.py",
        ("images/test_rotation.py", "images/test_augmentation.py"),
        ("images rotated clockwise", "angle = torch.deg2rad(rest)", "angle = -torch.deg2rad(rest)"),
        ("quarter turns clockwise", "torch.rot90(x, int(k), (-2, -1))", "torch.rot90(x, -int(k), (-2, -1))"),
        (
            "quarter turns interpolated beside other angles",
            "return torch.where(exact, pad_to(turned, size, size), interpolated)",
            "return interpolated",
        ),
    ),
    *mutants_of(
        "src/equicaps/images/warp.py",
        ("images/test_augmentation.py", "data/test_regenerated.py"),
        ("shifts with y down", "[-2 / size, 2 / size]", "[-2 / size, -2 / size]"),
        (
            "width and height exchanged",
            "[[size / width], [size / height]]",
            "[[size / height], [size / width]]",
        ),
        ("bicubic values not clipped", 'warped.clamp(0, 1) if interpolation == "bicubic" else warped', "warped"),
    ),
    *mutants_of(
        "src/equicaps/images/augmentation.py",
        ("images/test_augmentation.py",),
        ("rotations in one direction only", "(2 * drawn[0] - 1) * self.rotation", "drawn[0] * self.rotation"),
        ("placement misses the last pixel", "(drawn * (room + 1)).floor()", "(drawn * room).floor()"),
        (
            "ink of the first channel only",
            "(images != background(images)).any(1",
            "(images != background(images))[:, :1].any(1",
        ),
    ),
    *mutants_of(
        "src/equicaps/images/background.py",
        ("images/test_background.py",),
        ("opposite backgrounds exchanged", 'if known == "dark" else', 'if known == "bright" else'),
        (
            "one image decides about a set",
            "(brightnesses < DARK).all()",
            "(brightnesses < DARK).any()",
        ),
        ("dark objects on black", "shown / scale < DARK_OBJECT", "shown / scale > DARK_OBJECT"),
    ),
    *mutants_of(
        "src/equicaps/models/sizes.py",
        ("images/test_background.py",),
        ("corners of the border counted twice", "images[..., 1:-1, 0]", "images[..., :, 0]"),
        ("padding with black", "F.pad(images, around), colour)", "F.pad(images, around), 0 * colour)"),
        (
            "a background that no pixel has",
            "return torch.where(least == 0, colour, torch.cat(found, 1))",
            "return colour",
        ),
        ("colours mixed from equally near pixels", "chosen = chosen & (values == found[-1])", "pass"),
        ("rounding errors choose a background", ".round().abs().sum(1", ".abs().sum(1"),
    ),
    *mutants_of(
        "src/equicaps/images/moments.py",
        ("images/test_moments.py",),
        (
            "moments about the centre of the image",
            "xx, yy, xy = xx - x * x, yy - y * y, xy - x * y",
            "xx, yy, xy = xx, yy, xy",
        ),
        (
            "differences of angles closed on the wrong side",
            "(degrees - others + period / 2) % period - period / 2",
            "period / 2 - (period / 2 - degrees + others) % period",
        ),
        ("angles of no period apart by more than half a turn", "360 if period is None", "720 if period is None"),
    ),
    *mutants_of(
        "src/equicaps/images/pictures.py",
        ("images/test_pictures.py",),
        ("pictures turned by quarters the wrong way", "_TURNS[-quarters % 4]", "_TURNS[quarters % 4]"),
        (
            "pictures rotated on instead of back",
            "return turned.rotate(-rest, Image.Resampling.BICUBIC, expand=expand, fillcolor=fill)",
            "return turned.rotate(rest, Image.Resampling.BICUBIC, expand=expand, fillcolor=fill)",
        ),
    ),
    *mutants_of(
        "src/equicaps/images/ahead.py",
        ("images/test_ahead.py",),
        ("everything read ahead", "if len(waiting) > limit:", "if False:"),
        ("large images decoded together", "self._free >= amount", "True"),
        ("waiting images decoded after the end", "pool.shutdown(cancel_futures=True)", "pool.shutdown(wait=False)"),
    ),
    *mutants_of(
        "src/equicaps/images/decode.py",
        ("data/test_folder.py",),
        (
            "orientation of the camera ignored",
            "    ImageOps.exif_transpose(picture, in_place=True)\n",
            "",
        ),
    ),
    *mutants_of(
        "src/equicaps/images/bounds.py",
        ("images/test_decode.py",),
        ("one scan too many", "_scans(file) > SCANS", "_scans(file) > SCANS + 1"),
        ("scans after the end of the image", "marker not in (None, _END)", "marker is not None"),
        ("slow decoders take large images", "return MEGAPIXELS_OF_SLOW", "return MEGAPIXELS"),
        ("WebP as large as others", "MEGAPIXELS_OF_WEBP if picture", "MEGAPIXELS if picture"),
        ("a marker on the border of two blocks", 'b"\\xff" if block.endswith(b"\\xff") else b""', 'b""'),
    ),
)
