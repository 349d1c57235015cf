"""What `python -m benchmarks intervals` measures beside the mean coverage."""
