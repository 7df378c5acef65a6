"""Programs over sounds, series, points and motions, and some more ways to train: what speech, forecasting, rendering and
tracking libraries do.
"""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from small_programs import Programs, gives_what_eager_gives, learn
from torch import nn
from torch.distributions import Categorical, NegativeBinomial, StudentT
from torch.nn.utils import parametrize

import torch_xla  # noqa: F401

program = Programs()


def made(device, *shapes):
    return [torch.randn(shape).to(device) for shape in shapes]


def adam(model, lr=1e-2):
    return torch.optim.Adam(model.parameters(), lr=lr)


# --- Sounds and series


@program
def voices_told_apart_whoever_is_named_first(device):
    """Masks over a spectrogram; the better of the two ways to match voices counts."""
    model = nn.GRU(33, 24, batch_first=True).to(device)
    heads = nn.Linear(24, 66).to(device)
    window = torch.hann_window(64).to(device)
    voices = torch.sin(torch.arange(512) * torch.tensor([[0.05], [0.31]])).to(device)
    mixed = voices.sum(0, keepdim=True)

    def likeness(x, y):
        y = y - y.mean(-1, keepdim=True)
        scaled = (x * y).sum(-1, keepdim=True) / y.square().sum(-1, keepdim=True) * y
        return 10 * torch.log10(
            scaled.square().sum(-1) / ((x - scaled).square().sum(-1) + 1e-8) + 1e-8
        )

    def loss(_):
        spectrum = torch.stft(mixed, 64, 16, window=window, return_complex=True)
        hidden, _ = model(spectrum.abs().log1p().mT)
        masks = heads(hidden).sigmoid().view(1, -1, 2, 33).permute(0, 2, 3, 1)
        parts = torch.istft((masks * spectrum[:, None])[0], 64, 16, window=window, length=512)
        ways = [likeness(parts, voices[list(p)]).mean() for p in itertools.permutations(range(2))]
        return -torch.stack(ways).max()

    both = nn.ModuleList([model, heads])
    return learn(both, adam(both), loss)


@program
def sound_of_dilated_layers(device):
    """Gated convolutions that see the past alone, steps of eight bits in a logarithmic scale."""
    blocks = [nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(3)]
    model = nn.ModuleList([nn.Embedding(256, 8), nn.Conv1d(8, 256, 1), *blocks]).to(device)
    wave = torch.sin(torch.arange(65) * 0.2).to(device)
    coded = wave.sign() * torch.log1p(255 * wave.abs()) / math.log(256)
    codes = ((coded + 1) / 2 * 255 + 0.5).long()

    def loss(model):
        x = model[0](codes[None, :-1]).mT
        for i, block in enumerate(model[2:]):
            gate, signal = block(F.pad(x, (2**i, 0))).chunk(2, 1)
            x = x + gate.sigmoid() * signal.tanh()
        return F.cross_entropy(model[1](x), codes[None, 1:])

    return learn(model, adam(model), loss)


@program
def state_that_chooses_what_it_keeps(device):
    """A selective state space in a loop over time, behind a convolution of each channel alone."""
    width, states = 6, 4
    layers = [
        nn.Conv1d(width, width, 3, groups=width, padding=2),
        nn.Linear(width, width + 2 * states),
    ]
    model = nn.ModuleList([*layers, nn.Linear(width, width)]).to(device)
    rates = torch.arange(1.0, states + 1).repeat(width, 1).log().to(device)
    (x,) = made(device, (2, 9, width))

    def loss(model):
        u = F.silu(model[0](x.mT)[..., :9]).mT
        step, b, c = model[1](u).split([width, states, states], -1)
        step = F.softplus(step)
        decay = torch.exp(-step[..., None] * rates.exp())
        driven = step[..., None] * b[:, :, None] * u[..., None]
        state, seen = torch.zeros_like(decay[:, 0]), []
        for t in range(9):
            state = decay[:, t] * state + driven[:, t]
            seen.append((state * c[:, t, None]).sum(-1))
        return (model[2](torch.stack(seen, 1)) - x.roll(-1, 1)).square().mean()

    return learn(model, adam(model), loss)


