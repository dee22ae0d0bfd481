"""How JAX's operations become StableHLO for the platform "heddle", where its default is not it."""


def register():
    from jax._src.interpreters import mlir

    if "heddle" not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append("heddle")
