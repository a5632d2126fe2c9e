# Serves the indexes in the volume /data on port 8765:
#   docker build -t rankfold .
#   docker run -p 8765:8765 -v "$PWD:/data" --user "$(id -u):$(id -g)" -e RANKFOLD_API_KEY rankfold digits
# With a key the service writes to the folder, which is why it runs as the one to whom that belongs.
# Other commands: docker run -v "$PWD:/data" --entrypoint rankfold rankfold info digits
FROM python:3.13-slim AS build
ARG EXTRAS=serve,postgresql
WORKDIR /source
COPY . .
RUN python -m venv /opt/rankfold \
    && /opt/rankfold/bin/pip install --no-cache-dir ".[${EXTRAS}]"

FROM python:3.13-slim
# Compiled code is kept in a folder that any user may write to, since --user may name another one.
ENV PATH=/opt/rankfold/bin:$PATH NUMBA_CACHE_DIR=/var/cache/rankfold
RUN useradd --system --uid 10001 --no-create-home rankfold \
    && install --directory --mode=1777 /var/cache/rankfold \
    && install --directory --owner=rankfold /data
COPY --from=build /opt/rankfold /opt/rankfold
RUN rankfold warm-up && chmod -R a+rwX /var/cache/rankfold/*
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import http.client as http, sys; to = http.HTTPConnection('127.0.0.1', 8765, timeout=4); to.request('GET', '/health'); sys.exit(to.getresponse().status != 200)"]
ENTRYPOINT ["rankfold", "serve", "--host", "0.0.0.0", "--port", "8765"]
