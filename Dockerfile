# kbtools in a container of its own: docker compose run --rm kbtools index ...
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 kbtools
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
USER kbtools
WORKDIR /data
ENTRYPOINT ["kbtools"]
CMD ["--help"]
