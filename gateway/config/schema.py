"""Every key of spillgate.yaml: type, limits, default and meaning, once; and the frozen Config made of them.

Parsing, errors, JSON Schema and the reference page are derived from these types; nothing here reads a file.
Keys of policy files are the fields of routing's own types.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, MinLen, doc

from gateway.config.secret import Secret
from gateway.config.shipped import SHIPPED
from gateway.routing.policy import Policy
from gateway.routing.units import Bytes, Seconds


@dataclass(frozen=True, slots=True)
class Matches:
    """A text field's form: a pattern, and what it asks for. `hidden`: messages never show the value."""

    pattern: str
    says: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in USD from 0 to `most`; what is above 0 but below `least` has mistaken its unit."""

    most: Decimal
    least: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """An http or https address without user, query or fragment: keys in addresses end up in logs.

    `bare`: the `/v1` that clients add must not be part of it.
    """

    bare: bool


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A database address; its password, where there is one, must come from the environment."""


# Names become header values, metric labels and ledger cells.
NAME_FORM = Matches(r"[!-~]{1,200}", "takes 1 to 200 printable ASCII characters without spaces")
Name = Annotated[str, NAME_FORM]
Usd = Annotated[Decimal, Money(most=Decimal(1_000_000))]
# The cheapest listed prices are near 0.001 USD per million tokens; far below, someone wrote USD per token.
UsdPerMtok = Annotated[Decimal, Money(most=Decimal(10_000), least=Decimal("0.0001"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where clients connect. An address that others can reach needs `clients.keys_file`."""

    host: Annotated[str, MinLen(1), doc("address to bind")] = "127.0.0.1"
    port: Annotated[int, Ge(0), Le(65535), doc("TCP port; 0 takes any free one")] = 8080


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerConfig:
    """Where requests and their costs are written down."""

    url: Annotated[
        Secret, DatabaseUrl(), doc("`sqlite:///FILE` or `postgresql://...`; a password only as `${NAME}`")
    ] = field(default_factory=lambda: Secret("sqlite:///spillgate.db"))
    required: Annotated[bool, doc("`true`: refuse requests while the ledger cannot be written")] = False
    journal: Annotated[Path | None, doc("folder of the journal; absent: one is chosen by the ledger")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Who may send requests. Absent: anyone who reaches the port, so only loopback addresses may be bound."""

    keys_file: Annotated[Path, doc("file that `spillgate keys` writes; relative to this file")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """The control plane under `/admin`. Absent: those routes do not exist."""

    key: Annotated[Secret, doc("key that admin requests carry, as `${NAME}`")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """How engines' metrics are read."""

    interval: Annotated[Seconds, Gt(0), doc("time between two reads of one engine")] = 1.0
    timeout: Annotated[Seconds, Gt(0), doc("longest wait for one page")] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one gateway process accepts."""

    max_body: Annotated[Bytes, Gt(0), doc("largest request body; larger ones get 413")] = 20 * 2**20
    max_in_flight: Annotated[int, Ge(1), doc("requests at once; more get 503")] = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """How the gateway stops."""

    drain: Annotated[Seconds, doc("time that requests in flight have to finish")] = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The cards of one engine."""

    type: Annotated[str, MinLen(1), doc("card, like `H100-80GB`")]
    count: Annotated[int, Ge(1), doc("how many")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """What one engine costs, all its GPUs together."""

    usd_per_hour: Annotated[Usd, doc("rate in USD per hour")]
    overhead_usd_per_hour: Annotated[Usd, doc("host, storage, network, support")] = Decimal(0)
    billing: Annotated[
        Literal["on_demand", "reserved", "owned"], doc("whether stopping the engine stops its bill")
    ] = "on_demand"
    until: Annotated[date | None, doc("last day of a reservation, like 2027-06-30")] = None
    capacity_work_units_per_second: Annotated[
        Decimal | None, Gt(0), doc("practical capacity, measured; absent: no `standard` cost")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What vLLM was started with."""

    vllm_version: Annotated[str | None, MinLen(1), doc("version, quoted where it looks like a number")] = None
    model: Annotated[str | None, MinLen(1), doc("model id or path")] = None
    tensor_parallel_size: Annotated[int, Ge(1), doc("as given to vLLM")] = 1
    max_model_len: Annotated[int | None, Ge(1), doc("as given to vLLM; absent: the model's own")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """One self-hosted vLLM server."""

    name: Annotated[Name, doc("its name in reports, metrics and headers")]
    url: Annotated[str, HttpUrl(bare=True), doc("address without `/v1`")]
    api_key: Annotated[Secret | None, doc("what vLLM was given as `--api-key`, as `${NAME}`")] = None
    gpu: Annotated[Gpu | None, doc("its cards")] = None
    cost: Annotated[EngineCost | None, doc("its rates; absent: its requests have no `standard` cost")] = None
    launch: Annotated[Launch | None, doc("how it was started")] = None
    boot_log: Annotated[Path | None, doc("vLLM's log, watched for a failed start")] = None
    region: Annotated[str | None, MinLen(1), doc("where it stands")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one endpoint may cost; at least one of the two."""

    usd_per_hour: Annotated[Usd | None, doc("USD in any 60 minutes")] = None
    usd_per_day: Annotated[Usd | None, doc("USD in any 24 hours")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """One per-token serverless API."""

    name: Annotated[Name, doc("its name in reports, metrics and headers")]
    kind: Annotated[Literal["openai", "litellm"], doc("`litellm`: `model` is litellm's string")] = "openai"
    base_url: Annotated[
        str | None, HttpUrl(bare=False), doc("address up to and with `/v1`; needed for `kind: openai`")
    ] = None
    api_key: Annotated[Secret | None, doc("as `${NAME}`")] = None
    region: Annotated[str | None, MinLen(1), doc("what policies' `regions_allowed` looks at")] = None
    budget: Annotated[Budget | None, doc("absent: no limit")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A contract price in USD; at least one key. Tokens are priced per million, never per token."""

    input: Annotated[UsdPerMtok | None, doc("USD per million prompt tokens")] = None
    cached_input: Annotated[UsdPerMtok | None, doc("USD per million cached ones; absent: as `input`")] = None
    output: Annotated[UsdPerMtok | None, doc("USD per million output tokens")] = None
    per_request: Annotated[Annotated[Decimal, Money(most=Decimal(100))] | None, doc("USD per request")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowTarget:
    """One endpoint that a model's requests may go to."""

    endpoint: Annotated[str, doc("name under `endpoints`")]
    model: Annotated[Name, doc("the model's name there")]
    price: Annotated[Price | None, doc("absent: litellm's price map")] = None
    equivalent: Annotated[bool, doc("`false`: other quantisation or context; left out of savings")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One name that clients ask for; needs at least one engine or overflow target."""

    name: Annotated[Name, doc("what clients send as `model`")]
    aliases: Annotated[tuple[Name, ...], doc("other names for it")] = ()
    engines: Annotated[tuple[str, ...], doc("names under `engines`")] = ()
    served_as: Annotated[Name | None, doc("its name at the engines; absent: `name`")] = None
    overflow: Annotated[tuple[OverflowTarget, ...], doc("endpoints, in order")] = ()
    policy: Annotated[str, doc("name of a policy")] = "balanced"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What file and Config have in common."""

    listen: Annotated[Listen, doc("where clients connect")] = field(default_factory=Listen)
    ledger: Annotated[LedgerConfig, doc("where costs are written")] = field(default_factory=LedgerConfig)
    clients: Annotated[Clients | None, doc("who may send requests")] = None
    admin: Annotated[Admin | None, doc("the control plane")] = None
    scrape: Annotated[Scrape, doc("how engines are watched")] = field(default_factory=Scrape)
    limits: Annotated[Limits, doc("what is accepted")] = field(default_factory=Limits)
    shutdown: Annotated[Shutdown, doc("how it stops")] = field(default_factory=Shutdown)
    engines: Annotated[tuple[EngineConfig, ...], doc("self-hosted vLLM servers")] = ()
    endpoints: Annotated[tuple[EndpointConfig, ...], doc("per-token APIs")] = ()


@dataclass(frozen=True, kw_only=True)
class SpillgateFile(Settings):
    """The top of spillgate.yaml."""

    models: Annotated[tuple[ModelConfig, ...], MinLen(1), doc("what clients may ask for")]
    policies: Annotated[
        Path | None, doc("folder with one file per policy; absent: the built-in ones only")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """A configuration that is valid as a whole. `policies`: built-in ones and the folder's, by name."""

    models: tuple[ModelConfig, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=lambda: SHIPPED)

    @classmethod
    def of(cls, file: SpillgateFile, policies: Mapping[str, Policy]) -> "Config":
        """The file's settings with its policies read."""
        shared = {f.name: getattr(file, f.name) for f in fields(Settings)}
        return cls(**shared, models=file.models, policies=policies)
