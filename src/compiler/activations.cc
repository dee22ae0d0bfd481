#include "compiler/activations.h"

#include <cmath>

namespace heddle::compiler {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Opcode;

Instr* full(Builder& b, Instr* x, double value) { return b.full(x->shape(), value); }

Instr* relu(Builder& b, Instr* x) { return b.binary(Opcode::maximum, x, full(b, x, 0)); }

// x max(0, min(1, x / 6 + 1/2))
Instr* hardswish(Builder& b, Instr* x) {
  Instr* sixth = b.binary(Opcode::multiply, x, full(b, x, 1.0 / 6));
  Instr* line = b.binary(Opcode::add, sixth, full(b, x, 0.5));
  Instr* below = b.binary(Opcode::minimum, line, full(b, x, 1));
  return b.binary(Opcode::multiply, x, b.binary(Opcode::maximum, below, full(b, x, 0)));
}

Instr* silu(Builder& b, Instr* x) {
  return b.binary(Opcode::multiply, x, b.unary(Opcode::logistic, x));
}

// x (1 + erf(x / sqrt 2)) / 2
Instr* gelu(Builder& b, Instr* x) {
  Instr* scaled = b.binary(Opcode::multiply, x, full(b, x, std::sqrt(0.5)));
  Instr* sum = b.binary(Opcode::add, b.unary(Opcode::erf, scaled), full(b, x, 1));
  return b.binary(Opcode::multiply, b.binary(Opcode::multiply, x, full(b, x, 0.5)), sum);
}

// max(x, 0) + log(1 + exp(-|x|))
Instr* softplus(Builder& b, Instr* x) {
  Instr* small = b.unary(Opcode::exponential, b.unary(Opcode::negate, b.unary(Opcode::abs, x)));
  return b.binary(Opcode::add, relu(b, x), b.unary(Opcode::log_plus_one, small));
}

constexpr Activation kActivations[] = {{"ReLU", relu},
                                       {"Hardswish", hardswish},
                                       {"SiLU", silu},
                                       {"GELU", gelu},
                                       {"Softplus", softplus}};

}  // namespace

std::span<const Activation> activations() { return kActivations; }

std::unique_ptr<hlo::Module> with_activation(const hlo::Module& kernel,
                                             const Activation* activation) {
  std::unique_ptr<hlo::Module> made = kernel.clone();
  Instr* product = nullptr;
  for (Instr* instr : made->entry()->instrs()) {
    if (!instr->is(Opcode::dot) && !instr->is(Opcode::convolution)) continue;
    if (product != nullptr) return nullptr;
    product = instr;
  }
  if (product == nullptr) return nullptr;
  Builder b(made->entry());
  Instr* root = activation == nullptr ? product : activation->add(b, product);
  b.check();
  made->entry()->set_root(root);
  made->entry()->remove_dead();
  return made;
}

}  // namespace heddle::compiler
