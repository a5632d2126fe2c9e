"""The paper's tables and figures, made anew from data and put beside what was printed."""
