"""The paper's tables and figures, recomputed from data and put beside what was printed."""
