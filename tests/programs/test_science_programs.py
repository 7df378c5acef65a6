"""Programs that compute with functions: graphs, equations, probabilities, decisions, and learning to learn."""

import copy
import io
import itertools

import pytest
import torch
import torch.nn.functional as F
from small_programs import Programs, gives_what_eager_gives, learn
from torch import nn
from torch.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Independent,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    kl_divergence,
    transforms,
)
from torch.func import functional_call, grad, hessian, jacrev, stack_module_state, vjp, vmap
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import torch_xla  # noqa: F401

program = Programs()


def made(device, *shapes):
    return [torch.randn(shape).to(device) for shape in shapes]


def neurons(*widths):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


# --- Graphs and tables


@program
def graph_convolutions_by_a_sparse_matrix(device):
    edges = torch.unique(
        torch.cat([torch.randint(6, (2, 12)), torch.arange(6).repeat(2, 1)], 1), dim=1
    )
    edges = edges.to(device)
    degree = torch.bincount(edges[0], minlength=6).float().rsqrt()
    weights = degree[edges[0]] * degree[edges[1]]
    adjacency = torch.sparse_coo_tensor(edges, weights, (6, 6)).coalesce()
    model, (x,) = nn.ModuleList([nn.Linear(5, 8), nn.Linear(8, 3)]).to(device), made(device, (6, 5))
    labels, compressed = torch.randint(3, (6,)).to(device), adjacency.to_sparse_csr()

    def loss(model):
        hidden = F.relu(torch.sparse.mm(adjacency, model[0](x)))
        return F.cross_entropy(compressed @ model[1](hidden), labels)

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    return learn(model, optimizer, loss)


@program
def graphs_of_a_batch_told_apart(device):
    """Sums over neighbours, then over each graph's nodes (GIN)."""
    model = nn.ModuleList([neurons(4, 8, 8), nn.Linear(8, 2)])
    model.own = nn.Parameter(torch.zeros(1))
    model.to(device)
    (x,), edges = made(device, (9, 4)), torch.randint(9, (2, 20)).to(device)
    graph = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2]).to(device)

    def loss(model):
        near = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        nodes = model[0]((1 + model.own) * x + near)
        index = graph[:, None].expand_as(nodes)
        sums = torch.zeros(3, 8, device=device).scatter_add(0, index, nodes)
        highest = torch.zeros(3, 8, device=device).scatter_reduce(
            0, index, nodes, "amax", include_self=False
        )
        return F.cross_entropy(model[1](sums + highest), graph.unique() % 2)

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def graph_attention(device):
    model = nn.ModuleList([nn.Linear(4, 6, bias=False), nn.Linear(6, 1), nn.Linear(6, 1)]).to(
        device
    )
    (x,), (source, target) = made(device, (7, 4)), torch.randint(7, (2, 25)).to(device)

    def loss(model):
        h = model[0](x)
        scores = F.leaky_relu(model[1](h)[source] + model[2](h)[target], 0.2)[:, 0]
        highest = torch.full((7,), -1e9, device=device).index_reduce(0, target, scores, "amax")
        powers = (scores - highest[target]).exp()
        sums = torch.zeros(7, device=device).index_add(0, target, powers)
        messages = h[source] * (powers / sums[target])[:, None]
        return torch.zeros(7, 6, device=device).index_add(0, target, messages).square().mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def recommendations_from_sparse_tables(device):
    """DLRM: tables with sparse gradients, products of all pairs, two optimizers."""
    tables = nn.ModuleList(nn.EmbeddingBag(n, 4, mode="sum", sparse=True) for n in (10, 20))
    dense, top = nn.Linear(3, 4), nn.Linear(7, 1)
    nn.ModuleList([tables, dense, top]).to(device)
    (x,), labels = made(device, (5, 3)), torch.tensor([0.0, 1, 1, 0, 1]).to(device)
    words = [torch.randint(n, (9,)).to(device) for n in (10, 20)]
    begins = torch.tensor([0, 2, 3, 3, 7]).to(device)
    first = torch.optim.SparseAdam(list(tables.parameters()), lr=1e-2)
    second = torch.optim.Adagrad([*dense.parameters(), *top.parameters()], lr=1e-2)
    losses = []
    for _ in range(3):
        first.zero_grad(), second.zero_grad()
        h = dense(x)
        parts = torch.stack([h, *(t(w, begins) for t, w in zip(tables, words, strict=True))], 1)
        a, b = torch.tril_indices(3, 3, -1, device=device)
        pairs = (parts @ parts.transpose(1, 2))[:, a, b]
        loss = F.binary_cross_entropy_with_logits(top(torch.cat([h, pairs], 1))[:, 0], labels)
        loss.backward()
        first.step(), second.step()
        losses.append(loss.item())
    return losses, list(tables.parameters())


