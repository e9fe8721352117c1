"""The first layer of an image network."""

from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_floating
from equicaps.functional import Capsules
from equicaps.functional.image_poses import GradientMethod, gradient_taps, image_poses


class ImagePoses(nn.Module):
    """Poses and activations of SO(2) capsules from image gradients (Section 6.1); without parameters.

    When the image is rotated by a quarter turn, the grid and the poses rotate with it, to the bit. Other angles
    resample the image; there ``"gaussian"`` is closer to isotropic.

    Args:
        method: ``"sobel"`` (paper) or ``"gaussian"``, the derivative of a Gaussian.
        sigma: the standard deviation of the Gaussian in pixels; Sobel's operator does not use it.
    """

    def __init__(self, method: GradientMethod = "sobel", sigma: float = 1.0) -> None:
        super().__init__()
        self.taps = gradient_taps(method, sigma)
        self.method: GradientMethod = method
        self.sigma = sigma

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Capsules:
        """One capsule for every pixel of every channel."""
        check_floating("ImagePoses", "images", images)
        if images.ndim != 4 or 0 in images.shape[1:]:
            raise ValueError(
                "ImagePoses: `images` must have shape (batch, channels, height, width) with a channel and a pixel at "
                f"least, but has shape {tuple(images.shape)}."
            )
        return image_poses(images, self.taps)

    def extra_repr(self) -> str:
        """The method and, for a Gaussian, its width."""
        return repr(self.method) if self.method == "sobel" else f"{self.method!r}, sigma={self.sigma:g}"
