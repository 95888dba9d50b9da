"""The benchmarks of ``bothost bench``, one module each."""
