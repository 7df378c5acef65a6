"""Says why a program is slow, from watching it run.

    python -m torch_xla.doctor [--steps N] [--json FILE] [--fail-on recompile,fallback] [--report FILE.html] train.py args…

runs the script unchanged, prints what costs its steps the most time, with the line and a remedy, and writes a report.

`script` runs the program; `observation` watches it and makes a `program_run.ProgramRun`; each module in `causes` finds one kind of
cause in that; `text`, `summary` and `page` show what was found. `examination` is all of this for one process, `launched` for those
that the program launches.
"""
