"""Programs that read and write sequences: language models of the usual families, recurrent ones, speech, tagging."""

import math

import pytest
import torch
import torch.nn.functional as F
from small_programs import Programs, gives_what_eager_gives, learn
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import torch_xla  # noqa: F401

program = Programs()


class CausalBlock(nn.Module):
    """Attention over what was before, with a cache of keys and values, and a layer of neurons."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU("tanh"), nn.Linear(32, width))

    def forward(self, x, cache=None):
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x)), (k, v)


class Gpt(nn.Module):
    def __init__(self, words=23, length=12, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(CausalBlock(width) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, caches=None):
        before = 0 if caches is None else caches[0][0].shape[2]
        at = torch.arange(before, before + ids.shape[1], device=ids.device)
        x, kept = self.words(ids) + self.places(at), []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[i])
            kept.append(cache)
        return self.norm(x) @ self.words.weight.t(), kept

    def loss(self, ids):
        return F.cross_entropy(self(ids[:, :-1])[0].flatten(0, 1), ids[:, 1:].flatten())


@program
def gpt_trained_and_greedy_with_a_cache(device):
    model, ids = Gpt(), torch.randint(23, (2, 10)).to(device)
    model.to(device)
    losses = learn(model, torch.optim.AdamW(model.parameters(), lr=1e-2), lambda m: m.loss(ids))
    with torch.no_grad():
        logits, caches = model.eval()(ids[:, :4])
        written = [logits[:, -1].argmax(-1)]
        for _ in range(2):
            logits, caches = model(written[-1][:, None], caches)
            written.append(logits[:, -1].argmax(-1))
    return losses, written


@program
def beams(device):
    model = Gpt().to(device).eval()
    width, words = 3, 23
    with torch.no_grad():
        ids = torch.zeros(width, 1, dtype=torch.int64, device=device)
        scores = torch.tensor([0.0, -1e9, -1e9], device=device)
        for _ in range(3):
            grown = scores[:, None] + model(ids)[0][:, -1].log_softmax(-1)
            scores, best = grown.flatten().topk(width)
            ids = torch.cat([ids[best // words], (best % words)[:, None]], 1)
    return scores, ids


@program
def logits_filtered_for_sampling(device):
    logits = torch.randn(3, 20).to(device)
    for word in range(0, 20, 5):
        logits[:, word] = torch.where(
            logits[:, word] < 0, logits[:, word] * 1.2, logits[:, word] / 1.2
        )
    ordered, order = (logits / 0.7).sort(descending=True)
    beyond = ordered.softmax(-1).cumsum(-1) > 0.8
    beyond[:, 1:] = beyond[:, :-1].clone()
    beyond[:, 0] = False
    removed = torch.zeros_like(beyond).scatter(1, order, beyond)
    kept = logits.masked_fill(removed, float("-inf"))
    kept[kept < kept.topk(4).values[:, -1:]] = float("-inf")
    return kept.softmax(-1)


@program
def bert_with_masked_words_and_padding(device):
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
    words, body = nn.Embedding(23, 16, padding_idx=0), nn.TransformerEncoder(layer, 2)
    model = nn.ModuleList([words, body, nn.Linear(16, 23)]).to(device)
    ids = torch.randint(2, 23, (3, 8))
    ids[0, 5:] = ids[1, 7:] = 0
    labels = ids.masked_fill((torch.rand(3, 8) > 0.3) | (ids == 0), -100)
    seen = ids.masked_fill(labels != -100, 1).to(device)
    labels = labels.to(device)

    def logits(model):
        return model[2](model[1](model[0](seen), src_key_padding_mask=seen == 0))

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = learn(
        model, optimizer, lambda m: F.cross_entropy(logits(m).flatten(0, 1), labels.flatten())
    )
    model.eval()
    with torch.no_grad():
        return losses, logits(model)[seen != 0].argmax(-1)


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        norm = x.float().square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        return self.weight * (x.float() * norm).to(x.dtype)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class LlamaBlock(nn.Module):
    """Rotated queries of four heads, keys of two, a gated layer; no biases."""

    def __init__(self, width=16):
        super().__init__()
        self.norms = nn.ModuleList(RootMeanSquare(width) for _ in range(2))
        self.q, self.kv = nn.Linear(width, 16, bias=False), nn.Linear(width, 16, bias=False)
        self.o, self.down = nn.Linear(16, width, bias=False), nn.Linear(24, width, bias=False)
        self.gate, self.up = nn.Linear(width, 24, bias=False), nn.Linear(width, 24, bias=False)

    def forward(self, x, cos, sin):
        h = self.norms[0](x)
        q = self.q(h).unflatten(-1, (4, 4)).transpose(1, 2)
        k, v = self.kv(h).unflatten(-1, (2, 2, 4)).unbind(2)
        k, v = (t.transpose(1, 2).repeat_interleave(2, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(
            rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True
        )
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@program
def llama(device):
    model = nn.ModuleList([nn.Embedding(23, 16), LlamaBlock(), LlamaBlock(), RootMeanSquare(16)])
    model.append(nn.Linear(16, 23, bias=False)).to(device)
    ids = torch.randint(23, (2, 9)).to(device)
    angles = torch.outer(torch.arange(8.0), 10000.0 ** (-torch.arange(0, 4, 2) / 4))
    cos, sin = (torch.cat([f(angles)] * 2, -1).to(device) for f in (torch.cos, torch.sin))

    def loss(model):
        x = model[0](ids[:, :-1])
        for block in model[1:3]:
            x = block(x, cos, sin)
        return F.cross_entropy(model[4](model[3](x)).flatten(0, 1), ids[:, 1:].flatten())

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    losses = []
    for _ in range(3):
        losses += learn(model, optimizer, loss, steps=1)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        schedule.step()
    return losses, norm, schedule.get_last_lr()


def bucket(distance, count=8, farthest=16):
    """T5's number for a distance: exact ones near by, logarithmic ones beyond."""
    behind = (distance > 0).long() * (count // 2)
    distance, near = distance.abs(), count // 4
    far = near + (
        torch.log(distance.float().clamp(min=1) / near) / math.log(farthest / near) * near
    ).long().clamp(max=count // 2 - 1 - near)
    return behind + torch.where(distance < near, distance, far)


@program
def t5_with_relative_places(device):
    words, bias = nn.Embedding(23, 16), nn.Embedding(8, 2)
    encoder = nn.MultiheadAttention(16, 2, batch_first=True, bias=False)
    decoder = nn.MultiheadAttention(16, 2, batch_first=True, bias=False)
    model = nn.ModuleList([words, bias, encoder, decoder]).to(device)
    source, target = torch.randint(23, (2, 7)).to(device), torch.randint(23, (2, 5)).to(device)

    def loss(model):
        places = torch.arange(7, device=device)
        relative = model[1](bucket(places[None] - places[:, None])).permute(2, 0, 1)
        x = model[0](source)
        x = x + model[2](x, x, x, attn_mask=relative.repeat(2, 1, 1), need_weights=False)[0]
        shifted = F.pad(target[:, :-1], (1, 0))
        y, weights = model[3](model[0](shifted), x, x)
        scores = y @ model[0].weight.t()
        return F.cross_entropy(scores.transpose(1, 2), target) + weights.square().sum()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def whisper(device):
    """Sound through convolutions and an encoder, words through a decoder that looks at it."""
    stem = nn.Sequential(
        nn.Conv1d(8, 16, 3, padding=1), nn.GELU(), nn.Conv1d(16, 16, 3, 2, 1), nn.GELU()
    )
    body = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.ModuleList([stem, body, nn.Embedding(23, 16)]).to(device)
    sound, words = torch.randn(2, 8, 20).to(device), torch.randint(23, (2, 6)).to(device)
    mask = nn.Transformer.generate_square_subsequent_mask(5).to(device)

    def loss(model):
        heard = model[0](sound).transpose(1, 2)
        said = model[1](heard, model[2](words[:, :-1]), tgt_mask=mask, tgt_is_causal=True)
        return F.cross_entropy((said @ model[2].weight.t()).flatten(0, 1), words[:, 1:].flatten())

    return learn(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loss)


@program
def deberta_with_disentangled_attention(device):
    """Contents meet contents, and contents meet distances, which are gathered."""
    model = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)] + [nn.Embedding(11, 8)]).to(device)
    x = torch.randn(2, 6, 8).to(device)
    at = torch.arange(6, device=device)
    distance = (at[:, None] - at[None] + 5).expand(2, 6, 6)

    def loss(model):
        q, k, v = (model[i](x) for i in range(3))
        far = model[3].weight
        scores = q @ k.transpose(1, 2)
        scores = scores + torch.gather(q @ model[1](far).t(), 2, distance)
        scores = scores + torch.gather(k @ model[0](far).t(), 2, distance).transpose(1, 2)
        return (scores.div(math.sqrt(24)).softmax(-1) @ v - x).square().mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def recurrent_network_over_packed_sequences(device):
    embed, body = nn.Embedding(23, 8), nn.LSTM(8, 8, 2, batch_first=True, bidirectional=True)
    model = nn.ModuleList([embed, body, nn.Linear(16, 2)]).to(device)
    sequences = [torch.randint(23, (n,)) for n in (7, 3, 5)]
    ids = pad_sequence(sequences, batch_first=True).to(device)
    lengths, labels = torch.tensor([7, 3, 5]), torch.tensor([0, 1, 1]).to(device)

    def loss(model):
        packed = pack_padded_sequence(
            model[0](ids), lengths, batch_first=True, enforce_sorted=False
        )
        states, (last, _) = model[1](packed)
        padded, _ = pad_packed_sequence(states, batch_first=True)
        return F.cross_entropy(model[2](torch.cat([last[-2], last[-1]], 1)), labels) + padded.mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def language_model_through_time_in_pieces(device):
    """Truncated: the state goes on from piece to piece, its gradient does not."""
    embed, body, head = nn.Embedding(23, 8), nn.LSTM(8, 8), nn.Linear(8, 23)
    model = nn.ModuleList([embed, body, head]).to(device)
    text, state = torch.randint(23, (13, 2)).to(device), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for begin in range(0, 12, 4):
        optimizer.zero_grad()
        hidden, state = body(embed(text[begin : begin + 4]), state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(head(hidden).flatten(0, 1), text[begin + 1 : begin + 5].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
    return losses, state


@program
def translation_with_additive_attention(device):
    """A cell in a loop, which is told the true word every other time."""
    model = nn.ModuleDict(
        {
            "words": nn.Embedding(23, 8),
            "encoder": nn.GRU(8, 8, batch_first=True),
            "cell": nn.GRUCell(16, 8),
            "query": nn.Linear(8, 8),
            "key": nn.Linear(8, 8),
            "score": nn.Linear(8, 1),
            "head": nn.Linear(8, 23),
        }
    ).to(device)
    source, target = torch.randint(23, (2, 6)).to(device), torch.randint(23, (2, 5)).to(device)

    def loss(m):
        states, last = m["encoder"](m["words"](source))
        hidden, word, total = last[0], torch.zeros(2, dtype=torch.int64, device=device), 0.0
        keys = m["key"](states)
        for step in range(5):
            weights = m["score"](torch.tanh(keys + m["query"](hidden)[:, None])).softmax(1)
            context = (weights * states).sum(1)
            hidden = m["cell"](torch.cat([m["words"](word), context], 1), hidden)
            scores = m["head"](hidden)
            total = total + F.cross_entropy(scores, target[:, step])
            word = target[:, step] if step % 2 == 0 else scores.argmax(-1)
        return total

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@program
def speech_by_alignments(device):
    model = nn.Sequential(nn.Conv1d(6, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 5, 1)).to(device)
    sound, labels = torch.randn(2, 6, 15).to(device), torch.randint(1, 5, (2, 4)).to(device)
    heard, said = torch.tensor([15, 12]), torch.tensor([4, 3])

    def loss(model):
        scores = model(sound).permute(2, 0, 1).log_softmax(-1)
        return F.ctc_loss(scores, labels, heard, said, zero_infinity=True)

    losses = learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)
    best = model(sound).argmax(1)
    return losses, [torch.unique_consecutive(row) for row in best]


@program
def tags_of_a_conditional_random_field(device):
    emit = nn.Linear(6, 4)
    emit.move = nn.Parameter(torch.randn(4, 4) / 4)
    move = emit.to(device).move
    x, tags = torch.randn(3, 5, 6).to(device), torch.randint(4, (3, 5)).to(device)
    there = (torch.arange(5)[None] < torch.tensor([5, 3, 4])[:, None]).to(device)

    def loss(_):
        scores = emit(x)
        path = scores.gather(2, tags[..., None])[..., 0]
        path[:, 1:] += move[tags[:, :-1], tags[:, 1:]]
        alpha = scores[:, 0]
        for t in range(1, 5):
            grown = torch.logsumexp(alpha[:, :, None] + move, 1) + scores[:, t]
            alpha = torch.where(there[:, t, None], grown, alpha)
        return (torch.logsumexp(alpha, 1) - (path * there).sum(1)).mean()

    losses = learn(emit, torch.optim.SGD(emit.parameters(), lr=0.1), loss)
    with torch.no_grad():
        best, back = emit(x)[:, 0], []
        for t in range(1, 5):
            best, source = (best[:, :, None] + move).max(1)
            best = best + emit(x)[:, t]
            back.append(source)
        tag = best.argmax(1)
        decoded = [tag]
        for source in reversed(back):
            tag = source.gather(1, tag[:, None])[:, 0]
            decoded.append(tag)
    return losses, decoded


@program
def sequences_of_a_jagged_layout(device):
    parts = [torch.randn(n, 8).to(device) for n in (3, 5, 2)]
    model = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8)]).to(device)
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged, device=device)

    def loss(model):
        y = model[2](model[1](F.gelu(model[0](jagged))) + jagged)
        return (y.values() - 1).square().mean()

    return learn(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


@pytest.mark.parametrize("run", program)
def test_gives_what_eager_gives(run):
    gives_what_eager_gives(run)