@program
def series_by_trend_and_season(device):
    """A moving average and what is left; the strongest lags of the autocorrelation choose what is looked back at."""
    trend, season = nn.Linear(32, 8), nn.Linear(32, 8)
    model = nn.ModuleList([trend, season]).to(device)
    days = torch.arange(40.0)
    x = (torch.sin(days / 3) + days / 20 + torch.tensor([[0.0], [1.0], [2.0]])).to(device)

    def loss(model):
        past, future = x[:, :32], x[:, 32:]
        slow = F.avg_pool1d(F.pad(past[:, None], (4, 4), mode="replicate"), 9, 1)[:, 0]
        rest = past - slow
        spectrum = torch.fft.rfft(rest)
        alike = torch.fft.irfft(spectrum * spectrum.conj(), n=32)
        weights, lags = alike.mean(0).topk(3)
        rolled = sum(
            w * rest.roll(-int(lag), -1) for w, lag in zip(weights.softmax(0), lags, strict=True)
        )
        return F.huber_loss(model[0](slow) + model[1](rolled), future)

    return learn(model, adam(model), loss)


@program
def forecasts_with_their_doubt(device):
    """Counts and heavy tails: the network says the parameters of what it expects (DeepAR)."""
    cell, head = nn.LSTMCell(1, 6), nn.Linear(6, 5)
    model = nn.ModuleList([cell, head]).to(device)
    counts = torch.poisson(torch.full((4, 10), 3.0)).to(device)
    (sizes,) = made(device, (4, 10))

    def loss(model):
        h = c = torch.zeros(4, 6, device=device)
        total = 0.0
        for t in range(9):
            h, c = model[0](counts[:, t, None].log1p(), (h, c))
            number, logit, mean, scale, tails = model[1](h).unbind(-1)
            total = total - NegativeBinomial(F.softplus(number), logits=logit).log_prob(
                counts[:, t + 1]
            )
            total = total - StudentT(2 + F.softplus(tails), mean, F.softplus(scale)).log_prob(
                sizes[:, t + 1]
            )
        return total.mean()

    return learn(model, adam(model), loss)


# --- Points and views


@program
def rendering_along_rays(device):
    """Densities and colours along rays, sampled anew where there was something (NeRF)."""
    model = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    origins, directions = torch.zeros(5, 3).to(device), F.normalize(made(device, (5, 3))[0], dim=-1)
    colours, places = torch.rand(5, 3).to(device), torch.linspace(0.5, 4, 8).to(device)
    chances = torch.linspace(0.05, 0.95, 6).expand(5, 6).contiguous().to(device)

    def render(depths):
        points = origins[:, None] + directions[:, None] * depths[..., None]
        waves = [f(points * 2**i) for i in range(2) for f in (torch.sin, torch.cos)]
        out = model(torch.cat([points, *waves], -1))
        gaps = torch.cat([depths.diff(dim=-1), torch.full((5, 1), 1e2).to(device)], -1)
        opaque = 1 - torch.exp(-F.softplus(out[..., 3]) * gaps)
        through = torch.cumprod(1 - opaque + 1e-10, -1).roll(1, -1)
        through = torch.cat([torch.ones_like(through[:, :1]), through[:, 1:]], -1)
        weights = opaque * through
        return (weights[..., None] * out[..., :3].sigmoid()).sum(1), weights

    def loss(_):
        coarse, weights = render(places.expand(5, 8))
        part = weights[:, 1:-1].detach() + 1e-5
        below = F.pad((part / part.sum(-1, keepdim=True)).cumsum(-1), (1, 0))
        above = torch.searchsorted(below, chances, right=True).clamp(1, 6)
        left, right = below.gather(1, above - 1), below.gather(1, above)
        share = (chances - left) / (right - left).clamp(min=1e-5)
        middles = (places[1:] + places[:-1]) / 2
        fine = middles[above - 1] + share * (middles[above] - middles[above - 1])
        depths = torch.cat([places.expand(5, 8), fine], -1).sort(-1).values
        return F.mse_loss(coarse, colours) + F.mse_loss(render(depths)[0], colours)

    return learn(model, adam(model), loss)


