"""policy.toml and site.toml, each as one validated, frozen object.

An unknown key, a wrong type or an impossible value is an InputError that
names the file, the key, the value and what was expected.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from yolo_slurm.errors import InputError, RefusedError

DEFAULT_PATH: Final = Path("/etc/yolo-slurm/policy.toml")
POLICY_VARIABLE: Final = "YOLO_SLURM_POLICY"

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Prices(_Section, frozen=True):
    """Tokens per GPU-hour, by GPU type."""

    gpu: dict[Name, Decimal] = {}
    shard: dict[Name, Decimal] = {}


class Tier(_Section, frozen=True):
    """A Slurm QOS with its price factor and its cost in submission credits."""

    qos: Name
    usage_factor: Decimal = Decimal(1)
    weight: Decimal = Decimal(1)
    preempts: tuple[Name, ...] = ()
    requeue: bool = False


class Bucket(_Section, frozen=True):
    """A token bucket of submission credits."""

    rate_per_minute: Decimal = Decimal(5)
    burst: Decimal = Decimal(20)


class Training(_Section, frozen=True):
    """What a training job is told; see `yolo-train --explain`."""

    memory_fraction: Decimal = Decimal("0.85")
    max_workers_per_gpu: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    # PyTorch refuses max_split_size_mb of 20 and below.
    max_split_size_mb: Annotated[int, msgspec.Meta(gt=20)] = 128
    cudnn_benchmark: bool = True


class Charging(_Section, frozen=True):
    """What is charged, and what is given back."""

    suspended: bool = False
    refund: tuple[str, ...] = ()


class Projects(_Section, frozen=True):
    """How accounts without entries are treated, and whether limits are set."""

    unmanaged: Literal["free", "blocked"] = "free"
    mode: Literal["enforce", "observe"] = "enforce"


class Policy(_Section, frozen=True):
    """Everything that a site declares."""

    prices: Prices = Prices()
    tiers: dict[Name, Tier] = {}
    admission: dict[Name, Bucket] = {}
    training: Training = Training()
    charging: Charging = Charging()
    projects: Projects = Projects()


class LedgerSettings(_Section, frozen=True):
    """Where the books are: an SQLAlchemy URL."""

    url: str = "sqlite:////var/lib/yolo-slurm/ledger.db"


class HookSettings(_Section, frozen=True):
    """Where the prolog/epilog hook leaves its files."""

    spool: str = "/var/spool/yolo-slurm"


class Site(_Section, frozen=True):
    """What only the controller knows: site.toml, mode 0600."""

    ledger: LedgerSettings = LedgerSettings()
    hook: HookSettings = HookSettings()


def policy_path() -> Path:
    """Return the policy's path: $YOLO_SLURM_POLICY, else /etc/yolo-slurm/policy.toml."""
    return Path(os.environ.get(POLICY_VARIABLE) or DEFAULT_PATH)


def load_policy(path: Path) -> Policy:
    """Return the policy in *path*; the defaults where the default path has no file.

    Raises InputError.
    """
    data = _read(path, required=path != DEFAULT_PATH)
    policy = _convert(data, Policy, path)
    _check_ranges(policy, path)
    _check_one_price(policy, path)
    return policy


def load_site(policy: Path) -> Site:
    """Return site.toml, which lies beside the *policy*. Raises InputError, RefusedError."""
    path = policy.with_name("site.toml")
    try:
        path.open("rb").close()
    except PermissionError:
        raise RefusedError(
            f"{path} is for root and SlurmUser on the controller alone; "
            "`yolo-slurm balance` shows a project's available tokens to anyone"
        ) from None
    except OSError:
        pass  # the reader below says what is wrong, or takes the defaults
    return _convert(_read(path, required=False), Site, path)


