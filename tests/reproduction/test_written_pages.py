import json

import pytest

from equicaps.errors import UsageError
from reproduction import pages


@pytest.mark.parametrize("name", [*pages.EXPERIMENTS, "galaxies"])
def test_quick_figures_enter_no_page(tmp_path, name):
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({"quick": True}))
    with pytest.raises(UsageError, match=f"{name}.json is from a quick run, whose figures never enter the tables"):
        pages._read(path)
    path.write_text(json.dumps({"quick": False}))
    assert pages._read(path) == {"quick": False}
