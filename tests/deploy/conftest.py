"""The files of deploy/, read, and the compose file's services started as plain processes on loopback."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# Commands are found where this interpreter's are, as they are in the image.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


class Instruction(NamedTuple):
    """One line of a Dockerfile, continuations joined."""

    word: str
    rest: str

    @property
    def argv(self) -> list[str]:
        """Of the exec form: ENTRYPOINT ["spillgate"]."""
        argv: list[str] = json.loads(self.rest)
        return argv


Stage = list[Instruction]


def read_dockerfile(text: str) -> list[Stage]:
    """Its stages."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append(Instruction(word, rest.strip()))
    return stages


def only(stage: Stage, word: str) -> Instruction:
    """The one instruction of this kind."""
    (found,) = [instruction for instruction in stage if instruction.word == word]
    return found


@pytest.fixture(scope="session")
def stages() -> list[Stage]:
    return read_dockerfile((DEPLOY / "Dockerfile").read_text())


@pytest.fixture(scope="session")
def image(stages: list[Stage]) -> Stage:
    """What runs."""
    return stages[-1]


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    tree: dict[str, Any] = YAML(typ="safe").load(DEPLOY / "compose.yaml")
    return tree


@dataclass(frozen=True)
class Running:
    """The services, each on a port of its own."""

    ports: dict[str, int]
    folder: Path
    key: str

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.ports['gateway']}"


def inside_port(name: str, service: dict[str, Any], image: Stage) -> int:
    """The port that a service listens on in its container."""
    command = service.get("command", [])
    port = command[command.index("--port") + 1] if "--port" in command else only(image, "EXPOSE").rest
    return int(port)


def command_of(service: dict[str, Any], image: Stage) -> list[str]:
    """What the container runs: as in Docker, an entrypoint of one's own drops the image's CMD."""
    if "entrypoint" in service:
        return [*service["entrypoint"], *service.get("command", [])]
    return [*only(image, "ENTRYPOINT").argv, *service.get("command", only(image, "CMD").argv)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def running(
    compose: dict[str, Any], image: Stage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Every service's own command, with names and addresses put in place of the containers'."""
    folder = tmp_path_factory.mktemp("deploy")
    services = compose["services"]
    inside = {name: inside_port(name, service, image) for name, service in services.items()}
    ports = {name: free_port() for name in services}
    mounts = mounted(services, folder)

    def here(text: str) -> str:
        for name, port in inside.items():
            text = text.replace(f"http://{name}:{port}", f"http://127.0.0.1:{ports[name]}")
        return text.replace("0.0.0.0", "127.0.0.1")

    for source, copy in mounts.values():
        copy.write_text(here(source.read_text()))
    with ExitStack() as stack:
        for name in sorted(services, key=lambda each: each == "gateway"):
            argv = [here(part) for part in command_of(services[name], image)]
            argv = [str(mounts[part][1]) if part in mounts else part for part in argv]
            if "--port" in argv:
                argv[argv.index("--port") + 1] = str(ports[name])
            else:
                argv += ["--port", str(ports[name])]
            stack.enter_context(process(argv, folder, services[name].get("environment", {})))
            wait_for(ports[name])
        wait_until_seen(ports["gateway"])
        key = re.search(r"`(sg-[^`]+)`", (DEPLOY / "keys.example.yaml").read_text())
        assert key is not None
        yield Running(ports, folder, key[1])


def mounted(services: dict[str, Any], folder: Path) -> dict[str, tuple[Path, Path]]:
    """Path in a container -> the file that is mounted there, and where a copy of it goes."""
    found: dict[str, tuple[Path, Path]] = {}
    for service in services.values():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                found[target] = (DEPLOY / source, folder / Path(target).name)
    return found


@contextmanager
def process(argv: list[str], folder: Path, environ: dict[str, str]) -> Iterator[None]:
    """Started in `folder`, ended by SIGTERM."""
    program = shutil.which(argv[0], path=PATH)
    assert program is not None, f"{argv[0]} is not installed beside {sys.executable}"
    with subprocess.Popen(
        [program, *argv[1:]],
        cwd=folder,
        env={**os.environ, **environ, "PATH": PATH},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            yield
        finally:
            child.terminate()
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()


def wait_for(port: int) -> None:
    """Until something listens there."""

    def listens() -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, f"nothing listens on port {port}")


def wait_until_seen(port: int) -> None:
    """Until the gateway on this port has scraped both engines."""
    ready = f"http://127.0.0.1:{port}/readyz"
    wait_until(lambda: httpx.get(ready).json()["engines_up"] == 2, "the gateway does not see both engines")


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)