@program
def means_of_clusters(device):
    (x,) = made(device, (30, 2))
    centers = x[:3].clone()
    for _ in range(4):
        nearest = torch.cdist(x, centers).argmin(1)
        members = F.one_hot(nearest, 3).to(x.dtype)
        centers = members.t() @ x / members.sum(0).clamp(min=1)[:, None]
    return centers, nearest


# --- Equations


@program
def gaussian_process(device):
    x = torch.linspace(0, 1, 8).to(device)
    y = torch.sin(6 * x)
    logs = nn.Parameter(torch.tensor([-1.0, 0.0, -2.0], device=device))

    def kernel(a, b):
        return logs[1].exp() * torch.exp(-((a[:, None] - b[None]) ** 2) / (2 * logs[0].exp() ** 2))

    def loss(_):
        noisy = kernel(x, x) + logs[2].exp() * torch.eye(8, device=device)
        return -MultivariateNormal(torch.zeros(8, device=device), noisy).log_prob(y)

    losses = learn(None, torch.optim.Adam([logs], lr=0.1), loss)
    with torch.no_grad():
        factor = torch.linalg.cholesky(kernel(x, x) + logs[2].exp() * torch.eye(8, device=device))
        at = torch.tensor([0.3, 0.55]).to(device)
        mean = kernel(at, x) @ torch.cholesky_solve(y[:, None], factor)
        spread = torch.linalg.solve_triangular(factor, kernel(x, at), upper=False)
        return losses, mean, kernel(at, at) - spread.t() @ spread


@program
def differential_equation_with_steps_of_its_choice(device):
    """Two orders at once, whose difference decides on the next step; then backward through all of it."""
    field = neurons(2, 8, 2).to(device)
    x, t, h, steps = torch.tensor([1.0, 0.0], device=device), 0.0, 0.3, []
    while t < 1:
        h = min(h, 1 - t)
        a = field(x)
        b = field(x + h / 2 * a)
        c = field(x + 3 * h / 4 * b)
        better = x + h * (2 * a + 3 * b + 4 * c) / 9
        d = field(better)
        error = (h * (-5 * a / 72 + b / 12 + c / 9 - d / 8)).norm().item() / 1e-4
        if error <= 1:
            t, x = t + h, better
            steps.append(h)
        h *= min(3.0, max(0.3, 0.9 * (error + 1e-9) ** (-1 / 3)))
        if len(steps) > 30:
            break
    x.square().sum().backward()
    return steps[:4], x, [p.grad for p in field.parameters()]


@program
def network_that_fulfils_an_equation(device):
    """The loss holds second derivatives of the network in its input."""
    model, t = (
        neurons(1, 8, 1).to(device),
        torch.linspace(0, 1, 6)[:, None].to(device).requires_grad_(),
    )

    def loss(model):
        u = model(t)
        (first,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), t, create_graph=True)
        return (second + u).square().mean() + (u[0] - 1).square().sum()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


class Equilibrium(torch.autograd.Function):
    """A fixed point, and its gradient by another one."""

    @staticmethod
    def forward(ctx, weight, x):
        z = torch.zeros_like(x)
        for _ in range(20):
            z = torch.tanh(z @ weight + x)
        ctx.save_for_backward(weight, x, z)
        return z

    @staticmethod
    def backward(ctx, gradient):
        weight, _x, z = ctx.saved_tensors
        slope, u = 1 - z * z, gradient
        for _ in range(20):
            u = gradient + (u * slope) @ weight.t()
        return z.t() @ (u * slope), u * slope


@program
def layer_at_equilibrium(device):
    weight = nn.Parameter((0.2 * torch.randn(4, 4)).to(device))
    (x,) = made(device, (3, 4))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    return learn(None, optimizer, lambda _: Equilibrium.apply(weight, x).square().sum()), weight


