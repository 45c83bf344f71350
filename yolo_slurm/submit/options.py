"""sbatch's command line, read as sbatch reads it, so that all of it can pass through untouched.

Source: getopt_long(3), and the option tables of Slurm 22.05 to 26.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

# Long options by what follows them. An option that is in no list (a newer
# Slurm's, a site's SPANK plugin's) is taken as one that needs no value,
# unless it is written --option=value.
_WITH_VALUE: Final = frozenset(
    """
    account acctg-freq array batch bb bbf begin chdir cluster cluster-constraint clusters comment
    constraint container container-id context core-spec cores-per-socket cpu-freq cpus-per-gpu
    cpus-per-task deadline delay-boot dependency distribution error exclude export export-file
    extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task
    gres gres-flags hint input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label
    mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus network nodefile nodelist nodes ntasks
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode
    output partition power prefer priority profile qos reservation resources runtime segment signal
    sockets-per-node switches tasks-per-node thread-spec threads-per-core time time-min tmp
    tres-bind tres-per-task uid wait-all-nodes wckey wrap
    """.split()
)
_MAYBE_VALUE: Final = frozenset(
    "exclusive get-user-env nice no-kill oom-kill-step propagate requeue resv-ports".split()
)
_NO_VALUE: Final = frozenset(
    """
    consolidate-segments contiguous external help hold ignore-pbs no-requeue overcommit
    oversubscribe parsable quiet reboot share spread-job spread-segments stepmgr test-only usage
    use-min-nodes verbose version wait
    """.split()
)
_SHORT: Final[Mapping[str, str]] = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint",
    "c": "cpus-per-task", "D": "chdir", "d": "dependency", "e": "error", "F": "nodefile",
    "G": "gpus", "H": "hold", "h": "help", "i": "input", "J": "job-name", "k": "no-kill",
    "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks",
    "O": "overcommit", "o": "output", "p": "partition", "Q": "quiet", "q": "qos",
    "S": "core-spec", "s": "oversubscribe", "t": "time", "V": "version", "v": "verbose",
    "W": "wait", "w": "nodelist", "x": "exclude",
}  # fmt: skip
_ALIASES: Final[Mapping[str, str]] = {"cluster": "clusters", "tasks-per-node": "ntasks-per-node"}
SBATCH_OPTIONS: Final = _WITH_VALUE | _MAYBE_VALUE | _NO_VALUE

# Input environment variables of sbatch that bear on a plan. Source: sbatch(1).
_VARIABLES: Final[Mapping[str, str]] = {
    "SBATCH_ACCOUNT": "account", "SBATCH_ARRAY_INX": "array", "SBATCH_CLUSTERS": "clusters",
    "SLURM_CLUSTERS": "clusters", "SBATCH_EXCLUSIVE": "exclusive", "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node", "SBATCH_GPUS_PER_SOCKET": "gpus-per-socket",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task", "SBATCH_GRES": "gres",
    "SBATCH_TRES_PER_TASK": "tres-per-task", "SBATCH_JOB_NAME": "job-name",
    "SBATCH_PARTITION": "partition", "SBATCH_QOS": "qos", "SBATCH_TIMELIMIT": "time",
    "SBATCH_WAIT": "wait",
}  # fmt: skip


class Option(msgspec.Struct, frozen=True):
    """One option: its long name, its value (None without one), and the words it was written in.

    In a bundle of short ones (``-HW``) the first has the word, the others none.
    """

    name: str
    value: str | None
    words: tuple[str, ...]


class CommandLine(msgspec.Struct, frozen=True):
    """A parsed command line.

    components: the options of each het component; one list where there is no ``:``.
    words: what follows the options.
    dashes: whether ``--`` stood between them.
    """

    components: tuple[tuple[Option, ...], ...]
    words: tuple[str, ...]
    dashes: bool


def long_name(written: str, own: Mapping[str, bool]) -> str:
    """Return the option that *written* (without dashes) names: exactly, or as a unique prefix."""
    if written in own or written in SBATCH_OPTIONS:
        return _ALIASES.get(written, written)
    matches = {
        _ALIASES.get(name, name) for name in SBATCH_OPTIONS if written and name.startswith(written)
    }
    return matches.pop() if len(matches) == 1 else written


def parse(words: Sequence[str], own: Mapping[str, bool]) -> CommandLine:
    """Split *words* as sbatch would: options, then the script and its arguments.

    own: the wrapper's own long options, and whether each takes a value; they
    come first where sbatch has one of the same name.
    """
    components: list[list[Option]] = [[]]
    left = list(words)
    dashes = False
    while left:
        word = left[0]
        if word == "--":
            dashes = True
            left.pop(0)
            break
        if word == ":":
            components.append([])
            left.pop(0)
        elif word.startswith("--"):
            components[-1].append(_long(left, own))
        elif word.startswith("-") and word != "-":
            components[-1].extend(_short(left))
        else:
            break
    return CommandLine(tuple(tuple(each) for each in components), tuple(left), dashes)


def _long(left: list[str], own: Mapping[str, bool]) -> Option:
    word = left.pop(0)
    written, equals, value = word[2:].partition("=")
    name = long_name(written, own)
    if equals:
        return Option(name, value, (word,))
    if own.get(name, name in _WITH_VALUE) and left:
        value = left.pop(0)
        return Option(name, value, (word, value))
    return Option(name, None, (word,))


def _short(left: list[str]) -> list[Option]:
    """Read one word of short options, such as ``-N2``, ``-N 2`` or ``-HW``.

    The first of them carries the words, so that the bundle stays as it was written.
    """
    word = left.pop(0)
    words = [word]
    found: list[tuple[str, str | None]] = []
    at = 1
    while at < len(word):
        name = _SHORT.get(word[at], word[at])
        rest = word[at + 1 :]
        at += 1
        if name in _WITH_VALUE and not rest and left:
            words.append(left.pop(0))
            rest = words[-1]
        if name in _WITH_VALUE or name in _MAYBE_VALUE:
            found.append((name, rest or None))
            break
        found.append((name, None))
    return [
        Option(name, value, () if index else tuple(words))
        for index, (name, value) in enumerate(found)
    ]


def from_environment(environ: Mapping[str, str]) -> tuple[Option, ...]:
    """Return the options that ``SBATCH_*`` variables set."""
    return tuple(
        Option(name, environ[variable], ())
        for variable, name in _VARIABLES.items()
        if variable in environ
    )


def effective(*sources: Iterable[Option]) -> dict[str, str | None]:
    """Return the options in force, by long name; *sources* from the weakest to the strongest."""
    return {option.name: option.value for source in sources for option in source}
