"""Programs that see and draw: classifiers, segmentation, detection, and models that generate."""

import copy

import pytest
import torch
import torch.nn.functional as F
from small_programs import Programs, gives_what_eager_gives, learn
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

import torch_xla  # noqa: F401

program = Programs()


def made(device, *shapes):
    return [torch.randn(shape).to(device) for shape in shapes]


class VisionTransformer(nn.Module):
    def __init__(self, width=16, classes=5):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 5, width) / 8)
        layer = nn.TransformerEncoderLayer(
            width, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.body(x)[:, 0])


@program
def vision_transformer_with_mixed_images_and_smooth_labels(device):
    model, (images,) = VisionTransformer().to(device), made(device, (4, 3, 8, 8))
    labels, order = torch.randint(5, (4,)).to(device), torch.randperm(4).to(device)
    mixed = 0.7 * images + 0.3 * images[order]

    def loss(model):
        scores = model(mixed)
        terms = [F.cross_entropy(scores, y, label_smoothing=0.1) for y in (labels, labels[order])]
        return 0.7 * terms[0] + 0.3 * terms[1]

    return learn(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loss)


@program
def images_and_texts_of_one_space(device):
    towers = [nn.Linear(12, 8), nn.Sequential(nn.EmbeddingBag(20, 8), nn.Linear(8, 8))]
    model = nn.ModuleList(towers)
    model.scale = nn.Parameter(torch.tensor(2.0))
    model.to(device)
    (images,), texts = made(device, (5, 12)), torch.randint(20, (5, 4)).to(device)

    def loss(model):
        a, b = F.normalize(model[0](images), dim=-1), F.normalize(model[1](texts), dim=-1)
        scores = model.scale.exp() * a @ b.t()
        labels = torch.arange(5, device=device)
        return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels)) / 2

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


class SmallUNet(nn.Module):
    """Down, up, and across; with a time, the noise at it."""

    def __init__(self, channels=3, out=3, with_time=False):
        super().__init__()
        self.down, self.middle = nn.Conv2d(channels, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.up, self.last = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, out, 1)
        self.norm = nn.GroupNorm(2, 8)
        self.time = nn.Linear(8, 8) if with_time else None

    def forward(self, x, time=None):
        down = F.silu(self.down(x))
        middle = self.norm(self.middle(down))
        if time is not None:
            angles = time[:, None] * torch.logspace(0, -3, 4, device=x.device)
            middle = (
                middle + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
            )
        return self.last(torch.cat([down, self.up(F.silu(middle))], 1))


@program
def segmentation_by_overlap(device):
    model, (images,) = SmallUNet(out=2).to(device), made(device, (2, 3, 8, 8))
    labels = torch.randint(2, (2, 8, 8)).to(device)

    def loss(model):
        scores = model(images)
        chances, truth = scores.softmax(1), F.one_hot(labels, 2).permute(0, 3, 1, 2)
        overlap = 2 * (chances * truth).sum((2, 3)) / (chances + truth).sum((2, 3))
        return F.cross_entropy(scores, labels) + 1 - overlap.mean()

    losses = learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)
    hits = model(images).argmax(1) == labels
    return losses, hits.sum((1, 2))


@program
def diffusion(device):
    """Trained to tell the noise; an image from noise in three steps without chance."""
    model, (images, noise, start) = (
        SmallUNet(with_time=True).to(device),
        made(device, *[(2, 3, 8, 8)] * 3),
    )
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0).to(device)
    times = torch.tensor([10, 70]).to(device)

    def loss(model):
        a = kept[times][:, None, None, None]
        return F.mse_loss(model(a.sqrt() * images + (1 - a).sqrt() * noise, times), noise)

    losses = learn(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loss)
    x = start
    with torch.no_grad():
        for now, then in ((99, 66), (66, 33), (33, 0)):
            guess = model(x, torch.full((2,), now, device=device))
            clean = (x - (1 - kept[now]).sqrt() * guess) / kept[now].sqrt()
            x = kept[then].sqrt() * clean.clamp(-1, 1) + (1 - kept[then]).sqrt() * guess
    return losses, x


@program
def variational_autoencoder(device):
    model = nn.ModuleList([nn.Linear(12, 8), nn.Linear(4, 12)]).to(device)
    (x, noise) = made(device, (6, 12), (6, 4))
    x = x.sigmoid()

    def loss(model):
        mean, log_variance = model[0](x).chunk(2, -1)
        decoded = model[1](mean + noise * (0.5 * log_variance).exp())
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return F.binary_cross_entropy_with_logits(decoded, x, reduction="sum") + divergence

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def quantized_codes_of_an_autoencoder(device):
    """A code book; gradients pass straight through the choice."""
    model = nn.ModuleList([nn.Linear(6, 4), nn.Embedding(7, 4), nn.Linear(4, 6)]).to(device)
    (x,) = made(device, (9, 6))

    def loss(model):
        z, book = model[0](x), model[1].weight
        chosen = torch.cdist(z, book).argmin(1)
        code = book[chosen]
        terms = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
        return F.mse_loss(model[2](z + (code - z).detach()), x) + terms

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