@program
def energy_that_is_kept(device):
    model, (states,) = neurons(2, 8, 1).to(device), made(device, (5, 2))

    def energy(state):
        return model(state).sum()

    def loss(model):
        slope = vmap(grad(energy))(states)
        flow = torch.stack([slope[:, 1], -slope[:, 0]], 1)
        return (flow - states.flip(1) * torch.tensor([1.0, -1.0], device=device)).square().mean()

    losses = learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)
    _, pull = vjp(model, states)
    return (
        losses,
        hessian(energy)(states[0]),
        jacrev(model)(states[1]),
        pull(torch.ones(5, 1, device=device))[0],
    )


@program
def operator_in_frequencies(device):
    weights = nn.Parameter(torch.randn(2, 4, 3, dtype=torch.complex64) / 4)
    model = nn.ParameterList([weights]).to(device)
    (x,) = made(device, (5, 2, 16))

    def loss(model):
        spectrum = torch.fft.rfft(x)[..., :3]
        mixed = torch.einsum("bix,iox->box", spectrum, model[0])
        return (torch.fft.irfft(mixed, n=16).mean(1) - x[:, 0]).square().mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def filter_of_noisy_states(device):
    move = torch.tensor([[1.0, 0.1], [0.0, 1.0]]).to(device)
    see, drift = torch.tensor([[1.0, 0.0]]).to(device), 0.01 * torch.eye(2, device=device)
    state, spread, seen = torch.zeros(2, 1, device=device), torch.eye(2, device=device), []
    for value in torch.randn(6).to(device):
        state, spread = move @ state, move @ spread @ move.t() + drift
        gain = spread @ see.t() @ torch.linalg.inv(see @ spread @ see.t() + 0.1)
        state = state + gain @ (value - see @ state)
        spread = (torch.eye(2, device=device) - gain @ see) @ spread
        seen.append(state.flatten())
    return seen, spread


@program
def transport_between_two_clouds(device):
    (a, b) = made(device, (5, 2), (6, 2))
    a.requires_grad_()
    cost, f = torch.cdist(a, b) ** 2, torch.zeros(5, device=device)
    for _ in range(10):
        g = -0.5 * torch.logsumexp((f[:, None] - cost) / 0.5, 0)
        f = -0.5 * torch.logsumexp((g[None] - cost) / 0.5, 1)
    plan = ((f[:, None] + g[None] - cost) / 0.5).exp()
    (plan * cost).sum().backward()
    return plan, a.grad


# --- Probabilities


@program
def flow_of_couplings(device):
    model = nn.ModuleList(neurons(1, 8, 2) for _ in range(3)).to(device)
    (x,) = made(device, (12, 2))
    base = Independent(Normal(torch.zeros(2, device=device), torch.ones(2, device=device)), 1)

    def loss(model):
        z, total = x, 0.0
        for layer in model:
            fixed, moved = z.chunk(2, 1)
            scale, shift = layer(fixed).chunk(2, 1)
            z = torch.cat([moved * scale.tanh().exp() + shift, fixed], 1)
            total = total + scale.tanh().sum(1)
        return -(base.log_prob(z) + total).mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def distributions(device):
    a, b = torch.rand(4).to(device) + 0.5, torch.rand(4).to(device) + 0.5
    scores, x = torch.randn(3, 4).to(device), torch.rand(4).to(device)
    log_normal = TransformedDistribution(Normal(a, b), transforms.ExpTransform())
    mixture = MixtureSameFamily(Categorical(logits=scores[0]), Normal(a, b))
    return [
        *(Normal(a, b).log_prob(x), Gamma(a, b).log_prob(x), Beta(a, b).log_prob(x)),
        *(
            Categorical(logits=scores).entropy(),
            Bernoulli(logits=scores).log_prob((x > 0.5).float()),
        ),
        *(Dirichlet(a).entropy(), log_normal.log_prob(x), mixture.log_prob(x), mixture.mean),
        *(kl_divergence(Normal(a, b), Normal(b, a)), kl_divergence(Gamma(a, b), Gamma(b, a))),
        *(kl_divergence(Dirichlet(a), Dirichlet(b)), kl_divergence(Beta(a, b), Beta(b, a))),
    ]


