"""Random programs of views and writes on the device: `--programs N` says how many."""

from view_programs import run_programs


def test_random_programs(request):
    run_programs(request.config.getoption("--programs"))
