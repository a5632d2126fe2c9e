"""What the benchmarks share: turns of timing, graphs, memory, pages and pictures."""
