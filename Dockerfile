# The fleet, and all that its demo needs. Any Debian 12 base: docs/containers.md says how to make one without a registry.
#   docker build -t qa-fleet:0.1.0 .
#   docker build -t qa-fleet:0.1.0 --build-arg BROWSER=1 .        with a browser for `qa_browse`
ARG BASE=debian:12-slim

FROM $BASE AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates gcc libc6-dev python3 python3-venv
WORKDIR /opt/qa-fleet
RUN python3 -m venv .venv && python3 -m venv /opt/node
# Of the lock's packages those for developers are taken out again; the others stay as they are pinned.
COPY requirements.lock .
RUN .venv/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r requirements.lock \
 && .venv/bin/pip uninstall --yes grimp import-linter mypy pytest pytest-timeout pytest-xdist ruff kubernetes-validate sarif-pydantic types-docker
# The devnet's chain and the browser's rules; Node itself stays behind.
COPY .ci/node.lock .ci/
COPY package.json package-lock.json ./
RUN /opt/node/bin/pip install --no-cache-dir --require-hashes --no-deps -r .ci/node.lock \
 && PATH="/opt/node/bin:$PATH" npm install --no-save --ignore-scripts --no-audit --no-fund \
 && rm -r node_modules/solc
COPY . .
RUN mkdir sandbox/_build && cc -O2 -Wall -shared -fPIC -o sandbox/_build/forkserver.so sandbox/runners/forkserver.c -ldl \
 && .venv/bin/python -m fleet.devnet.compiler.rustlite.generate \
 && .venv/bin/pip install --no-deps --no-build-isolation --config-settings editable_mode=compat --editable . \
 && .venv/bin/pip uninstall --yes setuptools pip \
 && python3 -m compileall -q fleet sandbox .venv/lib

FROM $BASE
ARG BROWSER=
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 tini ${BROWSER:+chromium-headless-shell} \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --user-group --home-dir /var/lib/qa-fleet --shell /usr/sbin/nologin qa-fleet \
 && install --directory --mode 0700 --owner 10001 --group 10001 /var/lib/qa-fleet
COPY --from=build /opt/qa-fleet /opt/qa-fleet
ENV PATH=/opt/qa-fleet/.venv/bin:/usr/bin:/bin STATE_DIRECTORY=/var/lib/qa-fleet CONFIGURATION_DIRECTORY=/etc/qa-fleet \
    PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1
WORKDIR /var/lib/qa-fleet
VOLUME /var/lib/qa-fleet
USER 10001:10001
# The first SIGTERM drains: give it the 210 s of config/qa-fleet.service (`docker stop --time 210`; compose.yaml does).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s --retries=3 \
  CMD ["/usr/bin/python3", "/opt/qa-fleet/config/probe.py", "/healthz"]
# tini takes in the orphans of the jails.
ENTRYPOINT ["/usr/bin/tini", "--", "fleet"]
CMD ["up"]