def gan(device, generator, critic, critic_loss):
    (real, *noises) = made(device, (6, 4), (6, 3), (6, 3), (6, 3))
    generator.to(device), critic.to(device)
    first = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.9))
    second = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.9))
    losses = []
    for noise in noises:
        losses += learn(
            critic, first, lambda m, z=noise: critic_loss(m, real, generator(z).detach()), 1
        )
        losses += learn(generator, second, lambda m, z=noise: F.softplus(-critic(m(z))).mean(), 1)
    return losses


@program
def adversaries_with_spectral_norm(device):
    critic = nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(4, 8)), nn.LeakyReLU(0.2), nn.Linear(8, 1)
    )
    generator = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))

    def loss(critic, real, fake):
        return (F.softplus(-critic(real)) + F.softplus(critic(fake))).mean()

    return gan(device, generator, critic, loss)


@program
def adversaries_with_a_penalty_of_the_gradient(device):
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    generator = nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 4))

    def loss(critic, real, fake):
        between = (0.3 * real + 0.7 * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        return (critic(fake) - critic(real)).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()

    return gan(device, generator, critic, loss)


def overlaps(a, b):
    top, bottom = (
        torch.maximum(a[:, None, :2], b[None, :, :2]),
        torch.minimum(a[:, None, 2:], b[None, :, 2:]),
    )
    common = (bottom - top).clamp(min=0).prod(-1)
    areas = [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    return common / (areas[0][:, None] + areas[1][None] - common)


@program
def detection(device):
    """Boxes matched to anchors, trained; then only the best of those that overlap are kept."""
    model, (features,) = nn.Linear(8, 5), made(device, (12, 8))
    model.to(device)
    corner = torch.rand(12, 2)
    anchors = torch.cat([corner, corner + 0.3 + torch.rand(12, 2)], 1).to(device)
    truth = anchors[[2, 7]] + 0.05
    overlap, match = overlaps(anchors, truth).max(1)
    positive = overlap > 0.4

    def loss(model):
        scores = model(features)
        objects = F.binary_cross_entropy_with_logits(scores[:, 4], positive.float())
        return objects + F.smooth_l1_loss(
            scores[positive, :4] + anchors[positive], truth[match[positive]]
        )

    losses = learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)
    scores = model(features).detach()
    boxes, order = anchors + scores[:, :4], scores[:, 4].argsort(descending=True)
    kept = []
    while order.numel() > 0:
        kept.append(order[0].item())
        order = order[1:][overlaps(boxes[order[:1]], boxes[order[1:]])[0] < 0.3]
    return losses, kept


@program
def capsules_routed_by_agreement(device):
    model = nn.ParameterList([torch.randn(6, 3, 4, 4) / 4]).to(device)
    (x,), labels = made(device, (2, 6, 4)), torch.tensor([0, 2]).to(device)

    def squash(s):
        square = s.square().sum(-1, keepdim=True)
        return square / (1 + square) * s / (square + 1e-8).sqrt()

    def loss(model):
        votes = torch.einsum("bni,ncij->bncj", squash(x), model[0])
        routes = votes.new_zeros(2, 6, 3, 1)
        for _ in range(3):
            capsules = squash((routes.softmax(2) * votes).sum(1))
            routes = routes + (votes.detach() * capsules.detach()[:, None]).sum(-1, keepdim=True)
        return F.multi_margin_loss(capsules.norm(dim=-1), labels)

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def spatial_transformer(device):
    locate, classify = nn.Sequential(nn.Flatten(), nn.Linear(36, 6)), nn.Conv2d(1, 2, 6)
    nn.init.zeros_(locate[1].weight)
    locate[1].bias.data.copy_(torch.tensor([1.0, 0, 0.1, 0, 1, 0]))
    model, (images,) = nn.ModuleList([locate, classify]).to(device), made(device, (3, 1, 6, 6))

    def loss(model):
        grid = F.affine_grid(model[0](images).view(3, 2, 3), images.shape, align_corners=False)
        return model[1](F.grid_sample(images, grid, align_corners=False)).square().mean()

    return learn(model, torch.optim.SGD(model.parameters(), lr=0.1), loss)


@program
def residual_network_averaged(device):
    """Two averages of the weights, and batch statistics anew for one of them."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)

        def forward(self, x):
            return F.relu(x + self.norm(self.conv(x)))

    model = nn.Sequential(
        nn.Conv2d(3, 4, 1), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    model.to(device)
    (images,), labels = made(device, (4, 3, 6, 6)), torch.tensor([0, 1, 1, 0]).to(device)
    smooth = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    losses = []
    for _ in range(3):
        losses += learn(model, optimizer, lambda m: F.cross_entropy(m(images), labels), 1)
        smooth.update_parameters(model)
        average.update_parameters(model)
        schedule.step()
    torch.optim.swa_utils.update_bn([images], average)
    return losses, smooth.eval()(images), average.eval()(images)


@program
def quantization_in_training(device):
    """Weights and activations as if they were of eight bits; scales of observers."""
    model, (x,) = nn.Linear(6, 4).to(device), made(device, (8, 6))
    observed = torch.zeros(2, device=device)

    def loss(model):
        nonlocal observed
        low, high = x.min().clamp(max=0), x.max().clamp(min=0)
        observed = 0.9 * observed + 0.1 * torch.stack([low, high])
        scale = (high - low) / 255
        zero = (-low / scale).round().to(torch.int32)
        inputs = torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)
        scales = model.weight.detach().abs().amax(1) / 127
        zeros = torch.zeros(4, dtype=torch.int32, device=device)
        weight = torch.fake_quantize_per_channel_affine(model.weight, scales, zeros, 0, -128, 127)
        return F.linear(inputs, weight, model.bias).square().mean()

    return learn(model, torch.optim.SGD(model.parameters(), lr=0.1), loss), observed


@program
def style_of_an_image(device):
    network, (content, style) = (
        nn.Conv2d(3, 6, 3).to(device),
        made(device, (1, 3, 8, 8), (1, 3, 8, 8)),
    )

    def gram(x):
        return torch.einsum("bchw,bdhw->cd", x, x) / x.numel()

    image = content.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([image], max_iter=3, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        features = network(image)
        value = F.mse_loss(features, network(content)) + 10 * F.mse_loss(
            gram(features), gram(network(style))
        )
        value.backward()
        losses.append(value.item())
        return value

    optimizer.step(closure)
    return losses, image


@program
def distillation_into_a_pruned_student(device):
    teacher, student = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), nn.Linear(6, 3)
    prune.l1_unstructured(student, "weight", amount=0.4)
    (x,) = made(device, (8, 6))
    teacher.to(device).requires_grad_(False), student.to(device)

    def loss(student):
        pair = (student(x) / 2).log_softmax(-1), (teacher(x) / 2).log_softmax(-1)
        return F.kl_div(*pair, reduction="batchmean", log_target=True) * 4

    losses = learn(student, torch.optim.Adam(student.parameters(), lr=1e-2), loss)
    prune.remove(student, "weight")
    return losses, student.weight


@program
def two_views_of_each_image(device):
    model, (views,) = (
        nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)),
        made(device, (10, 8)),
    )
    model.to(device)

    def loss(model):
        z = F.normalize(model(views), dim=1)
        scores = (z @ z.t() / 0.5).masked_fill(torch.eye(10, dtype=torch.bool, device=device), -1e9)
        return F.cross_entropy(scores, (torch.arange(10, device=device) + 5) % 10)

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def metric_learned_from_hard_pairs(device):
    """The farthest of the same class, the nearest of another; then only triplets that violate the margin."""
    model, (x,) = nn.Linear(6, 4).to(device), made(device, (9, 6))
    labels = torch.arange(9).to(device) % 3
    same = labels[:, None] == labels[None]
    other = ~same
    same = same & ~torch.eye(9, dtype=torch.bool, device=device)

    def loss(model):
        z = F.normalize(model(x), dim=1)
        distance = (2 - 2 * z @ z.t()).clamp(min=1e-6).sqrt()
        hardest = distance.masked_fill(~same, 0).amax(1) - distance.masked_fill(~other, 9).amin(1)
        a, p = torch.where(same)
        n = distance.masked_fill(~other, 9).argmin(1)[a]
        terms = F.triplet_margin_loss(z[a], z[p], z[n], margin=0.2, reduction="none")
        return F.relu(hardest + 0.2).mean() + terms[terms > 0].mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def weights_by_length_and_direction(device):
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Conv1d(2, 4, 3)),
        nn.PReLU(),
        nn.Flatten(),
        parametrizations.orthogonal(nn.Linear(16, 3)),
    ).to(device)
    (x,) = made(device, (5, 2, 6))
    losses = learn(
        model, torch.optim.SGD(model.parameters(), lr=0.1), lambda m: m(x).square().mean()
    )
    other = copy.deepcopy(model)
    parametrize.remove_parametrizations(other[3], "weight")
    return losses, other[3].weight @ other[3].weight.t(), other(x)


@pytest.mark.parametrize("run", program)
def test_gives_what_eager_gives(run):
    gives_what_eager_gives(run)