@program
def matrices_learned_on_a_manifold(device):
    """Orthonormal columns: the gradient is projected, and a step ends by a factorization."""
    (x, target), q = (
        made(device, (10, 5), (10, 2)),
        torch.linalg.qr(torch.randn(5, 2))[0].to(device),
    )
    losses = []
    for _ in range(4):
        q.requires_grad_()
        loss = (x @ q - target).square().mean()
        (slope,) = torch.autograd.grad(loss, q)
        with torch.no_grad():
            inner = q.t() @ slope
            moved, upper = torch.linalg.qr(q - 0.2 * (slope - q @ (inner + inner.t()) / 2))
            q = moved * upper.diagonal().sign()
        losses.append(loss.item())
    return losses, q.abs(), q.t() @ q


# --- Decisions


@program
def policy_from_rewards(device):
    """The states and choices come from the CPU: each run sees the same."""
    model, (states,) = neurons(3, 8, 2).to(device), made(device, (10, 3))
    choices, rewards = torch.randint(2, (10,)).to(device), torch.rand(10).tolist()
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.9 * total
        returns.insert(0, total)
    returns = torch.tensor(returns, device=device)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)

    def loss(model):
        policy = Categorical(logits=model(states))
        return (-policy.log_prob(choices) * returns).mean() - 0.01 * policy.entropy().mean()

    return learn(model, torch.optim.RMSprop(model.parameters(), lr=1e-2), loss)


@program
def values_learned_from_what_was_played(device):
    """Double learning with a target that follows slowly."""
    model = neurons(3, 8, 2)
    target = copy.deepcopy(model).to(device)
    model.to(device)
    (before, after), rewards = made(device, (8, 3), (8, 3)), torch.rand(8).to(device)
    choices, is_over = torch.randint(2, (8, 1)).to(device), (torch.rand(8) < 0.3).to(device)

    def loss(model):
        with torch.no_grad():
            best = model(after).argmax(1, keepdim=True)
            goal = rewards + 0.9 * target(after).gather(1, best)[:, 0] * ~is_over
        return F.huber_loss(model(before).gather(1, choices)[:, 0], goal)

    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(3):
        losses += learn(model, optimizer, loss, 1)
        for slow, fast in zip(target.parameters(), model.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.05)
    return losses, list(target.parameters())


# --- Learning to learn


@program
def weights_that_learn_fast(device):
    """MAML: a step within the loss, and its gradient's gradient."""
    model, (x, y, new_x, new_y) = (
        neurons(2, 8, 1).to(device),
        made(device, (5, 2), (5, 1), (5, 2), (5, 1)),
    )

    def loss_with(weights, x, y):
        return F.mse_loss(functional_call(model, weights, x), y)

    def loss(model):
        weights = dict(model.named_parameters())
        slopes = torch.autograd.grad(loss_with(weights, x, y), weights.values(), create_graph=True)
        fast = {n: w - 0.1 * g for (n, w), g in zip(weights.items(), slopes, strict=True)}
        return loss_with(fast, new_x, new_y)

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def several_networks_at_once(device):
    models, (x, y) = [neurons(3, 8, 1).to(device) for _ in range(4)], made(device, (6, 3), (6, 1))
    weights, buffers = stack_module_state(models)
    bare = copy.deepcopy(models[0]).to("meta")

    def loss(w, b):
        return F.mse_loss(functional_call(bare, (w, b), (x,)), y)

    losses = []
    for _ in range(3):
        values, slopes = vmap(torch.func.grad_and_value(loss))(weights, buffers)[::-1]
        weights = {n: w.detach() - 0.1 * slopes[n] for n, w in weights.items()}
        losses.append(values)
    return losses


@program
def gradients_of_each_example(device):
    """Clipped one by one, as private learning does."""
    model, (x, y) = neurons(3, 4, 1).to(device), made(device, (6, 3), (6, 1))
    weights = {n: p.detach() for n, p in model.named_parameters()}

    def loss(w, x, y):
        return F.mse_loss(functional_call(model, w, x[None]), y[None])

    slopes = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    norms = torch.stack([g.flatten(1).square().sum(1) for g in slopes.values()]).sum(0).sqrt()
    factor = (0.5 / norms).clamp(max=1)
    return norms, [torch.tensordot(factor, g, 1) for g in slopes.values()]


@program
def weights_made_by_another_network(device):
    maker, (codes, x) = neurons(2, 16, 3 * 4 + 3).to(device), made(device, (5, 2), (5, 4))

    def loss(maker):
        made_weights = maker(codes)
        weight, bias = made_weights[:, :12].view(5, 3, 4), made_weights[:, 12:]
        return (torch.baddbmm(bias[..., None], weight, x[..., None])[..., 0] - 1).square().mean()

    return learn(maker, torch.optim.NAdam(maker.parameters(), lr=1e-2), loss)


