"""Heavy work on a Dask cluster."""
