"""Predictions as a step of a pipeline on Ray Data; needs equicaps[ray].

Run: python examples/predict_on_ray.py FOLDER_OR_ADDRESS OUT [MODEL]
"""

import sys

import ray

from equicaps.inference.ray import Predictor


def main(images: str, out: str, model: str = "digits") -> None:
    # --8<-- the pipeline
    files = ray.data.read_binary_files(images, include_paths=True)  # a folder, or s3://bucket/folder
    answers = files.map_batches(
        Predictor,
        fn_constructor_args=[model, "bytes"],
        batch_format="pyarrow",
        batch_size=256,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=8),  # leave a CPU for reading the files
    )
    answers.write_parquet(out)
    # --8<-- end


if __name__ == "__main__":
    ray.init()  # on this machine, or on the cluster that RAY_ADDRESS names
    main(*sys.argv[1:])