# --- Training


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-2):
        super().__init__(parameters, {"lr": lr, "betas": (0.9, 0.99), "decay": 0.1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            fast, slow = group["betas"]
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_((momentum * fast + p.grad * (1 - fast)).sign_(), alpha=-group["lr"])
                momentum.lerp_(p.grad, 1 - slow)


@program
def optimizers_of_ones_own(device):
    """Signs of momenta; and weights that look around before they move (SAM)."""
    model, (x,) = neurons(3, 8, 1).to(device), made(device, (6, 3))

    def loss(m):
        return (m(x) - 1).square().mean()

    losses = learn(model, Lion(model.parameters()), loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss(model).backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        with torch.no_grad():
            moves = [p.grad * (0.05 / (norm + 1e-12)) for p in model.parameters()]
            torch._foreach_add_(list(model.parameters()), moves)
        losses += learn(model, optimizer, loss, 1)
        with torch.no_grad():
            torch._foreach_sub_(list(model.parameters()), moves)
        optimizer.zero_grad()
    return losses


@program
def curve_descended_with_curvature(device):
    point = torch.tensor([-1.2, 1.0], device=device, requires_grad=True)
    optimizer = torch.optim.LBFGS([point], lr=1, max_iter=8, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2
        value.backward()
        return value

    return optimizer.step(closure), point


@program
def stopped_and_resumed(device):
    (x,) = made(device, (6, 3))

    def fresh():
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, amsgrad=True)
        return model, optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9)

    def run(model, optimizer, schedule, steps):
        losses = []
        for _ in range(steps):
            losses += learn(model, optimizer, lambda m: (m(x) - 1).square().mean(), 1)
            schedule.step()
        return losses

    first = fresh()
    losses = run(*first, 2)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in first], file)
    file.seek(0)
    second = fresh()
    for part, state in zip(second, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    went_on, resumed = run(*first, 2), run(*second, 2)
    assert went_on == resumed
    return losses, resumed


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.full((2,), float(i)), i * i


@program
def batches_of_other_processes(device):
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, drop_last=False)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return [
        learn(
            model,
            optimizer,
            lambda m, x=x, y=y: (m(x.to(device))[:, 0] - y.to(device)).abs().mean(),
            1,
        )
        for x, y in loader
    ]


@program
def memory_saved_by_computing_twice(device):
    model, (x,) = nn.ModuleList(neurons(6, 6) for _ in range(3)).to(device), made(device, (4, 6))

    def loss(model):
        h = x
        for block in model:
            h = h + checkpoint(block, h, use_reentrant=False)
        return h.square().mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def lower_precision_and_gradients_added_up(device):
    model, (x,) = neurons(4, 16, 1).to(device), made(device, (8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        for part in x.chunk(2):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = (model(part).float() - 1).square().mean() / 2
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return [round(loss, 1) for loss in losses]


@program
def features_through_hooks(device):
    model, (x,) = neurons(3, 4, 4, 1).to(device), made(device, (5, 3))
    seen = []
    handles = [
        model[0].register_forward_hook(lambda m, i, o: seen.append(o.mean())),
        model[2].register_full_backward_hook(lambda m, i, o: seen.append(o[0].abs().sum())),
        model[4].register_forward_pre_hook(lambda m, i: (i[0] * 2,)),
    ]
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    return seen, model(x)


@program
def expert_that_is_asked_seldom(device):
    """Each token goes to one expert of those with room; a loss keeps them busy alike (Switch)."""
    router, experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    model, (x,) = nn.ModuleList([router, experts]).to(device), made(device, (8, 4))

    def loss(model):
        chances = model[0](x).softmax(-1)
        chance, chosen = chances.max(-1)
        chosen_by = F.one_hot(chosen, 3)
        room = (chosen_by * chosen_by.cumsum(0)).sum(1) <= 3
        y = torch.zeros_like(x)
        for i, expert in enumerate(model[1]):
            at = torch.nonzero((chosen == i) & room)[:, 0]
            y[at] = expert(x[at]) * chance[at, None]
        return (y - x).square().mean() + 3 * (chosen_by.float().mean(0) * chances.mean(0)).sum()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@pytest.mark.parametrize("run", program)
def test_gives_what_eager_gives(run):
    gives_what_eager_gives(run)
