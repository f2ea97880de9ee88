"""What packaging/ and .github/ hold is well formed and names what exists."""

import re
import shutil
import subprocess

import parts
import pytest

PACKAGING = parts.ROOT / "packaging"
GITHUB = parts.ROOT / ".github"
YAML = sorted([*PACKAGING.rglob("*.yaml"), *PACKAGING.rglob("*.yml"), *GITHUB.rglob("*.yml")])
YAML = [path for path in YAML if path.parent.name != "conda"]


def read(path):
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_files_are_yaml(path):
    assert all(read(path))


def test_the_image_is_made_of_what_is_there():
    text = (PACKAGING / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert (parts.ROOT / "scripts" / "wheel").exists() and "RUN scripts/wheel" in text
    toolchain = re.search(r'channel = "(\d+\.\d+)', (parts.ROOT / "rust-toolchain.toml").read_text())[1]
    assert f"FROM rust:{toolchain}-" in text
    assert all(image.startswith("nvcr.io/nvidia/tritonserver:") for image in re.findall(r"TRITON=(\S+)", text))


def test_compose_names_files_that_exist():
    path = PACKAGING / "docker" / "compose.yaml"
    (compose,) = read(path)
    assert (parts.ROOT / compose["services"]["triton"]["build"]["dockerfile"]).exists()
    assert (path.parent / compose["services"]["prometheus"]["volumes"][0].partition(":")[0]).exists()
    (scraped,) = read(path.parent / "prometheus.yml")
    assert scraped["scrape_configs"][0]["static_configs"][0]["targets"] == ["triton:8002"]


def test_docker_takes_the_compose_file():
    if not shutil.which("docker") or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose")
    command = ["docker", "compose", "-f", PACKAGING / "docker" / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_kubernetes_parts_fit_together():
    deployment, service = read(PACKAGING / "kubernetes" / "gesso.yaml")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8000, "grpc": 8001, "metrics": 8002}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["spec"]["volumes"]
    }
    (monitor,) = read(PACKAGING / "kubernetes" / "servicemonitor.yaml")
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]


def test_the_conda_package_has_our_version():
    text = (PACKAGING / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert f'version = "{parts.version()}"' in text


@pytest.mark.parametrize("name", ["fault", "difference"])
def test_issues_come_with_what_the_machine_has(name):
    (form,) = read(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    asked = {entry["id"]: entry for entry in form["body"] if "id" in entry}
    assert "gesso doctor" in asked["doctor"]["attributes"]["label"] and asked["doctor"]["validations"]["required"]


def test_workflows_pin_their_actions_and_hold_no_password():
    for path in sorted((GITHUB / "workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        for action in re.findall(r"uses: (\S+)", text):
            assert re.search(r"@[0-9a-f]{40}$", action), f"{path.name}: {action}"
        assert not re.findall(r"secrets\.", text), path.name
