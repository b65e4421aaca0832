"""The measurements. A package, so that it comes before the `benchmarks` that pyarrow 17 installs."""
