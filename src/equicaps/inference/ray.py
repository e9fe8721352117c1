"""Predictions on Ray Data, for those who outgrow a machine; needs ``pip install 'equicaps[ray]'``.

equicaps has to be installed on every machine, and every machine has to reach the images: in a store such as S3, or
under the same path.
"""

import contextlib
import importlib.util
import itertools
import logging
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from equicaps.errors import MissingPackageError, UsageError, WorkersError
from equicaps.images.decode import is_remote
from equicaps.inference.batches import BATCH
from equicaps.inference.model import PoseModel
from equicaps.inference.model_files import load_image_model
from equicaps.inference.rows import Row, as_row, columns, encodable, schema

try:
    import pyarrow
except ImportError as error:
    raise MissingPackageError("Ray Data needs pyarrow: pip install 'equicaps[ray]'.") from error

BATCHES = 8
"""How many batches a worker gets at once, so that it decodes the next one while it computes."""
OBJECT_STORE = 256 * 2**20
"""The memory in bytes that Ray may use on this machine for names and answers; more goes to the disk."""
SECONDS = 5.0
"""How long to wait for a cluster to answer."""


class Predictor:
    """What a worker of Ray Data does: it takes a batch with a column of images, and adds the columns of their answers.

    .. code-block:: python

        ray.data.read_binary_files("s3://bucket/images", include_paths=True).map_batches(
            Predictor, fn_constructor_args=["digits", "bytes"], batch_size=256, batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=8))

    A file that cannot be read gives a row with its ``error``. The contents of files are left out of the result.

    Args:
        model: a model, what ``ray.put`` returns for one, or what ``equicaps.load`` takes.
        column: the column with paths, with addresses such as ``s3://bucket/image.png``, or with the contents of files.
    """

    def __init__(self, model: Any, column: str = "path") -> None:
        if not isinstance(model, PoseModel | str | Path):
            import ray

            model = ray.get(model)
        self.model = model if isinstance(model, PoseModel) else load_image_model(model)
        self.column = column

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """The batch with the columns of the answers."""
        if not isinstance(batch, pyarrow.Table):
            raise TypeError(f"Predictor: call map_batches with batch_format='pyarrow'; a {type(batch).__name__} came.")
        sources, classes = batch[self.column].to_pylist(), self.model.classes
        answers = self.model.predict_sources(sources)
        rows = [as_row("", answer, classes) for answer in answers]
        found = pyarrow.Table.from_pylist(rows, schema=schema(columns(classes))).drop_columns("file")
        kept = batch.drop_columns(self.column) if pyarrow.types.is_binary(batch[self.column].type) else batch
        for name in found.column_names:
            kept = kept.append_column(name, found[name])
        return kept


def on_ray(
    model: PoseModel, images: Iterable[str], *, workers: int | None = None, address: str | None = None
) -> Iterator[Row]:
    """The engine that computes on Ray.

    Args:
        model: the model.
        images: paths, which have to lead to the images on every machine, or addresses.
        workers: the number of processes; by default one for each CPU.
        address: the address of a cluster; by default Ray is started on this machine, reachable from here only.
    """
    with _started(workers, address) as ray:
        blocks = [ray.put(table) for table in _tables(images)]
        if not blocks:
            return
        workers = min(workers or max(1, int(ray.cluster_resources().get("CPU", 1))), len(blocks))
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        data = ray.data.from_arrow_refs(blocks).map_batches(
            Predictor,
            fn_constructor_args=(ray.put(model), "path"),
            batch_size=BATCHES * BATCH,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        try:
            for table in data.iter_batches(batch_size=None, batch_format="pyarrow"):
                yield from table.drop_columns("path").to_pylist()
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise WorkersError(f"Ray failed: {reason}. What is finished is kept; the same run continues it.") from error


def check_ray(address: str | None) -> None:
    """Raise unless Ray is installed and something answers at the address; Ray itself would wait for minutes."""
    if importlib.util.find_spec("ray") is None:
        raise MissingPackageError("Predictions on Ray need Ray: pip install 'equicaps[ray]'.")
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if port.isdigit():  # unlike "auto", where Ray knows at once
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS).close()
        except (OSError, OverflowError) as error:
            raise UsageError(f"no Ray cluster answers at {address}: {error}.") from error


def _tables(images: Iterable[str]) -> Iterator[pyarrow.Table]:
    """Blocks for the workers; each but the last has whole batches, so that all batches are those of one machine."""
    remaining = iter(images)
    while names := list(itertools.islice(remaining, BATCHES * BATCH)):
        paths = [name if is_remote(name) else os.path.abspath(name) for name in names]
        yield pyarrow.table({"file": list(map(encodable, names)), "path": list(map(encodable, paths))})


@contextlib.contextmanager
def _started(workers: int | None, address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster or started on this machine."""
    check_ray(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what goes wrong is raised
    if address is None:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # listen on 127.0.0.1 only, on any system
    import ray
    import ray.data

    if ray.is_initialized():  # by the program that calls this
        yield ray
        return
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        ray.init("local", num_cpus=workers, include_dashboard=False, object_store_memory=OBJECT_STORE, **quiet)
    else:
        try:
            ray.init(address, **quiet)
        except ConnectionError as error:
            raise UsageError(f"no Ray cluster answers at {address}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
