"""Random numbers: what they are distributed like, and what brings the same ones back.

The numbers of a test are always the same, because it seeds them: a wrong distribution fails it, a right one never does. The
limit of a test's p-value, 1e-4, is what a right distribution would fall below for one seed of ten thousand; 20,000 numbers
show a distribution function that is wrong by 0.016.
"""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import distributions, nn
from torch.utils.checkpoint import checkpoint

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as metrics

COUNT = 20_000
P_VALUE = 1e-4
FLOATS = [torch.float32, torch.float64]


def empty(dtype=torch.float32):
    return torch.empty(COUNT, device="xla", dtype=dtype)


def full(value, dtype=torch.float32):
    return torch.full((COUNT,), value, device="xla", dtype=dtype)


def on_device(*values):
    return torch.tensor(values, device="xla")


# How numbers are drawn in a type, and what they are distributed like.
CONTINUOUS = {
    "rand": (lambda t: torch.rand(COUNT, device="xla", dtype=t), stats.uniform()),
    "uniform_": (lambda t: empty(t).uniform_(-2, 5), stats.uniform(-2, 7)),
    "randn": (lambda t: torch.randn(COUNT, device="xla", dtype=t), stats.norm()),
    "normal_": (lambda t: empty(t).normal_(3, 0.5), stats.norm(3, 0.5)),
    "normal": (lambda t: torch.normal(full(3.0, t), full(0.5, t)), stats.norm(3, 0.5)),
    "exponential_": (lambda t: empty(t).exponential_(2.5), stats.expon(scale=1 / 2.5)),
    "log_normal_": (lambda t: empty(t).log_normal_(0.3, 0.7), stats.lognorm(0.7, 0, np.exp(0.3))),
    "cauchy_": (lambda t: empty(t).cauchy_(1, 2), stats.cauchy(1, 2)),
    "gamma of a small shape": (lambda t: torch._standard_gamma(full(0.4, t)), stats.gamma(0.4)),
    "gamma": (lambda t: torch._standard_gamma(full(7.5, t)), stats.gamma(7.5)),
    "dirichlet": (
        lambda t: torch._sample_dirichlet(full(2.0, t)[:, None] * on_device(1.0, 2.5))[:, 0],
        stats.beta(2, 5),
    ),
    "rrelu": (lambda t: -F.rrelu(full(-1.0, t), 0.1, 0.9, training=True), stats.uniform(0.1, 0.8)),
    "trunc_normal_": (lambda t: nn.init.trunc_normal_(empty(t), a=-1, b=2), stats.truncnorm(-1, 2)),
    "complex randn": (
        lambda t: torch.view_as_real(torch.randn(COUNT, device="xla", dtype=t.to_complex()))[:, 1],
        stats.norm(scale=0.5**0.5),
    ),
    "complex rand": (
        lambda t: torch.view_as_real(torch.rand(COUNT, device="xla", dtype=t.to_complex()))[:, 1],
        stats.uniform(),
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution(name, dtype, device):
    draw, expected = CONTINUOUS[name]
    torch.manual_seed(0)
    numbers = draw(dtype)
    assert numbers.device == device and numbers.dtype == dtype
    assert stats.kstest(numbers.cpu().numpy(), expected.cdf).pvalue > P_VALUE


def check_counts(numbers, expected):
    """Chi-square's test of how often each integer was drawn; those expected less than ten times count as one."""
    values = np.arange(int(expected.ppf(1e-9)), int(expected.ppf(1 - 1e-9)) + 1)
    drawn = np.asarray(numbers, dtype=np.int64)
    assert set(drawn) <= set(values)
    wanted = expected.pmf(values) * len(drawn)
    counts = (drawn[:, None] == values).sum(0)
    often = wanted >= 10
    counts = np.append(counts[often], counts[~often].sum())
    wanted = np.append(wanted[often], len(drawn) - wanted[often].sum())
    if wanted[-1] < 1:
        counts, wanted = counts[:-1], wanted[:-1]
    assert stats.chisquare(counts, wanted * counts.sum() / wanted.sum()).pvalue > P_VALUE


DISCRETE = {
    "bernoulli": (lambda: torch.bernoulli(full(0.3)), stats.bernoulli(0.3)),
    "bernoulli_": (lambda: empty(torch.int64).bernoulli_(0.3), stats.bernoulli(0.3)),
    "bernoulli_ of a tensor": (lambda: empty().bernoulli_(full(0.3)), stats.bernoulli(0.3)),
    "geometric_": (lambda: empty().geometric_(0.2), stats.geom(0.2)),
    "randint": (lambda: torch.randint(-3, 9, (COUNT,), device="xla"), stats.randint(-3, 9)),
    "randint_like": (lambda: torch.randint_like(empty(), 12), stats.randint(0, 12)),
    "randint of 2^16": (
        lambda: torch.randint(0, 2**16, (COUNT,), device="xla") >> 12,
        stats.randint(0, 16),
    ),
    "randint of more": (
        lambda: torch.randint(0, 2**16 + 16, (COUNT,), device="xla") // 4097,
        stats.randint(0, 16),
    ),
    "random_": (lambda: empty(torch.uint8).random_(), stats.randint(0, 256)),
    "random_ of a range": (lambda: empty().random_(5, 25), stats.randint(5, 25)),
    "random_ of bools": (lambda: empty(torch.bool).random_(), stats.randint(0, 2)),
    "poisson of a small rate": (lambda: torch.poisson(full(0.7)), stats.poisson(0.7)),
    "poisson": (lambda: torch.poisson(full(30.0)), stats.poisson(30)),
    "binomial": (lambda: torch.binomial(full(40.0), full(0.3)), stats.binom(40, 0.3)),
    "binomial of few": (lambda: torch.binomial(full(3.0), full(0.9)), stats.binom(3, 0.9)),
    "multinomial": (
        lambda: torch.multinomial(torch.ones(12, device="xla"), COUNT, replacement=True),
        stats.randint(0, 12),
    ),
    "multinomial of weights": (
        lambda: torch.multinomial(on_device(1.0, 3.0), COUNT, replacement=True),
        stats.bernoulli(0.75),
    ),
    "multinomial without replacement": (
        # The first of two classes drawn of three, of which one is never drawn.
        lambda: torch.multinomial(on_device(1.0, 3.0, 0.0).expand(COUNT, 3), 2)[:, 0],
        stats.bernoulli(0.75),
    ),
    "randperm": (
        # Where a permutation of many puts each of ten equal parts of the numbers.
        lambda: torch.randperm(COUNT, device="xla")[: COUNT // 4] // (COUNT // 10),
        stats.randint(0, 10),
    ),
    "dropout": (lambda: F.dropout(full(1.0), 0.35) == 0, stats.bernoulli(0.35)),
    "dropout1d": (
        lambda: F.dropout1d(torch.ones(COUNT, 1, 2, device="xla"), 0.35)[:, 0, 0] == 0,
        stats.bernoulli(0.35),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name, device):
    draw, expected = DISCRETE[name]
    torch.manual_seed(0)
    numbers = draw()
    assert numbers.device == device
    check_counts(numbers.cpu().numpy(), expected)


def scalars(*values):
    return [torch.tensor(value, device="xla") for value in values]


OF_TORCH = {
    "Beta": (lambda: distributions.Beta(*scalars(2.0, 5.0)), stats.beta(2, 5)),
    "Gamma": (lambda: distributions.Gamma(*scalars(2.0, 5.0)), stats.gamma(2, scale=1 / 5)),
    "Chi2": (lambda: distributions.Chi2(*scalars(3.0)), stats.chi2(3)),
    "StudentT": (lambda: distributions.StudentT(*scalars(3.0)), stats.t(3)),
    "Laplace": (lambda: distributions.Laplace(*scalars(1.0, 2.0)), stats.laplace(1, 2)),
    "Gumbel": (lambda: distributions.Gumbel(*scalars(1.0, 2.0)), stats.gumbel_r(1, 2)),
    "Weibull": (lambda: distributions.Weibull(*scalars(2.0, 3.0)), stats.weibull_min(3, scale=2)),
    "Pareto": (lambda: distributions.Pareto(*scalars(2.0, 3.0)), stats.pareto(3, scale=2)),
    "VonMises": (lambda: distributions.VonMises(*scalars(0.0, 3.0)), stats.vonmises(3)),
    "HalfCauchy": (lambda: distributions.HalfCauchy(*scalars(2.0)), stats.halfcauchy(scale=2)),
    "Poisson": (lambda: distributions.Poisson(*scalars(4.0)), stats.poisson(4)),
    "Categorical": (
        lambda: distributions.Categorical(torch.ones(12, device="xla")),
        stats.randint(0, 12),
    ),
    # torch counts the failures, scipy the trials.
    "Geometric": (lambda: distributions.Geometric(*scalars(0.3)), stats.geom(0.3, loc=-1)),
    "NegativeBinomial": (
        lambda: distributions.NegativeBinomial(*scalars(5.0, 0.4)),
        stats.nbinom(5, 0.6),
    ),
}


@pytest.mark.parametrize("name", OF_TORCH)
def test_torch_distribution(name, device):
    make, expected = OF_TORCH[name]
    torch.manual_seed(0)
    numbers = make().sample((COUNT,))
    assert numbers.device == device
    if hasattr(expected, "pmf"):
        check_counts(numbers.cpu().numpy(), expected)
    else:
        assert stats.kstest(numbers.cpu().numpy(), expected.cdf).pvalue > P_VALUE


def test_permutations_are_of_all_kinds(device):
    """Each of the six orders of three, and each number once."""
    torch.manual_seed(0)
    orders = torch.stack([torch.randperm(3, device=device).cpu() for _ in range(600)])
    assert (orders.sort(1).values == torch.arange(3)).all()
    numbers = (orders * torch.tensor([9, 3, 1])).sum(1).numpy()
    _, counts = np.unique(numbers, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > P_VALUE


def test_draws_are_unlike_each_other(device):
    """Within a step and across steps, whatever the sizes; and they do not depend on each other."""
    torch.manual_seed(0)
    draws = []
    for _ in range(4):
        draws += [torch.rand(500, device=device, dtype=torch.float64) for _ in range(5)]
        draws.append(torch.rand(20, 25, device=device, dtype=torch.float64).flatten())
        torch_xla.sync()
    numbers = torch.stack(draws).cpu()
    assert numbers.unique().numel() == numbers.numel()
    # Of 24 rows of 500, two of which correlate by 0.045 at one deviation.
    correlations = torch.corrcoef(numbers).fill_diagonal_(0)
    assert correlations.abs().max() < 5 * 0.045


def test_a_new_seed_or_step_compiles_nothing(device):
    def step():
        return F.dropout(torch.rand(9, device=device), 0.3).sum().item()

    results = {step()}
    before = metrics.counter_value("ProgramCompile")
    for seed in range(4):
        torch_xla.manual_seed(seed)
        results |= {step(), step()}
    assert len(results) == 9
    assert metrics.counter_value("ProgramCompile") == before


def numbers(**options):
    return torch.rand(4, device="xla", **options).tolist()


SEEDS = {
    "torch": torch.manual_seed,
    "torch_xla": torch_xla.manual_seed,
    "xla_model": xm.set_rng_state,
    "device module": torch.xla.manual_seed,
    "all devices": torch.xla.manual_seed_all,
}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(name):
    SEEDS[name](7)
    first, second = numbers(), numbers()
    SEEDS[name](7)
    assert [numbers(), numbers()] == [first, second]
    SEEDS[name](8)
    assert numbers() not in (first, second)


def test_every_seed_begins_the_same_stream():
    streams = []
    for seed in SEEDS.values():
        seed(7)
        streams.append([numbers(), numbers()])
    assert all(stream == streams[0] for stream in streams)


@pytest.mark.parametrize("seed", [torch.seed, torch.xla.seed, torch.xla.seed_all])
def test_seeds_of_chance(seed):
    torch.manual_seed(7)
    first = numbers()
    seed()
    assert numbers() != first


def test_generator():
    generator = torch.Generator(device="xla").manual_seed(3)
    assert generator.device.type == "xla" and generator.initial_seed() == 3
    first = numbers(generator=generator)
    state = generator.get_state()
    second = numbers(generator=generator)
    assert first != second
    generator.set_state(state)
    assert numbers(generator=generator) == second
    assert numbers(generator=torch.Generator(device="xla").manual_seed(3)) == first
    # The default generator does not move.
    torch.manual_seed(3)
    expected = [numbers(), numbers()]
    torch.manual_seed(3)
    assert numbers() == expected[0]
    numbers(generator=generator)
    assert numbers() == expected[1]


@pytest.mark.parametrize(
    "copied",
    [lambda g: g.clone_state(), lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy],
    ids=["clone_state", "pickle", "deepcopy"],
)
def test_copied_generator_draws_the_same(copied):
    generator = torch.Generator(device="xla").manual_seed(3)
    numbers(generator=generator)
    twin = copied(generator)
    assert numbers(generator=twin) == numbers(generator=generator)


DRAWS = {
    "rand": lambda d, g: torch.rand(3, device=d, generator=g),
    "normal_": lambda d, g: torch.zeros(3, device=d).normal_(generator=g),
    "randperm": lambda d, g: torch.randperm(3, device=d, generator=g),
    "randint": lambda d, g: torch.randint(3, (3,), device=d, generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.ones(3, device=d), 1, generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.full((3,), 0.5, device=d), generator=g),
    "poisson": lambda d, g: torch.poisson(torch.ones(3, device=d), generator=g),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("places", [("cpu", "xla"), ("xla", "cpu")], ids=["on xla", "on cpu"])
def test_generator_of_another_device_is_refused(draw, places):
    of_generator, of_tensor = places
    generator = torch.Generator(device=of_generator)
    with pytest.raises(RuntimeError, match=f"'{of_tensor}'.*generator.*found '{of_generator}"):
        DRAWS[draw](of_tensor, generator)


@pytest.mark.parametrize("draw", DRAWS)
def test_every_operator_draws_from_the_generator(draw):
    def drawn(generator=None):
        return [DRAWS[draw]("xla", generator).tolist() for _ in range(6)]

    expected = drawn(torch.Generator(device="xla").manual_seed(5))
    assert drawn(torch.Generator(device="xla").manual_seed(5)) == expected
    torch_xla.manual_seed(5)
    assert drawn() == expected != drawn()


STATES = {
    "xla_model": (xm.get_rng_state, xm.set_rng_state),
    "device module": (torch.xla.get_rng_state, torch.xla.set_rng_state),
    "all devices": (torch.xla.get_rng_state_all, torch.xla.set_rng_state_all),
}


@pytest.mark.parametrize("name", STATES)
def test_state(name):
    get, put = STATES[name]
    torch.manual_seed(7)
    expected = [numbers() for _ in range(3)]
    torch.manual_seed(7)
    assert numbers() == expected[0]
    state = get()  # which changes nothing
    assert [numbers(), numbers()] == expected[1:]
    put(state)
    assert [numbers(), numbers()] == expected[1:]


def test_a_state_is_read_as_it_lies():
    """A state of fewer bytes than its shape says is no state."""
    generator = torch.Generator("xla")
    for state in (torch.zeros(1, dtype=torch.uint8).expand(16), generator.get_state()[:8]):
        with pytest.raises(RuntimeError, match="contiguous CPU tensor of 16 bytes"):
            generator.set_state(state)


FORKS = {
    "torch": lambda: torch.random.fork_rng(device_type="xla"),
    "of a device": lambda: torch.random.fork_rng(devices=[0], device_type="xla"),
    "xla_model": xm.fork_rng,
}


@pytest.mark.parametrize("name", FORKS)
def test_fork(name):
    torch.manual_seed(7)
    expected = [numbers(), numbers()]
    torch.manual_seed(7)
    assert numbers() == expected[0]
    with FORKS[name]():
        assert numbers() == expected[1]
        torch.xla.manual_seed(1)
        numbers()
    assert numbers() == expected[1]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_dropout_is_the_same_under_checkpoint(use_reentrant, device):
    """Backward computes the forward pass again, with the same numbers, and leaves the stream where it was."""
    torch.manual_seed(0)
    layers = (nn.Linear(8, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 8), nn.Dropout(0.3))
    model = nn.Sequential(*layers).to(device)
    x = torch.randn(16, 8, device=device, requires_grad=True)

    def train(forward):
        torch.manual_seed(5)
        results = []
        for _ in range(2):
            y = forward(x)
            x.grad = None
            model.zero_grad()
            y.square().sum().backward()
            results += [y.detach().cpu(), *[t.grad.cpu() for t in (x, *model.parameters())]]
        return [*results, torch.rand(4, device=device).cpu()]

    expected = train(model)
    actual = train(lambda x: checkpoint(model, x, use_reentrant=use_reentrant))
    torch.testing.assert_close(actual, expected)
    assert not torch.equal(expected[0], expected[6])
