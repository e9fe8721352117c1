"""What the page shows of one capsule network."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import embedded_digits
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.inference import Answer, PoseModel
from equicaps.models import CapsOutput, PaperNet
from equicaps.numerics import NO_EVIDENCE, at_least
from equicaps.serve.messages import AboutModel, Layer
from equicaps.serve.pictures import to_bytes


class ShownModel:
    """A model whose answer, layers and reconstruction the page shows.

    On a grid of several positions it shows one capsule of a layer: the one that is most active on some digits.
    """

    def __init__(self, model: PoseModel) -> None:
        self.model = model
        with torch.inference_mode():
            layers = model.network.capsules(model.prepare(embedded_digits("test").images[:10]))
        self._most_active = [int(layer.activations.sum((0, -2, -1)).argmax()) for layer in layers]

    def about(self) -> AboutModel:
        """A summary of the model."""
        network, card = self.model.network, self.model.card
        return AboutModel(
            name=card.name,
            task=card.task,
            label="the paper's network" if isinstance(network.body, PaperNet) else "our network (steerable)",
            layers=len(self._most_active),
            reconstruction_side=network.image_size if network.decoder else None,
        )

    def explain(
        self, images: Float[Tensor, "n channels side side"], pose_degrees: Float[Tensor, " n"]
    ) -> list[tuple[Answer, list[Layer], list[int] | None]]:
        """Of each image the answer, the poses of every layer, and the reconstruction after all poses are rotated."""
        output, layers = self.model.network.explain(self.model.prepare(images))
        answers = self.model.interpret(output, layers)
        arrows = [_arrows(layer, shown) for layer, shown in zip(layers, self._most_active, strict=True)]
        drawn = self._reconstruct(output, pose_degrees)
        return [(answer, [layer[k] for layer in arrows], drawn[k]) for k, answer in enumerate(answers)]

    def _reconstruct(self, output: CapsOutput, degrees: Float[Tensor, " n"]) -> list[list[int]] | list[None]:
        """What the decoder draws when all poses of an image are rotated by its number of ``degrees``."""
        decoder = self.model.network.decoder
        if decoder is None:
            return [None] * len(degrees)
        g = SO2().exp(torch.deg2rad(degrees)[:, None, None])
        return [to_bytes(image) for image in decoder(output._replace(poses=SO2().compose(g, output.poses)))]


def _arrows(layer: Capsules, shown: int) -> list[Layer]:
    capsules, side = layer.activations.shape[1:3]
    chosen = slice(shown, shown + 1) if side > 1 else slice(None)
    poses, activations = layer.poses[:, chosen].flatten(1, 3), layer.activations[:, chosen].flatten(1)
    defined = SO2().presence(poses) > 0.5
    longest = at_least(activations.amax(1, keepdim=True), NO_EVIDENCE)
    lengths = activations.clamp(min=0) * defined / longest
    arrows = torch.nn.functional.normalize(poses, dim=-1) * lengths.unsqueeze(-1)
    name = shown if side > 1 else None
    return [Layer(side, capsules, name, [(round(x, 3), round(y, 3)) for x, y in each]) for each in arrows.tolist()]
