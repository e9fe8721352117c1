"""Mistakes in the schedule, the batches, the steps and the evaluation of a training."""

from mutations.mutant import mutants_of

MUTANTS = (
    *mutants_of(
        "src/equicaps/training/fingerprint.py",
        ("training/test_resume.py",),
        ("other images not noticed", "[_checksum(content) for", "[_checksum(content[:8]) for"),
        ("another order not noticed", '"order": _checksum("".join(each)', '"order": _checksum("".join(sorted(each))'),
        ("other labels not noticed", "data.labels.long().cpu().numpy().tobytes()", "b''"),
    ),
    *mutants_of(
        "src/equicaps/training/log.py",
        ("training/test_resume.py",),
        ("logs read from a pipe", "check_regular(path)\n        kept", "kept"),
        ("a damaged log ends the training", "(ValueError, KeyError, csv.Error)", "ZeroDivisionError"),
    ),
    *mutants_of(
        "src/equicaps/training/schedule.py",
        ("training/test_schedule.py",),
        ("steps of the rate one step late", "step >= fraction * steps", "step > fraction * steps"),
        ("one cycle that ends a step too late", "last = steps - 1", "last = steps"),
        (
            "momentum rising with the rate",
            "_cosine(MOMENTUM_HIGH, MOMENTUM_LOW, rise)",
            "_cosine(MOMENTUM_LOW, MOMENTUM_HIGH, rise)",
        ),
    ),
    *mutants_of(
        "src/equicaps/training/sampler.py",
        ("training/test_sampler.py",),
        ("one order for all epochs", "generator(self.seed, _ORDER, epoch)", "generator(self.seed, _ORDER, 0)"),
        ("one augmentation for all steps", "_AUGMENTATION, step)", "_AUGMENTATION, 0)"),
        ("seed of the augmentation ignored", "generator(self.seed, _AUGMENTATION", "generator(0, _AUGMENTATION"),
        (
            "views of an image in different processes",
            "torch.cat([half.chunk(size)[rank] for half in entry.chunk(views)])",
            "entry.chunk(size)[rank]",
        ),
        ("a batch that ends with the epoch", "while position < start + self.images:", "for _ in range(1):"),
    ),
    *mutants_of(
        "src/equicaps/training/trainer.py",
        ("training/test_trainer.py", "training/test_loop.py"),
        ("decay of the average inverted", "value.lerp_(ahead[name], 1 - decay)", "value.lerp_(ahead[name], decay)"),
        ("a loss of NaN let through", "if not math.isfinite(mean[0]):", "if math.isinf(mean[0]):"),
        ("gradients of earlier steps kept", "self.optimizer.zero_grad(set_to_none=True)", "pass"),
        (
            "margin one step behind",
            "(self.course.position(self.step) + 1) / self.course.planned",
            "self.course.position(self.step) / self.course.planned",
        ),
        (
            "rate of the next step",
            "pace(optimiser, place, planned)",
            "pace(optimiser, place + 1, planned)",
        ),
        ("weight decay ignored", "weight_decay=optimiser.weight_decay", "weight_decay=0.0"),
        ("forgotten train mode", "network.to(world.device).train()", "network.to(world.device).eval()"),
        ("gradients clipped after the step", "if optimiser.clip is not None:", "if False:"),
    ),
    *mutants_of(
        "src/equicaps/training/trainer.py",
        ("training/test_plan.py",),
        (
            "a resumed training that forgets that it was shortened",
            'Course(planned, numbers.get("shortened_after"))',
            "Course(planned)",
        ),
        ("a plan without regard to the time", "more = min(more, math.ceil(", "more = max(0, math.ceil("),
        ("a plan that counts repeated images", "steps * batch / data.different", "steps * batch / len(data)"),
        ("a plan too short for frequent classes", "enough_views(len(data))", "enough_views(data.different)"),
    ),
    *mutants_of(
        "src/equicaps/training/plan.py",
        ("training/test_plan.py",),
        (
            "a shortened schedule that does not reach its end",
            "return self.planned - 1 - (",
            "return self.planned - 2 - (",
        ),
        ("shortened as soon as one evaluation is worse", "PATIENCE = 1 / 3", "PATIENCE = 1 / 100"),
        ("longer helps although it was shortened", "rising and not shortened and", "rising and"),
    ),
    *mutants_of(
        "src/equicaps/training/evaluation.py",
        ("training/test_setup.py::test_a_training_looks_at_the_test_images_exactly_once",),
        (
            "test images looked at on the way",
            "return self.validation(network, limit)",
            "return self.test(network, limit)",
        ),
    ),
    *mutants_of(
        "src/equicaps/metrics.py",
        ("training/test_evaluation.py",),
        ("confusion with answers in rows", "(labels * classes + predictions)", "(predictions * classes + labels)"),
    ),
    *mutants_of(
        "src/equicaps/training/loop.py",
        ("training/test_loop.py", "test_files.py"),
        ("evaluated in training mode", "        trainer.best.eval()\n        try:", "        try:"),
        ("trained on in eval mode after an evaluation", "            trainer.best.train(mode)", "            pass"),
        (
            "weights evaluated that are not averaged",
            "self.evaluation(trainer.best, limit)",
            "self.evaluation(trainer.network, limit)",
        ),
        ("evaluations one step late", "> (step - 1) * count // steps", ">= (step - 1) * count // steps"),
        (
            "weights exported that are not averaged",
            "network = trainer.best.eval()",
            "network = trainer.network.eval()",
        ),
        (
            "lock of the folder not taken",
            "self.resources.enter_context(lock_folder(self.folder, wait=False))",
            "pass",
        ),
    ),
    *mutants_of(
        "src/equicaps/training/checkpoint.py",
        ("test_tensor_files.py", "training/test_resume.py"),
        ("no checkpoint kept before the last", ", keep=folder / PREVIOUS)", ")"),
    ),
    *mutants_of(
        "src/equicaps/training/recipe.py",
        ("training/test_resume.py",),
        ("resumed with another augmentation", "describe_augmentation(augmentation)}", '""}'),
    ),
    *mutants_of(
        "src/equicaps/training/evaluation.py",
        ("training/test_evaluation.py",),
        ("true angles of symmetric classes not taken modulo", "(degrees + truth) * order)", "degrees + truth)"),
        ("the zero of a pose for a symmetric class", "torch.where(orders == 1, zeros, 0.0)", "zeros"),
        ("pose errors with the wrong sign", "true_poses(rotated, y), turn)", "true_poses(rotated, y), -turn)"),
        ("seed of the evaluation ignored", "torch.Generator().manual_seed(seed)", "torch.Generator().manual_seed(0)"),
        (
            "small batches count as much as large ones",
            "(torch.tensor(outputs, dtype=torch.float64) * sizes[:, None]).sum(0) / sizes.sum()",
            "torch.tensor(outputs, dtype=torch.float64).mean(0)",
        ),
        (
            "accuracy of images that are not rotated",
            "outputs.append(accuracy(rotated, y))",
            "outputs.append(accuracy(upright, y))",
        ),
        (
            "half of the images not evaluated",
            "for part in data.images.split(self.batch)]",
            "for part in data.images.split(self.batch)[:1]]",
        ),
    ),
    *mutants_of(
        "src/equicaps/training/zeros.py",
        ("training/test_known_angles.py", "training/test_evaluation.py"),
        ("symmetries looked for in copies", "data.once().some_of_each(", "data.some_of_each("),
        ("zeros from copies", "data.take(places).once()", "data.take(places)"),
    ),
    *mutants_of(
        "src/equicaps/training/sampler.py",
        ("training/test_known_angles.py",),
        ("known angles without the rotation of the view", "[chosen].to(degrees) + degrees", "[chosen].to(degrees)"),
    ),
    *mutants_of(
        "src/equicaps/training/trainer.py",
        ("training/test_known_angles.py",),
        (
            "known angles averaged over a part",
            "share = max(whole.known, LEAST_SHARE)",
            "share = max(batch.known, LEAST_SHARE)",
        ),
        ("a single known angle outweighs the batch", "share = max(whole.known, LEAST_SHARE)", "share = whole.known"),
        ("symmetric objects must point sideways", '"ignore": 90.0}', '"ignore": 0.0}'),
    ),
    *mutants_of(
        "src/equicaps/metrics.py",
        ("inference/test_model.py", "training/test_known_angles.py"),
        ("zeros rotated the wrong way", "group.exp(-torch.deg2rad(angles", "group.exp(torch.deg2rad(angles"),
        (
            "zeros also from unknown angles",
            "everything[mine & known if known[mine].any() else mine]",
            "everything[mine]",
        ),
    ),
    *mutants_of(
        "src/equicaps/training/config.py",
        ("training/test_config.py",),
        (
            "epochs counted in views",
            "math.ceil(self.budget.epochs * images / self.images_per_step)",
            "math.ceil(self.budget.epochs * images / self.batch)",
        ),
    ),
    *mutants_of(
        "src/equicaps/training/setup.py",
        ("training/test_setup.py",),
        (
            "test split used for training",
            "training, held_out = load_training_splits",
            "held_out, training = load_training_splits",
        ),
        ("evaluated on the training images", "AnyAngle(held_out, side,", "AnyAngle(training, side,"),
        ("single views rotated", "180.0 if config.views == 2 else 0.0", "180.0"),
        ("symmetric classes unknown to the last evaluation", ", symmetries_from=training)", ")"),
    ),
    *mutants_of(
        "src/equicaps/training/distributed.py",
        ("training/test_distributed.py",),
        ("gradients added instead of averaged", "(shared / self.size).split(sizes)", "shared.split(sizes)"),
    ),
    *mutants_of(
        "src/equicaps/_files.py",
        ("test_files.py",),
        ("a lock that locks nothing", "        lock.acquire()", "        pass"),
    ),
    *mutants_of(
        "src/equicaps/_files.py",
        ("data/test_locate.py",),
        ("a lock that nobody waits for", "timeout=-1 if wait else 0", "timeout=0"),
    ),
)