@program
def cloud_of_points_in_neighbourhoods(device):
    """The farthest points are centres, the nearest of each its neighbourhood; a cloud comes back (PointNet++)."""
    model = nn.ModuleList([nn.Linear(3, 12), nn.BatchNorm1d(12), nn.Linear(12, 60)]).to(device)
    (points,) = made(device, (2, 20, 3))

    def farthest(points, count):
        distance = torch.full(points.shape[:2], torch.inf, device=device)
        chosen, last = [], torch.zeros(len(points), dtype=torch.long, device=device)
        for _ in range(count):
            chosen.append(last)
            centre = points.gather(1, last[:, None, None].expand(-1, 1, 3))
            distance = torch.minimum(distance, (points - centre).square().sum(-1))
            last = distance.argmax(-1)
        return torch.stack(chosen, 1)

    def loss(model):
        rows = torch.arange(2, device=device)[:, None]
        centres = points[rows, farthest(points, 5)]
        near = torch.cdist(centres, points).topk(4, largest=False).indices
        local = points[rows[..., None], near] - centres[:, :, None]
        features = model[1](model[0](local).flatten(0, 2)).view(2, 5, 4, 12).relu().amax(2)
        made_again = model[2](features.amax(1)).view(2, 20, 3)
        apart = torch.cdist(made_again, points)
        return apart.amin(1).mean() + apart.amin(2).mean()

    return learn(model, adam(model), loss)


@program
def molecules_that_turn_with_their_places(device):
    """Messages along edges move places as well as features (EGNN); the energy does not see a rotation."""
    model = nn.ModuleList([nn.Linear(9, 8), nn.Linear(8, 1), nn.Linear(12, 4)]).to(device)
    features, places = made(device, (6, 4), (6, 3))
    pairs = torch.combinations(torch.arange(6)).T
    first, second = torch.cat([pairs, pairs.flip(0)], 1).to(device)
    turn = torch.linalg.qr(torch.randn(3, 3))[0].to(device)

    def energy(places):
        h, x = features, places
        for _ in range(2):
            away = x[first] - x[second]
            message = F.silu(
                model[0](torch.cat([h[first], h[second], away.square().sum(-1, True)], -1))
            )
            x = x.index_add(0, first, away * model[1](message).tanh() / 6)
            gathered = torch.zeros(6, 8, device=device).scatter_add_(
                0, first[:, None].expand_as(message), message
            )
            h = h + model[2](torch.cat([h, gathered], -1))
        return h.sum() + (x[first] - x[second]).norm(dim=-1).sum() / 20

    def loss(_):
        x = places.clone().requires_grad_()
        (force,) = torch.autograd.grad(energy(x), x, create_graph=True)
        return force.square().mean()

    return learn(model, adam(model, 1e-3), loss), energy(places) - energy(places @ turn)


@program
def motion_between_two_images(device):
    """All pairs of places are compared, and a recurrent cell looks them up where it believes to be (RAFT)."""
    encoder, update = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(11, 2, 3, padding=1)
    upward = nn.Conv2d(2, 36, 3, padding=1)
    model = nn.ModuleList([encoder, update, upward]).to(device)
    image = torch.rand(1, 1, 8, 8).to(device)
    moved = image.roll(1, -1)
    ys, xs = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    grid = torch.stack([xs, ys], 0)[None].to(device)

    def loss(model):
        a, b = model[0](image), model[0](moved)
        volume = torch.einsum("bchw,bcij->bhwij", a, b).reshape(64, 1, 8, 8) / 6**0.5
        flow, total = torch.zeros_like(grid), 0.0
        for _ in range(3):
            flow = flow.detach()
            centre = (grid + flow).permute(0, 2, 3, 1).reshape(64, 1, 1, 2)
            around = torch.tensor([[-1.0, 0], [0, 0], [1, 0]]).to(device).view(1, 1, 3, 2)
            seen = F.grid_sample(volume, (centre + around) / 3.5 - 1, align_corners=True)
            inputs = torch.cat([seen.view(1, 8, 8, 3).permute(0, 3, 1, 2), flow, a], 1)
            flow = flow + model[1](inputs)
            mask = model[2](flow).view(1, 1, 9, 2, 2, 8, 8).softmax(2)
            windows = F.unfold(2 * flow, 3, padding=1).view(1, 2, 9, 1, 1, 8, 8)
            large = (mask * windows).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(1, 2, 16, 16)
            total = (
                total + (large - torch.tensor([2.0, 0]).to(device).view(1, 2, 1, 1)).abs().mean()
            )
        return total

    return learn(model, adam(model, 1e-3), loss)


