"""Networks that rank: DIEN with its attentional recurrence unrolled, DLRM."""
import torch
from torch import nn

from common import calibrated, livelier, spec


class AugruCell(nn.Module):
    """A GRU cell whose update gate is scaled by an attention score; without one, a GRU cell."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.from_input = nn.Linear(inputs, 3 * hidden)
        self.from_state = nn.Linear(hidden, 3 * hidden)

    def forward(self, x, state, score=None):
        input_reset, input_update, input_new = self.from_input(x).chunk(3, -1)
        state_reset, state_update, state_new = self.from_state(state).chunk(3, -1)
        reset = torch.sigmoid(input_reset + state_reset)
        update = torch.sigmoid(input_update + state_update)
        if score is not None:
            update = update * score
        return (1 - update) * state + update * torch.tanh(input_new + reset * state_new)


class Dice(nn.Module):
    """DIN's activation: x where a batch norm says so, else a share of it."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.share = nn.Parameter(torch.randn(width) * 0.1)

    def forward(self, x):
        gate = torch.sigmoid(self.norm(x))
        return gate * x + (1 - gate) * self.share * x


class Dien(nn.Module):
    """User, candidate and history in, probability of a click out. Both recurrences are loops of
    Python: an export holds every step."""

    def __init__(self, users, items, categories, width, widths=(200, 80)):
        super().__init__()
        hidden = 2 * width
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width)
        self.category = nn.Embedding(categories, width)
        self.extract = AugruCell(hidden, hidden)
        self.evolve = AugruCell(hidden, hidden)
        self.attend = nn.Linear(hidden, hidden, bias=False)
        sizes = [width + 4 * hidden, *widths]
        layers = [nn.BatchNorm1d(sizes[0])]
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [nn.Linear(inputs, outputs), Dice(outputs)]
        self.top = nn.Sequential(*layers, nn.Linear(sizes[-1], 2))

    def look_up(self, items, categories):
        return torch.cat([self.item(items), self.category(categories)], -1)

    def forward(self, user, item, category, past_items, past_categories, mask):
        target = self.look_up(item, category)
        history = self.look_up(past_items, past_categories)
        state = torch.zeros_like(target)
        states = []
        for step in range(history.shape[1]):
            state = self.extract(history[:, step], state)
            states.append(state)
        interests = torch.stack(states, 1)
        scores = (self.attend(interests) * target.unsqueeze(1)).sum(-1)
        scores = torch.softmax(scores.masked_fill(mask == 0, -1e9), -1)
        state = torch.zeros_like(target)
        for step in range(history.shape[1]):
            state = self.evolve(interests[:, step], state, scores[:, step].unsqueeze(-1))
        total = (history * mask.unsqueeze(-1)).sum(1)
        both = torch.cat([self.user(user), target, total, target * total, state], -1)
        return torch.softmax(self.top(both), -1)


def perceptron(widths, last):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1], last())


class Dlrm(nn.Module):
    """Dense features and one bag of indices per table; interactions are dots of all pairs."""

    def __init__(self, tables, width, bottom, top, bags):
        super().__init__()
        kind = (lambda rows: nn.EmbeddingBag(rows, width, mode="sum")) if bags else (
            lambda rows: nn.Embedding(rows, width))
        self.tables, self.bags = nn.ModuleList(kind(rows) for rows in tables), bags
        self.bottom = perceptron([*bottom, width], nn.ReLU)
        pairs = (len(tables) + 1) * len(tables) // 2
        self.top = perceptron([width + pairs, *top], nn.Sigmoid)
        rows, columns = torch.tril_indices(len(tables) + 1, len(tables) + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense, sparse):
        """dense [batch, features], sparse [tables, batch, indices of a bag]."""
        x = self.bottom(dense)
        found = [table(sparse[i]) if self.bags else table(sparse[i]).sum(1)
                 for i, table in enumerate(self.tables)]
        features = torch.stack([x, *found], 1)
        dots = features @ features.transpose(1, 2)
        return self.top(torch.cat([x, dots[:, self.rows, self.columns]], 1))


def history_of(batch, length, users, items, categories):
    """Inputs of Dien: every history ends somewhere in its second half."""
    ends = torch.randint(length // 2, length + 1, (batch, 1))
    return {"user": torch.randint(0, users, (batch,)), "item": torch.randint(0, items, (batch,)),
            "category": torch.randint(0, categories, (batch,)),
            "past_items": torch.randint(0, items, (batch, length)),
            "past_categories": torch.randint(0, categories, (batch, length)),
            "mask": (torch.arange(length) < ends).float()}


def dien_spec(batch, length, users, items, categories, width, **more):
    inputs = history_of(batch, length, users, items, categories)
    network = Dien(users, items, categories, width, **more)
    return spec(calibrated(network, *inputs.values()), inputs, ["probability"])


def dien():
    """The sizes of the paper's Books data; 100 steps."""
    return dien_spec(128, 100, 192403, 63001, 801, 18)


def dlrm_spec(batch, tables, width, bottom, top, bag, bags):
    inputs = {"dense": torch.rand(batch, bottom[0]),
              "sparse": torch.stack([torch.randint(0, rows, (batch, bag)) for rows in tables])}
    return spec(livelier(Dlrm(tables, width, bottom, top, bags)), inputs, ["probability"])


def dlrm(bags):
    """The sizes of the reference for Criteo's Kaggle data, large tables cut to 100,000 rows."""
    def make():
        tables = [1460, 583, 100000, 100000, 305, 24, 12517, 633, 3, 93145, 5683, 100000, 3194, 27,
                  14992, 100000, 10, 5652, 2173, 4, 100000, 18, 15, 100000, 105, 100000]
        return dlrm_spec(128, tables, 16, [13, 512, 256, 64], [512, 256, 1], 4 if bags else 1, bags)
    return make


MODELS = {"dien": dien, "dlrm": dlrm(False), "dlrm_bags": dlrm(True)}
