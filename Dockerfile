# The demo and the playground without installing anything else:
#   docker build -t mavic . && docker run --rm -it mavic make demo
#   docker run --rm -it -p 8642:8642 mavic mavic play --host 0.0.0.0 --no-browser
# The playground prints an address with the container's name and a token: open it with localhost instead of the name.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /mavic
COPY . .
RUN make .venv/play
ENV PATH=/mavic/.venv/bin:$PATH JAX_PLATFORMS=cpu
CMD ["mavic", "--help"]
