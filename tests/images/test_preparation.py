import numpy as np
import pytest
import torch

from equicaps.images import read


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("convert", [torch.from_numpy, np.asarray])
def test_pixels_that_are_not_numbers_are_refused_before_any_network_sees_them(value, convert):
    image = np.zeros((8, 8))
    image[3, 4] = value
    with pytest.raises(ValueError, match="NaN or infinite pixels"):
        read(convert(image))
