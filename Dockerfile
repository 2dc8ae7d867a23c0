# The service with its embedded models. Nothing is fetched when it starts.
#   docker build -t memantics .
#   docker run -p 8080:8080 -e MEMANTICS_TOKENS="$(cat tokens.toml)" memantics
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/memantics \
    && /opt/memantics/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve]'

FROM python:3.12-slim
COPY --from=build /opt/memantics /opt/memantics
ENV PATH=/opt/memantics/bin:$PATH \
    MEMANTICS_HOME=/var/lib/memantics \
    OMP_NUM_THREADS=1
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/memantics memantics
USER 10001
# The detector that ships opens here: where it cannot, the build fails and not the first request.
RUN ["python", "-c", "from memantics import Detector; Detector.load_sample()"]
VOLUME /var/lib/memantics
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=5)"]
ENTRYPOINT ["memantics", "serve", "--host", "0.0.0.0", "--port", "8080"]
