"""Trains a small network with torch.compile(…, backend="heddle"), forward and backward.

    pip install torch; python train.py
"""
import heddle.torch  # registers the backend where the package is not installed
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    step = torch.compile(model, backend="heddle")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    x = torch.rand(256, 2) * 2 - 1
    y = (x[:, :1] * x[:, 1:]).sign()
    for epoch in range(200):
        loss = nn.functional.mse_loss(step(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"last: {loss.item():.4f}")


if __name__ == "__main__":
    main()