_T = TypeVar("_T", Policy, Site)
_AT: Final = re.compile(r" - at `(?:key in )?\$\.?(.*)`$", re.DOTALL)


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode(), parse_float=Decimal)
    except FileNotFoundError:
        if required:
            raise InputError(
                f"{path}: no such file; {POLICY_VARIABLE} names the policy to read"
            ) from None
        return {}
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def _convert(data: dict[str, Any], kind: type[_T], path: Path) -> _T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        found = _AT.search(message)
        key = found[1] if found else ""
        if found:
            message = message[: found.start()]
        if key.endswith("[...]"):
            key = _name_item(data, kind, key.removesuffix("[...]"))
        value = _look_up(data, key)
        shown = f" = {value!r}" if value is not None and not isinstance(value, dict) else ""
        expected = _EXPECTED.get(message.split(" '")[0], "")
        if key in _CHOICES:
            message, expected = "", f"expected {_CHOICES[key]}"
        said = ": ".join(part for part in (message, expected) if part)
        raise InputError(f"{path}: {key or 'the file'}{shown}: {said}") from None


_EXPECTED: Final = {
    "Invalid decimal string": "expected a number such as 0.85",
    "Expected `object`, got `str`": "expected a section, such as [tiers.NAME] with its keys",
}
_CHOICES: Final = {
    "projects.mode": '"enforce" or "observe"',
    "projects.unmanaged": '"free" or "blocked"',
}


def _name_item(data: dict[str, Any], kind: type[_T], key: str) -> str:
    """Return the key of the one item below *key* that is wrong: each is tried alone."""
    table = _look_up(data, key)
    for name, value in table.items() if isinstance(table, dict) else ():
        alone: dict[str, Any] = {name: value}
        for part in reversed(key.split(".")):
            alone = {part: alone}
        try:
            msgspec.convert(alone, kind)
        except msgspec.ValidationError:
            return f"{key}.{name}"
    return key


def _look_up(data: Any, key: str) -> Any:
    for part in key.split(".") if key else ():
        data = data.get(part.removesuffix("[...]")) if isinstance(data, dict) else None
    return float(data) if isinstance(data, Decimal) else data


def _check_ranges(policy: Policy, path: Path) -> None:
    one = Decimal(1)
    zero = Decimal(0)
    numbers: list[tuple[str, Decimal, Callable[[Decimal], bool], str]] = [
        (
            "training.memory_fraction",
            policy.training.memory_fraction,
            lambda value: zero < value <= one,
            "more than 0 and at most 1",
        )
    ]
    for name, tier in policy.tiers.items():
        numbers.append((f"tiers.{name}.weight", tier.weight, zero.__le__, "0 or more"))
    for name, bucket in policy.admission.items():
        key = f"admission.{name}"
        numbers.append(
            (f"{key}.rate_per_minute", bucket.rate_per_minute, zero.__lt__, "more than 0")
        )
        numbers.append((f"{key}.burst", bucket.burst, one.__le__, "1 or more"))
    for key, value, good, expected in numbers:
        if not value.is_finite() or not good(value):
            raise InputError(f"{path}: {key} = {value}: expected {expected}")


def _check_one_price(policy: Policy, path: Path) -> None:
    """Refuse what is declared but not charged yet: prices other than 1, tier factors, shards."""
    for name, price in policy.prices.gpu.items():
        if price != 1:
            raise InputError(
                f"{path}: prices.gpu.{name} = {price}: expected 1.0, the one price that is charged"
            )
    for name, price in policy.prices.shard.items():
        raise InputError(
            f"{path}: prices.shard.{name} = {price}: shards are not charged yet; remove the key"
        )
    for name, tier in policy.tiers.items():
        if tier.usage_factor != 1:
            raise InputError(
                f"{path}: tiers.{name}.usage_factor = {tier.usage_factor}: "
                "expected 1.0, the one factor that is charged"
            )
    if policy.charging.suspended:
        raise InputError(
            f"{path}: charging.suspended = true: suspended time is not charged yet; expected false"
        )
