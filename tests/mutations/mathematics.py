"""Mistakes in the mathematics: numerics, groups, functional, nn, models, metrics and testing."""

from mutations.mutant import Mutant, mutants_of

MUTANTS: tuple[Mutant, ...] = (
    *mutants_of(
        "src/equicaps/numerics.py",
        ("groups/test_so3.py", "groups/test_extremes.py", "groups/test_laws.py"),
        ("ties are left to rounding", "smooth_step((purity - TIED) / (UNTIED - TIED))", "torch.ones_like(purity)"),
        ("a projector that is none", "SQUARINGS = 11", "SQUARINGS = 6"),
        ("huge weights overflow", "weights / weights.detach().abs().amax(-1, keepdim=True).clamp(min=1)", "weights"),
        (
            "huge vectors without length",
            "= vector.detach().abs().amax(-1, keepdim=True)",
            "= 0 * vector[..., :1].detach()",
        ),
    ),
    *mutants_of(
        "src/equicaps/groups/so3.py",
        ("groups/test_so3.py", "groups/test_laws.py"),
        ("wrong composition order", "(_matrix(g) @ _matrix(h))", "(_matrix(h) @ _matrix(g))"),
        (
            "SO(3) mean leaves the group",
            "return (projector.flatten(-2) @ forms) * uniqueness.unsqueeze(-1)",
            "return S",
        ),
    ),
    *mutants_of(
        "src/equicaps/nn/group_capsules.py",
        ("nn/test_group_capsules.py",),
        (
            "votes t ∘ p instead of p ∘ t",
            "compose(poses.unsqueeze(-3), self.transforms)",
            "compose(self.transforms, poses.unsqueeze(-3))",
        ),
    ),
    *mutants_of(
        "src/equicaps/numerics.py",
        ("groups/test_laws.py", "groups/test_extremes.py", "functional/test_routing.py", "nn/test_group_capsules.py"),
        (
            "dropped 1/n in the weighted mean",
            "return weighted_sum(elements, weights) * safe_reciprocal(total, noise_floor(weights, OPPOSED_WEIGHTS))",
            "return weighted_sum(elements, weights) + 0 * total",
        ),
        ("normalisation amplifies noise", "return scaled * (torch.tanh(steepened(z)) / z)", "return scaled / z"),
        (
            "silent inputs vote",
            "return torch.tanh((activations / (FAINT_VOICE * loudest)).square())",
            "return torch.ones_like(activations) + 0 * loudest",
        ),
        (
            "singular matrices inverted to inf",
            "inverse = adjugate / adjugate_size * safe_reciprocal(condition, SINGULAR)",
            "inverse = adjugate / adjugate_size / condition",
        ),
        (
            "NaN swallowed",
            "return torch.matmul(weights.unsqueeze(-2), elements).squeeze(-2)",
            "return torch.matmul(weights.nan_to_num().unsqueeze(-2), elements.nan_to_num()).squeeze(-2)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/routing.py",
        ("functional/test_routing.py", "nn/test_group_capsules.py"),
        (
            "dropped 1/n in the agreement",
            "distance = weighted_mean(distances.unsqueeze(-1), heard)",
            "distance = (distances * heard).sum(-1, keepdim=True)",
        ),
        ("σ on the wrong argument (δ, not -δ)", "weights = sigma(-distances) * a", "weights = sigma(distances) * a"),
        (
            "mean of σ instead of σ of the mean",
            "sigma(-distance).squeeze(-1) * defined",
            "weighted_mean(sigma(-distances).unsqueeze(-1), heard).squeeze(-1) * defined",
        ),
        ("weights not multiplied by a", "weights = sigma(-distances) * a", "weights = sigma(-distances)"),
        ("one iteration too few", "for _ in range(iterations):", "for _ in range(max(iterations - 1, 0)):"),
        ("activation of undefined poses", "defined = group.presence(poses) * evidence(weights)", "defined = 1"),
        (
            "undefined poses recover in the next iteration",
            "poses = group.fade(group.mean(votes, weights), group.presence(poses))",
            "poses = group.mean(votes, weights)",
        ),
    ),
    *mutants_of(
        "src/equicaps/groups/so2.py",
        ("groups/test_so2.py", "groups/test_laws.py"),
        ("broken inverse on SO(2)", "torch.stack((x, -y), dim=-1)", "torch.stack((-x, y), dim=-1)"),
        (
            "SO(2) mean leaves the group",
            "return safe_normalize(weighted_sum(elements, weights), noise_floor(weights, self.floor))",
            "return weighted_sum(elements, weights) / (weights.sum(-1, keepdim=True) + 1e-9)",
        ),
        (
            "δ of SO(2) not left-invariant",
            "(1 - (g * h).sum(-1)) / 2",
            "(1 - (g * h).sum(-1)) / 2 + 0.1 * (g - h)[..., 0] ** 2",
        ),
        (
            "clockwise rotations",
            "torch.cat((torch.cos(algebra), torch.sin(algebra)), dim=-1)",
            "torch.cat((torch.cos(algebra), -torch.sin(algebra)), dim=-1)",
        ),
    ),
    *mutants_of(
        "src/equicaps/groups/special_euclidean.py",
        ("groups/test_special_euclidean.py", "groups/test_laws.py"),
        ("broken inverse on SE", "-self.rotations.act(back, translation)", "-translation"),
        (
            "direct instead of semidirect SE",
            "return torch.cat((rotation, self.act(g, h_translation)), dim=-1)",
            "return torch.cat((rotation, g.split(self._sizes, dim=-1)[1] + h_translation), dim=-1)",
        ),
        (
            "a fading rotation shrinks the translation",
            "weighted_mean(translations, weights)), dim=-1)",
            "weighted_mean(translations, weights) * rotation.square().sum(-1, True)), dim=-1)",
        ),
    ),
    *mutants_of(
        "src/equicaps/groups/gl.py",
        ("groups/test_gl.py", "groups/test_laws.py"),
        (
            "δ of GL not left-invariant",
            "relative = self.compose(self.inverse(g), h)",
            "relative = h - g + self.identity(dtype=g.dtype, device=g.device)",
        ),
    ),
    *mutants_of(
        "src/equicaps/groups/scale.py",
        ("groups/test_scale.py", "groups/test_laws.py"),
        ("δ of Scale not left-invariant", "(self.log(g) - self.log(h)).abs().squeeze(-1)", "(g - h).abs().squeeze(-1)"),
        (
            "arithmetic instead of geometric mean",
            "torch.exp(weighted_mean(self.log(elements), present))",
            "weighted_mean(elements, present)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/sigma.py",
        ("functional/test_routing.py",),
        ("softmax over inputs", "torch.softmax(self.alpha * x, dim=-2)", "torch.softmax(self.alpha * x, dim=-1)"),
        ("β dropped from the sigmoid", "self.alpha * x + self.beta", "self.alpha * x"),
    ),
    *mutants_of(
        "src/equicaps/groups/se2.py",
        ("groups/test_special_euclidean.py", "groups/test_laws.py"),
        ("SE(2) exponential without arc", "velocity) * _sinc(angle / 2)", "velocity)"),
    ),
    *mutants_of(
        "src/equicaps/groups/product.py",
        ("groups/test_product.py", "groups/test_laws.py"),
        ("product weights ignored", "weight * factor.distance(p, q)", "factor.distance(p, q)"),
    ),
    *mutants_of(
        "src/equicaps/groups/karcher.py",
        ("groups/test_karcher.py", "groups/test_laws.py"),
        (
            "Karcher step from the wrong side",
            "mean = group.compose(mean, group.exp(weighted_mean(tangents, weights)))",
            "mean = group.compose(group.exp(weighted_mean(tangents, weights)), mean)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/window_routing.py",
        ("functional/test_window_routing.py", "nn/test_spatial_capsules.py"),
        (
            "votes t ∘ p instead of p ∘ t in windows",
            "group.compose(inputs.unsqueeze(3), t)",
            "group.compose(t, inputs.unsqueeze(3))",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/alignment.py",
        ("functional/test_alignment.py", "nn/test_spatial_capsules.py"),
        (
            "positions not aligned with the mean pose",
            "return group.act(group.inverse(mean).unsqueeze(-2), positions)",
            "return positions.expand(*mean.shape[:-1], *positions.shape)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/image_poses.py",
        ("functional/test_image_poses.py",),
        ("gradient with y down", "y = -_smooth(", "y = _smooth("),
    ),
    *mutants_of(
        "src/equicaps/functional/moment_routing.py",
        ("functional/test_moment_routing.py",),
        ("S_2 without its factor 2", "torch.cat((xx - yy, 2 * xy), dim=-1)", "torch.cat((xx - yy, xy), dim=-1)"),
        (
            "S_0 counts undefined votes",
            "zeroth = torch.cat((xx - yy, 2 * xy), dim=-1), xx + yy",
            "zeroth = torch.cat((xx - yy, 2 * xy), dim=-1), a.sum(-2, keepdim=True).expand_as(xx)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/sparse_convolution.py",
        ("functional/test_sparse_convolution.py",),
        (
            "harmonic kernel turned the wrong way",
            "out = out + x * responses[2 * order - 1] + y * responses[2 * order]",
            "out = out + x * responses[2 * order - 1] - y * responses[2 * order]",
        ),
        ("spline window turned the wrong way", "spline_basis(px * y - py * x,", "spline_basis(px * y + py * x,"),
    ),
    *mutants_of(
        "src/equicaps/functional/steerable.py",
        ("functional/test_steerable.py", "nn/test_steerable_capsules.py"),
        (
            "steerable phase of the wrong frequency",
            "phase = torch.polar(profile, (m - n) * angle)",
            "phase = torch.polar(profile, (m + n) * angle)",
        ),
        (
            "complex weights although mirroring is ignored",
            'for kappa in (1,) if mirror == "ignore" else (1, 1j):',
            "for kappa in (1, 1j):",
        ),
        (
            "imaginary weights where mirroring is ignored",
            'for kappa in (1,) if mirror == "ignore" else (1, 1j):',
            'for kappa in (1j,) if mirror == "ignore" else (1, 1j):',
        ),
        ("low-pass filter off centre", "torch.tensor([1.0, 3.0, 3.0, 1.0]", "torch.tensor([0.0, 4.0, 3.0, 1.0]"),
    ),
    *mutants_of(
        "src/equicaps/nn/steerable_capsules.py",
        ("nn/test_steerable_capsules.py", "models/test_network.py"),
        ("features survive an undefined pose", "features * _presence(at) if self.needs_pose else features", "features"),
        (
            "agreement not relative to the votes' strength",
            "length * safe_reciprocal(total, NO_EVIDENCE)",
            "length * 0.1 + 0 * total",
        ),
    ),
    *mutants_of(
        "src/equicaps/models/steerable.py",
        ("models/test_network.py", "models/test_symmetric_shapes.py"),
        (
            "what half a turn does not change loses its class",
            "needs_pose=number < len(config.blocks)",
            "needs_pose=True",
        ),
        (
            "mean pose of the image not weighted by the features",
            "weighted = (poses * activations.unsqueeze(-1)).mean((2, 3), keepdim=True)",
            "weighted = poses.mean((2, 3), keepdim=True)",
        ),
    ),
    *mutants_of(
        "src/equicaps/models/steerable.py",
        ("models/test_mirror_images.py",),
        (
            "classes that distinguish mirror images",
            "needs_pose=False, mirror=config.mirror",
            "needs_pose=False",
        ),
    ),
    *mutants_of(
        "src/equicaps/models/network.py",
        ("models/test_mirror_images.py",),
        ("wider layers that distinguish mirror images", '{"mirror": mirror, "blocks": WIDER}', '{"blocks": WIDER}'),
    ),
    *mutants_of(
        "src/equicaps/functional/planar_sweep.py",
        ("functional/test_planar_sweep.py", "functional/test_planar_routing.py"),
        (
            "planar routing: blocks summed in reading order",
            "(first + fourth) + (second + third)",
            "first + second + third + fourth",
        ),
        ("planar routing: wrong derivative of the sigmoid", "slope = dw.sub_(gated).mul_(w)", "slope = dw.mul_(w)"),
        (
            "planar routing: the fade has no gradient",
            "self.value * (4 * d_presence * (1 - self.value.square().sum(0)))",
            "0 * d_presence",
        ),
    ),
    *mutants_of(
        "src/equicaps/metrics.py",
        ("test_metrics.py",),
        (
            "exactness looks at one quarter turn only",
            "            yield still, function(move_grid(x, quarters, mirrored=mirrored)), quarters",
            "            yield still, function(move_grid(x, 0, mirrored=mirrored)), 0",
        ),
        ("poses mirrored top to bottom", "poses.new_tensor([-1.0, 1.0])", "poses.new_tensor([1.0, -1.0])"),
        ("nothing mirrored", "maps.flip(3) if mirrored else maps", "maps"),
    ),
    *mutants_of(
        "src/equicaps/functional/spline.py",
        ("functional/test_spline.py",),
        ("spline without its second knot", "3: ((2.0, 1 / 6), (1.0, -4 / 6))", "3: ((2.0, 1 / 6), (1.0, -3 / 6))"),
    ),
    *mutants_of(
        "src/equicaps/models/paper.py",
        ("models/test_network.py::test_the_papers_features_are_weighted_by_the_agreement_of_every_layer",),
        (
            "the paper's features not weighted by agreement",
            "found = convolution(features, *capsules[number])",
            "found = convolution(features, capsules[number].poses)",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/fused_routing.c",
        ("functional/test_window_routing.py",),
        ("kernel: blocks summed in reading order", "(a[0] + a[3]) + (a[1] + a[2])", "a[0] + a[1] + a[2] + a[3]"),
        (
            "kernel: votes turned the wrong way",
            "vec vx = LOAD(px + at) * tx - LOAD(py + at) * ty, vy = LOAD(px + at) * ty + LOAD(py + at) * tx;",
            "vec vx = LOAD(px + at) * tx + LOAD(py + at) * ty, vy = LOAD(px + at) * ty - LOAD(py + at) * tx;",
        ),
        (
            "kernel: wrong derivative of the sigmoid",
            "(dw - gate * dw) * (LOAD(a + at) * gate)",
            "dw * LOAD(a + at) * gate",
        ),
        ("kernel: a living position skipped", "alive |= 1 << k;", "alive |= 1 << (k & 2);"),
        (
            "kernel: gradients of silent positions left as they were",
            "STORE(r0 + i * width, ALL(0)); STORE(r0 + half + i * width, ALL(0));",
            "",
        ),
        ("sums of sigma in float32", "*sum += value[i];", "*sum = (float)(*sum + value[i]);"),
    ),
    *mutants_of(
        "src/equicaps/functional/fused_splines.c",
        ("functional/test_fused_splines.py",),
        (
            "spline kernel: window turned the wrong way",
            "(px * ALL(l->y[u]) - py * ALL(l->x[u]))",
            "(px * ALL(l->y[u]) + py * ALL(l->x[u]))",
        ),
        ("spline kernel: control points turned the wrong way", "at[t][1] = turned;", "at[t][1] = -turned;"),
        (
            "spline kernel: positions summed in order",
            "(sum[0] + sum[2]) + (sum[1] + sum[3])",
            "sum[0] + sum[1] + sum[2] + sum[3]",
        ),
        ("spline kernel: a slope at control points", "(fraction > ALL(0)) & (fraction < ALL(1))", "fraction < ALL(9)"),
        (
            "spline kernel: few channels summed in order",
            "r[t] += opposite + beside;",
            "r[t] += opposite; r[t] += beside * 1.001f;",
        ),
        ("spline kernel: NaN becomes a number", " + (z - z); /*", "; /*"),
        (
            "spline kernel: the centre left out of the backward pass",
            "STORE(d_points + i, fma_(ALL(g), LOAD(f + i), LOAD(d_points + i)));",
            "",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/planes.py",
        ("functional/test_planes.py",),
        ("pixels seen twice keep one gradient", "if once else zeros.index_add_", "if True else zeros.index_add_"),
        ("windows in the wrong places", "torch.argsort(kinds, stable=True)", "torch.arange(len(kinds)).flip(0)"),
    ),
    *mutants_of(
        "src/equicaps/nn/trainable_sigma.py",
        ("nn/test_spatial_capsules.py",),
        (
            "calibration off centre",
            "beta.fill_(spread / deviation.item() * distances.mean().item())",
            "beta.fill_(spread / deviation.item())",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/steering.py",
        ("functional/test_steering.py", "nn/test_steered_capsules.py"),
        ("left-handed frames", "e1[1] * e2[2] - e1[2] * e2[1]", "e1[2] * e2[1] - e1[1] * e2[2]"),
        (
            "second column not orthogonal",
            "torch.addcmul(b, along, e, value=-1)",
            "torch.addcmul(b, along, e, value=-0.5)",
        ),
        (
            "frames transposed",
            "column[d] for d in range(3) for column in frame",
            "plane for column in frame for plane in column",
        ),
    ),
    *mutants_of(
        "src/equicaps/functional/point_choice.py",
        ("functional/test_point_choice.py",),
        ("choice without fading", "smooth_step((best[:, :count] - cut) / rim)", "torch.ones_like(best[:, :count])"),
        ("padding chosen", "scores = weights * (1", "scores = (1"),
    ),
    *mutants_of(
        "src/equicaps/functional/compiled.py",
        ("functional/test_compiled.py",),
        ("libraries are not checked", "return content[-_SEAL:] == _seal(content[:-_SEAL], key)", "return True"),
        ("mode by the umask", "built.chmod(0o700)", "built.chmod(0o775)"),
    ),
    *mutants_of(
        "src/equicaps/functional/local_moments.c",
        ("functional/test_local_moments.py",),
        ("neighbours skipped", "if (!any_(g > zero)) continue;", "if (!any_(g > zero * j)) break;"),
        ("wrong binomials", "{1, 5, 10, 10, 5}", "{1, 5, 10, 5, 5}"),
    ),
    *mutants_of(
        "src/equicaps/functional/point_moments.py",
        ("functional/test_point_moments.py",),
        ("moments not shifted", "moment - place * zeroth for", "moment for"),
        (
            "rows of poses taken for columns",
            "planes.unflatten(0, (3, 3)).transpose(1, 2)",
            "planes.unflatten(0, (3, 3)).transpose(0, 1).transpose(1, 2)",
        ),
    ),
    *mutants_of(
        "src/equicaps/models/sizes.py",
        ("images/test_road.py", "models/test_network.py"),
        (
            "padding on one side only",
            "around = (horizontal, horizontal, vertical, vertical)",
            "around = (2 * horizontal, 0, 2 * vertical, 0)",
        ),
    ),
    *mutants_of(
        "src/equicaps/testing/check.py",
        ("testing/test_layers.py", "groups/test_laws.py"),
        ("law checker accepts everything", "if not report.ok:", "if False:"),
    ),
    *mutants_of(
        "src/equicaps/testing/comparison.py",
        ("testing/test_layers.py", "groups/test_laws.py"),
        ("errors measured on the wrong side", "(actual - expected).abs().max()", "(actual - actual).abs().max()"),
    ),
)
