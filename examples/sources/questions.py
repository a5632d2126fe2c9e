"""One question in plain words about every subject, and the subject that is meant."""

QUESTIONS = {
    "how do I smooth a noisy signal": "signal",
    "find the minimum of a function of several variables": "optimize",
    "split my data into training and test parts": "model_selection",
    "which points are nearest to each other": "spatial",
    "solve a differential equation": "integrate",
    "are two samples from the same distribution": "stats",
    "group similar points together": "cluster",
    "remove noise from a picture": "ndimage",
    "decompose a matrix into simpler factors": "linalg",
    "how good are my predictions": "metrics",
    "draw random numbers": "random",
    "fill in values between measured points": "interpolate",
    "fit a line through data": "linear_model",
    "put features on the same scale": "preprocessing",
    "shortest path in a network": "sparse",
    "turn a sound into its frequencies": "fft",
    "evaluate a Bessel function": "special",
    "load a small set of data to try things on": "datasets",
}
