# kbtools with its server: docker compose run --rm kbtools index ..., or docker compose up serve
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build==1.3.0 && python -m build --wheel --outdir /wheels

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 kbtools
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[serve]"
USER 1000
WORKDIR /data
EXPOSE 8000
# Of a container that serves, which compose asks more often; others end before it counts.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/health', timeout=4)"]
ENTRYPOINT ["kbtools"]
CMD ["--help"]
