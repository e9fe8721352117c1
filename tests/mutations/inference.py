"""Mistakes in predictions, model files, audits and exports."""

from mutations.mutant import mutants_of

COMPARISONS = tuple(
    f"inference/test_exported_programs.py::{test}"
    for test in (
        "test_every_image_is_compared",
        "test_nan_is_rejected",
        "test_changed_labels_are_counted",
        "test_programs_are_compared_on_rotated_images",
        "test_the_rounding_of_the_network_is_allowed_three_times",
    )
)
"""Without the export of a whole network, which takes minutes."""

MUTANTS = (
    *mutants_of(
        "src/equicaps/inference/model_files.py",
        ("inference/test_model_files.py",),
        ("weights of NaN loaded", "if not tensor.to(wanted.dtype).isfinite().all():", "if False:"),
        ("weights of any shape", "if tensor.shape != wanted.shape or", "if False or"),
        ("images of any size", "if architecture.image_size > LARGEST_SIDE:", "if False:"),
        ("networks built before they are checked", 'with torch.device("meta"):', 'with torch.device("cpu"):'),
    ),
    *mutants_of(
        "src/equicaps/inference/model.py",
        (
            "inference/test_model.py::test_what_is_not_finite_is_no_answer",
            "inference/test_model.py::test_every_part_of_an_answer_must_be_finite",
        ),
        ("answers that are not finite", "check_finite(output)\n        layers", "layers"),
        ("poses that are not finite", "for values in output[:3]", "for values in output[:2]"),
    ),
    *mutants_of(
        "src/equicaps/inference/rotation_error.py",
        ("inference/test_rotation_error.py",),
        ("rotations compared with upright always", "if upright:", "if True:"),
        (
            "rotations of different classes compared",
            "torch.where(same[:, None, None], other.rotations, torch.nan)",
            "other.rotations",
        ),
        ("one error for all classes", "conformal_quantile(own) if 2 * len(own) >= FEWEST else overall", "overall"),
        ("errors of rotations from few shapes", "if len(off) < FEWEST:", "if len(off) < 1:"),
    ),
    *mutants_of(
        "src/equicaps/inference/symmetry.py",
        ("inference/test_symmetry.py",),
        (
            "angles of a symmetric class not divided by its order",
            "torch.rad2deg(seen.angle()) / one.order",
            "torch.rad2deg(seen.angle())",
        ),
        ("moments that a symmetry forbids are allowed", "forbidden < BROKEN * signal[order]", "forbidden < 1e9"),
        ("the zero of a symmetric class is arbitrary", "if mean.abs() > AGREED else", "if mean.abs() > 2 else"),
        ("moments that do not follow a rotation count", "follows[order] > FOLLOWS and", "True and"),
        ("a pose that follows noise makes a class not round", "if strongest < NOTHING or (", "if ("),
        ("moments that rotate only as fast as the image", ".to(output.poses) * orders)", ".to(output.poses))"),
        ("errors of moments are those of angles", "errors[counted] / orders[counted]", "errors[counted]"),
        ("round classes have errors", "counted = orders > 0", "counted = orders >= 0"),
    ),
    *mutants_of(
        "src/equicaps/inference/angle_error.py",
        ("inference/test_angle_error.py",),
        ("errors of half the angles", "COVERAGE = 0.9", "COVERAGE = 0.5"),
        ("evidence makes errors larger", "[labels] / evidence.clamp(min=FAINTEST)", "[labels] * evidence"),
        ("the period of a symmetric class forgotten", "before + degrees, rotated.period)", "before + degrees)"),
        ("images without a pose count", "if int((~from_rotation.isnan()).sum()) < views * FEWEST:", "if False:"),
        (
            "known angles are no truth",
            "errors = torch.where(known[labels], from_truth, from_rotation)",
            "errors = from_rotation",
        ),
        (
            "classes with a few known angles measured from these",
            "2 * labels[seen].bincount(minlength=classes) >= FEWEST",
            "labels[seen].bincount(minlength=classes) > 0",
        ),
        ("known angles of other digits", "~from_truth.isnan() & (predicted == labels)", "~from_truth.isnan()"),
        (
            "known angles must have a pose in every view",
            "(predicted == labels)).any(0)",
            "(predicted == labels)).all(0)",
        ),
        (
            "coverage of known angles, whatever errors mean",
            "off = torch.where(known, from_truth, from_rotation)",
            "off = torch.where(from_truth.isnan(), from_rotation, from_truth)",
        ),
        (
            "coverage by rotation, whatever errors mean",
            "off = torch.where(known, from_truth, from_rotation)",
            "off = from_rotation",
        ),
    ),
    *mutants_of(
        "src/equicaps/inference/audit.py",
        (
            "inference/test_audit.py::test_a_network_that_ignores_mirroring_is_certified_to_do_so",
            "inference/test_audit.py::test_a_network_that_only_claims_to_ignore_mirroring_fails",
        ),
        ("audit mirrors nothing", "both, mirrored=True", "both"),
        ("audit forgives what mirroring changes", "if self.exact_mirrored else []", "if False else []"),
    ),
    *mutants_of(
        "src/equicaps/inference/audit.py",
        ("inference/test_audit.py",),
        ("audit accepts the limit and NaN", "if not value < ALLOWED:", "if value > ALLOWED:"),
        ("audit accepts NaN in layers", "if not value < ALLOWED_IN_LAYERS", "if value >= ALLOWED_IN_LAYERS"),
        (
            "audit in training mode",
            'with eval_mode(model):\n        announce("quarter turns")',
            'if True:\n        announce("quarter turns")',
        ),
        ("audit of upright images only", "both = torch.cat((still, turned))", "both = still"),
        ("audit's accuracy of images that are not rotated", "accuracy(turned, labels)", "accuracy(still, labels)"),
        (
            "audit's pose error with the wrong sign",
            "true_poses(turned, labels), angle * order)",
            "true_poses(turned, labels), -angle * order)",
        ),
        (
            "capsules rotated without their poses",
            "Capsules(SO2().compose(g, poses), activations)",
            "Capsules(poses, activations)",
        ),
    ),
    *mutants_of(
        "src/equicaps/inference/export.py",
        COMPARISONS,
        (
            "comparison accepts NaN",
            "close = [value <= max(",
            "close = [not value > max(",
        ),
        (
            "NaN passes for no difference",
            "torch.stack(differences).amax(0)",
            "torch.stack(differences).nan_to_num().amax(0)",
        ),
        ("changed labels of the first batch not counted", "if number >= repeated:", "if number > repeated:"),
        ("only the first batch compared", "*images.split(batch)]", "*images.split(batch)[:1]]"),
        (
            "export compared on upright images",
            "return rotate(ready, 360 * torch.rand(len(ready), generator=generator))",
            "return ready",
        ),
        (
            "rounding of the network allowed many times",
            "max(ALLOWED, ROUNDINGS * own)",
            "max(ALLOWED, 10 * ROUNDINGS * own)",
        ),
    ),
    *mutants_of(
        "src/equicaps/inference/model_files.py",
        ("inference/test_model_files.py", "inference/test_module.py", "inference/test_model.py"),
        ("all weights in half precision", 'if key.startswith("decoder.")', "if value.is_floating_point()"),
        ("a network read in training mode", "return network.eval(), content", "return network.train(), content"),
        ("more classes than the network has", "if count != network.body", "if count < network.body"),
        ("every training named model", "if path.name == MODEL else path.stem", "if not path.name else path.stem"),
    ),
    *mutants_of(
        "src/equicaps/_tensor_files.py",
        ("test_tensor_files.py",),
        ("checksum of a model not compared", 'header["checksum"] == _checksum(header, tensors)', "True"),
    ),
    *mutants_of(
        "src/equicaps/inference/model.py",
        ("inference/test_model.py", "inference/test_module.py"),
        ("angles closed on the wrong side", "180 - (180 - degrees) % 360", "(degrees + 180) % 360 - 180"),
        ("zero angles added", ".squeeze(-1)) - zeros", ".squeeze(-1)) + zeros"),
        ("confidence over the batch", "torch.softmax(output.scores, dim=-1)", "torch.softmax(output.scores, dim=0)"),
        (
            "half of the batches dropped",
            "for part in ready.split(batch_size)]",
            "for part in ready.split(batch_size)[::2]]",
        ),
        ("predictions in training mode", "with eval_mode(self):", "if True:"),
        ("mode not restored", "part.training = True", "pass"),
        ("angles without a pose", "SO2().presence(poses) > 0.5", "SO2().presence(poses) >= 0"),
        ("rotated on instead of upright", "-angles.to(originals)", "angles.to(originals)"),
    ),
    *mutants_of(
        "src/equicaps/inference/model_files.py",
        ("inference/test_model_files.py::test_weights_that_only_float64_can_hold_are_refused_by_name",),
        ("finite before they are converted", "tensor.to(wanted.dtype).isfinite()", "tensor.isfinite()"),
    ),
    *mutants_of(
        "src/equicaps/inference/export.py",
        ("inference/test_exported_programs.py",),
        ("infinite rounding excuses everything", "and finite and all(close)", "and all(close)"),
    ),
    *mutants_of(
        "src/equicaps/inference/parts.py",
        (
            "inference/test_to_file.py::test_what_differs_from_the_parts_is_said_and_replaced_only_on_demand",
            "inference/test_to_file.py::test_a_part_is_finished_after_some_time",
            "inference/test_to_file.py::test_killed_at_any_moment_it_continues_to_the_same_bytes_and_computes_nothing_twice",
        ),
        ("parts end within a batch", "if late and len(self._lines) % BATCH == 0:", "if late:"),
        ("other images continue old parts", "if lines[0] != lines[1]:", "if False:"),
        ("finished parts computed again", "itertools.islice(file, self.done, None)", "itertools.islice(file, 0, None)"),
        (
            "manifest removed after the parts",
            '(self.folder / MANIFEST, *self.folder.glob("*.jsonl"), ',
            '(*self.folder.glob("*.jsonl"), self.folder / MANIFEST, ',
        ),
    ),
    *mutants_of(
        "src/equicaps/inference/rows.py",
        ("inference/test_rows.py",),
        ("undecodable names lose characters", '"backslashreplace"', '"ignore"'),
        ("numbers that are not finite written", "not math.isfinite(value)", "False"),
    ),
    *mutants_of(
        "src/equicaps/inference/canonicalizer.py",
        ("inference/test_canonicalizer.py",),
        ("the user's own model frozen", "copy.deepcopy(model).requires_grad_(False)", "model.requires_grad_(False)"),
        ("model of the canonicalizer trained along", "        self.model.eval()", "        self.model.train(mode)"),
        (
            "maps rotated on instead of back",
            "return rotate_maps(answer, angles)",
            "return rotate_maps(answer, -angles)",
        ),
        (
            "vectors mirrored",
            "cosine * x - sine * y, sine * x + cosine * y",
            "cosine * x + sine * y, sine * x - cosine * y",
        ),
    ),
    *mutants_of(
        "src/equicaps/inference/card.py",
        ("inference/test_model_files.py",),
        ("zero angles that are NaN", "math.isfinite(zero)", "not math.isinf(zero)"),
    ),
)
