"""Request -> plan: pure. What a submission costs, and the exact arguments and script it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from yolo_slurm.errors import InputError, RefusedError
from yolo_slurm.policy import Policy
from yolo_slurm.submit import directives
from yolo_slurm.submit.options import CommandLine, Option, effective
from yolo_slurm.submit.request import GpuCount, array_tasks, count_gpus, limit_minutes
from yolo_slurm.tokens import (
    UNITS_PER_TOKEN,
    Units,
    format_tokens,
    of_minutes,
    parse_tokens,
    say_tokens,
)

# The wrapper's own long options, and whether each takes a value. --gpus and
# --time are sbatch's, read here and passed on as they are.
OWN_OPTIONS: Mapping[str, bool] = {
    "tokens": True,
    "tier": True,
    "project": True,
    "template": True,
    "mem-fraction": True,
    "cudnn-benchmark": False,
    "no-cudnn-benchmark": False,
    "dry-run": False,
    "json": False,
    "parsable": False,
    "wait": False,
    "help": False,
    "version": False,
}


class Component(msgspec.Struct, frozen=True):
    """One het component, or the whole job where it has none.

    minutes: the time limit; None where it is the partition's.
    units: what one array task costs at most; None where it cannot be known.
    """

    options: tuple[Option, ...]  # what sbatch gets, in this order
    project: str | None
    gpus: GpuCount
    minutes: int | None
    units: Units | None
    tasks: int

    @property
    def whole(self) -> Units | None:
        """What all array tasks cost at most."""
        return None if self.units is None else Units(self.units * self.tasks)


class Plan(msgspec.Struct, frozen=True):
    """A submission, ready to be sent.

    argv: the exact argument list. script: the bytes that sbatch reads from
    its stdin; None where it reads a file itself.
    """

    components: tuple[Component, ...]
    argv: tuple[str, ...]
    script: bytes | None
    notes: tuple[str, ...]
    wait: bool
    clusters: str | None

    @property
    def units(self) -> Units | None:
        """What one array task of every component costs at most."""
        costs = [each.units for each in self.components]
        return None if None in costs else Units(sum(cost for cost in costs if cost is not None))


def make_plan(
    command: CommandLine,
    *,
    policy: Policy,
    environment: Sequence[Option],
    batch: bytes,
    words: Sequence[str],
    stdin: bytes | None,
) -> Plan:
    """Return the plan of *command*.

    environment: the options that SBATCH_* variables set.
    batch: the batch script, for its directives.
    words: the script and its arguments, as sbatch gets them.
    stdin: what sbatch reads from its stdin, where that is the script.

    Raises InputError for a request that cannot be read, RefusedError for one
    that is read and cannot be.
    """
    inside = directives.read(batch)
    count = max(len(inside), len(command.components))
    notes: list[str] = []
    components: list[Component] = []
    for index in range(count):
        outer = command.components[index] if index < len(command.components) else ()
        script = inside[index] if index < len(inside) else ()
        where = f"component {index}: " if count > 1 else ""
        component, said = _plan_component(outer, script, environment, policy, where)
        components.append(component)
        notes.extend(said)
    argv = ["sbatch", "--parsable"]
    for index, component in enumerate(components):
        if index:
            argv.append(":")
        for option in component.options:
            argv.extend(option.words)
    if command.dashes and words:
        argv.append("--")
    argv.extend(words)
    whole = effective(*inside, environment, *command.components)
    return Plan(
        tuple(components), tuple(argv), stdin, tuple(notes), "wait" in whole, whole.get("clusters")
    )


def _plan_component(
    outer: Sequence[Option],
    inside: Sequence[Option],
    environment: Sequence[Option],
    policy: Policy,
    where: str,
) -> tuple[Component, list[str]]:
    own = effective(option for option in outer if option.name in OWN_OPTIONS)
    passed = [o for o in outer if o.name not in OWN_OPTIONS or o.name == "wait"]
    added: list[Option] = []
    if "project" in own:
        added.append(_option("account", own["project"]))
    if "tier" in own:
        added.append(_option("qos", _qos(own["tier"] or "", policy)))
    _reject_twice(own, passed)
    options = effective(inside, environment, added, passed)
    gpus = count_gpus(options)
    notes: list[str] = []
    minutes = limit_minutes(options)
    if "tokens" in own:
        given_here = any(option.name == "time" for option in passed)
        asked = parse_tokens(own["tokens"] or "")
        bought, said = _buy_minutes(asked, gpus, where)
        notes.extend(said)
        if given_here and minutes != bought:
            raise InputError(
                f"{where}--tokens {own['tokens']} buys {_clock(bought)} on {gpus}, "
                f"--time {options['time']} is {_time_words(minutes, gpus)}: "
                "leave one of them out, or make them agree to the minute"
            )
        if not given_here:
            if options.get("time") is not None and minutes != bought:
                notes.append(
                    f"{where}--tokens {own['tokens']} sets the time limit to {_clock(bought)} "
                    f"instead of the script's or environment's {options['time']}"
                )
            added.insert(0, _option("time", str(bought)))
        minutes = bought
    units = None
    if gpus.total == 0:
        units = Units(0)
    elif gpus.total is not None and minutes is not None:
        units = of_minutes(gpus.total * minutes)
    elif gpus.total is None:
        notes.append(f"{where}the tokens it needs cannot be told before it runs: {gpus.unknown}")
    elif options.get("time") is not None:
        notes.append(
            f"{where}--time {options['time']} is no number of minutes, so what it costs cannot be "
            "told; a job without a limit never starts under a budget"
        )
    else:
        notes.append(
            f"{where}no time limit is given, so the partition's holds: "
            "give --time or --tokens to know what it costs"
        )
    project = options.get("account")
    return Component((*added, *passed), project, gpus, minutes, units, array_tasks(options)), notes


def _option(name: str, value: str | None) -> Option:
    return Option(name, value, (f"--{name}={value or ''}",))


def _reject_twice(own: Mapping[str, str | None], passed: Sequence[Option]) -> None:
    for ours, theirs in (("project", "account"), ("tier", "qos")):
        given = next((option for option in passed if option.name == theirs), None)
        if ours in own and given is not None:
            raise InputError(f"--{ours} and --{theirs} are the same: give one of them")


def _qos(tier: str, policy: Policy) -> str:
    if not policy.tiers:
        return tier
    if tier not in policy.tiers:
        known = ", ".join(sorted(policy.tiers))
        raise InputError(f"--tier {tier!r}: expected one of {known}")
    return policy.tiers[tier].qos


def _buy_minutes(asked: Units, gpus: GpuCount, where: str) -> tuple[int, list[str]]:
    if gpus.total is None:
        raise RefusedError(
            f"{where}--tokens cannot be turned into a time limit: {gpus.unknown}; "
            "use --gpus [TYPE:]N"
        )
    if gpus.total == 0:
        raise RefusedError(f"{where}--tokens needs GPUs to spend them on: add --gpus [TYPE:]N")
    per_minute = of_minutes(gpus.total)
    minutes = asked // per_minute
    if minutes < 1:
        raise RefusedError(
            f"{where}{say_tokens(asked, 9)} would be under a minute of {gpus}, "
            f"Slurm's shortest limit: ask for at least {_up(per_minute)}"
        )
    lost = asked - minutes * per_minute
    if lost * 100 > asked:
        tenths = lost * 1000 // asked
        return minutes, [
            f"{where}rounded down to Slurm's minute: {_clock(minutes)}, which leaves "
            f"{say_tokens(lost)} ({tenths // 10}.{tenths % 10} %) unused"
        ]
    return minutes, []


def _up(units: int) -> str:
    """Return a number of tokens that is enough for *units*, in at most four decimals."""
    step = UNITS_PER_TOKEN // 10_000
    return format_tokens(-(-units // step) * step, 4)


def _clock(minutes: int) -> str:
    days, rest = divmod(minutes, 1440)
    text = f"{rest // 60}:{rest % 60:02d}:00"
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00" if days else text


def _time_words(minutes: int | None, gpus: GpuCount) -> str:
    if minutes is None or gpus.total is None:
        return "no fixed time"
    return f"{_clock(minutes)}, {say_tokens(of_minutes(gpus.total * minutes))}"


_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*=.*", re.DOTALL)


def is_template_call(command: CommandLine, template: str | None) -> bool:
    """Whether the words after ``--`` are a template's settings rather than a script."""
    if template is not None:
        return True
    return command.dashes and bool(command.words) and all(_KEY.fullmatch(w) for w in command.words)