@program
def frames_that_come_next(device):
    """A recurrent cell of convolutions, and windows in time and space (ConvLSTM)."""
    cell, out = nn.Conv2d(7, 24, 3, padding=1), nn.Conv3d(6, 1, (2, 1, 1))
    model = nn.ModuleList([cell, out]).to(device)
    start = torch.rand(2, 1, 1, 6, 6)
    film = torch.cat([start.roll(t, -1) for t in range(5)], 2).to(device)

    def loss(model):
        h = c = torch.zeros(2, 6, 6, 6, device=device)
        states = []
        for t in range(4):
            i, f, o, g = model[0](torch.cat([film[:, :, t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        guess = model[1](F.pad(torch.stack(states, 2), (0, 0, 0, 0, 1, 0)))
        return F.binary_cross_entropy_with_logits(guess, film[:, :, 1:])

    return learn(model, adam(model), loss)


@program
def objects_as_a_set(device):
    """Each object is matched with one guess, the cheapest way (DETR); boxes overlap as far as they can."""
    decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.ModuleList([decoder, nn.Embedding(5, 8), nn.Linear(8, 4), nn.Linear(8, 4)])
    model = model.to(device)
    image, kinds = made(device, (1, 9, 8))[0], torch.tensor([0, 2]).to(device)
    boxes = torch.tensor([[0.3, 0.3, 0.2, 0.4], [0.7, 0.6, 0.3, 0.2]]).to(device)

    def corners(box):
        centre, size = box.split(2, -1)
        return torch.cat([centre - size / 2, centre + size / 2], -1)

    def overlap(a, b):
        a, b = corners(a)[:, None], corners(b)[None]
        area = lambda x: (x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1)  # noqa: E731
        common = torch.cat([torch.maximum(a, b)[..., :2], torch.minimum(a, b)[..., 2:]], -1)
        around = torch.cat([torch.minimum(a, b)[..., :2], torch.maximum(a, b)[..., 2:]], -1)
        union = area(a) + area(b) - area(common)
        return area(common) / union - (area(around) - union) / area(around)

    def loss(model):
        hidden = model[0](model[1].weight[None], image)[0]
        chances, guesses = model[2](hidden), model[3](hidden).sigmoid()
        costs = torch.cdist(guesses, boxes, p=1) - overlap(guesses, boxes)
        costs = costs - chances.softmax(-1)[:, kinds]
        mine, theirs = map(torch.as_tensor, linear_sum_assignment(costs.detach().cpu().numpy()))
        labels = torch.full((5,), 3, device=device)
        labels[mine] = kinds[theirs]
        weight = torch.tensor([1.0, 1, 1, 0.1]).to(device)
        fits = overlap(guesses[mine], boxes[theirs]).diagonal()
        return F.cross_entropy(chances, labels, weight) + (1 - fits).mean()

    return learn(model, adam(model), loss)


# --- Ways to train


class LowRank(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.down, self.up = (
            nn.Parameter(torch.randn(2, columns) / 2),
            nn.Parameter(torch.zeros(rows, 2)),
        )

    def forward(self, weight):
        return weight + self.up @ self.down


@program
def a_few_directions_beside_frozen_weights(device):
    """Two adapters on one model, learned and then made part of it (LoRA)."""
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)).requires_grad_(False)
    for layer in (model[0], model[2]):
        parametrize.register_parametrization(layer, "weight", LowRank(*layer.weight.shape))
    model.to(device)
    (x,), y = made(device, (7, 6)), torch.randint(3, (7,)).to(device)
    learned = [p for p in model.parameters() if p.requires_grad]
    losses = learn(
        model, torch.optim.AdamW(learned, lr=1e-2), lambda m: F.cross_entropy(m(x), y), steps=4
    )
    with parametrize.cached():
        before = model(x)
    for layer in (model[0], model[2]):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
    return losses, before, model(x) - before, len(learned)


@program
def matrices_whose_steps_are_orthogonal(device):
    """Momenta made orthogonal by a polynomial (Muon), and preconditioned by roots of matrices (Shampoo)."""
    model, (x, y) = nn.Linear(6, 4, bias=False).to(device), made(device, (10, 6), (10, 4))
    momentum, sides = torch.zeros(4, 6, device=device), [1e-1 * torch.eye(n) for n in (4, 6)]
    sides = [side.to(device) for side in sides]
    losses = []
    for step in range(4):
        loss = F.mse_loss(model(x), y)
        (gradient,) = torch.autograd.grad(loss, model.weight)
        losses.append(loss.item())
        if step % 2 == 0:
            momentum.lerp_(gradient, 0.5)
            u = momentum / momentum.norm()
            for _ in range(4):
                product = u @ u.mT
                u = 3.4445 * u + (-4.775 * product + 2.0315 * product @ product) @ u
        else:
            sides = [sides[0] + gradient @ gradient.mT, sides[1] + gradient.mT @ gradient]
            roots = []
            for side in sides:
                values, vectors = torch.linalg.eigh(side)
                roots.append(vectors * values.clamp(min=1e-6) ** -0.25 @ vectors.mT)
            u = roots[0] @ gradient @ roots[1]
        with torch.no_grad():
            model.weight.sub_(u, alpha=0.05)
    return losses, model.weight


@program
def choices_that_change_by_little(device):
    """Advantages from the end back to the start, and ratios that are cut off (PPO)."""
    model = nn.ModuleList([nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)]).to(device)
    (states,), actions = made(device, (12, 4)), torch.randint(3, (12,)).to(device)
    rewards, ends = torch.rand(12).to(device), (torch.arange(12) % 5 == 4).float().to(device)

    def both(states):
        hidden = model[0](states).tanh()
        return Categorical(logits=model[1](hidden)), model[2](hidden)[:, 0]

    with torch.no_grad():
        policy, values = both(states)
        old = policy.log_prob(actions)
        ahead, advantages = torch.zeros((), device=device), torch.zeros_like(values)
        for t in reversed(range(12)):
            following = values[t + 1] if t < 11 else torch.zeros((), device=device)
            surprise = rewards[t] + 0.9 * following * (1 - ends[t]) - values[t]
            ahead = surprise + 0.9 * 0.95 * (1 - ends[t]) * ahead
            advantages[t] = ahead
    returns = advantages + values
    order, losses, optimizer = torch.arange(12).view(3, 4).T.reshape(-1).to(device), [], adam(model)
    for at in order.split(6):
        policy, values = both(states[at])
        ratio = (policy.log_prob(actions[at]) - old[at]).exp()
        gain = (advantages[at] - advantages[at].mean()) / (advantages[at].std() + 1e-8)
        surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        loss = F.mse_loss(values, returns[at]) - surrogate - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def features_of_which_few_are_on(device):
    """The largest few of each row stay; what was never on starts anew (sparse autoencoder)."""
    encoder, decoder = nn.Linear(6, 16), nn.Linear(16, 6)
    model, (x,) = nn.ModuleList([encoder, decoder]).to(device), made(device, (20, 6))
    ever = torch.zeros(16, dtype=torch.bool, device=device)

    def loss(model):
        hidden = model[0](x)
        values, places = hidden.topk(2)
        kept = torch.zeros_like(hidden).scatter(-1, places, values.relu())
        ever.index_fill_(0, places.unique(), True)
        return F.mse_loss(model[1](kept), x)

    losses = learn(model, adam(model), loss)
    with torch.no_grad():
        worst = (model[1](model[0](x)) - x).square().sum(-1).argsort(descending=True)
        dead = torch.nonzero(~ever)[:, 0]
        model[0].weight[dead] = x[worst[: len(dead)]] * 0.2
        model[1].weight.div_(model[1].weight.norm(dim=0, keepdim=True))
    return losses, ever.sum(), model[0].weight, loss(model)


@program
def paths_of_a_sampler(device):
    """Momenta and a potential whose gradient torch finds; what loses energy is refused (HMC)."""
    centre = made(device, (3,))[0]
    starts, chances = torch.randn(6, 4, 3).to(device), torch.rand(6, 4).to(device)

    def potential(q):
        return ((q - centre).square() + 0.1 * q**4).sum(-1)

    def force(q):
        q = q.detach().requires_grad_()
        return torch.autograd.grad(potential(q).sum(), q)[0]

    q, kept = torch.zeros(4, 3, device=device), []
    for start, chance in zip(starts, chances, strict=True):
        new, p = q, start - 0.05 * force(q)
        for i in range(5):
            new = new + 0.1 * p
            p = p - (0.1 if i < 4 else 0.05) * force(new)
        lost = potential(new) + p.square().sum(-1) / 2 - potential(q) - start.square().sum(-1) / 2
        accepted = chance < torch.exp(-lost)
        q = torch.where(accepted[:, None], new, q)
        kept.append(accepted.float().mean())
    return kept, q


@pytest.mark.parametrize("run", program)
def test_gives_what_eager_gives(run):
    gives_what_eager_gives(run)
