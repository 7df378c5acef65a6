"""What docs/scaling.md shows: its programs and job files are well formed, and the tests that it names are there."""

import ast
import re
import subprocess

import yaml
from conftest import ROOT

DOCUMENT = (ROOT / "docs" / "scaling.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def named_in(file: str) -> set[str]:
    """The names of the tests of a file, of either of the two folders."""
    found = [ROOT / "tests" / folder / file for folder in ("python", "clients")]
    (path,) = [path for path in found if path.exists()]
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_named_tests_are_there():
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", DOCUMENT))
    assert len(named) > 30
    assert not [f"{file}::{test}" for file, test in named if test not in named_in(file)]


def test_shell_programs():
    programs = blocks("bash")
    assert any("#SBATCH" in program for program in programs)
    for program in programs:
        subprocess.run(["bash", "-n"], input=program, text=True, check=True)


def test_python_programs():
    for program in blocks("python"):
        ast.parse(program)


# What stands for Slurm: a list of hosts, and one task on each.
SLURM = """
scontrol() { printf '%s\\n' node-a node-b; }
srun() { printf '%s ' "$@"; }
SLURM_JOB_NODELIST='node-[a-b]' SLURM_NNODES=2 SLURM_JOB_ID=7
"""


def test_slurm_job():
    (job,) = [program for program in blocks("bash") if "#SBATCH" in program]
    output = subprocess.run(
        ["bash", "-eu"], input=SLURM + job, text=True, check=True, capture_output=True
    ).stdout
    assert output.split() == [
        *("torchrun", "--nnodes=2", "--nproc-per-node=4", "--rdzv-id=7", "--rdzv-backend=c10d"),
        *("--rdzv-endpoint=node-a:29400", "--max-restarts=2", "train.py"),
    ]


def test_kubernetes_job():
    (text,) = blocks("yaml")
    service, job = yaml.safe_load_all(text)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {entry["name"]: entry for entry in container["env"]}
    assert job["spec"]["completions"] == job["spec"]["parallelism"]
    assert variables["PET_NNODES"]["value"] == str(job["spec"]["completions"])
    # The first pod's name is the job's and its index.
    assert (
        variables["PET_MASTER_ADDR"]["value"] == f"{job['metadata']['name']}-0.{pod['subdomain']}"
    )
    assert service["metadata"]["name"] == pod["subdomain"]
