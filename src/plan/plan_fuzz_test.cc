// Random modules, planned in every order, run on poisoned memory with fake kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/fake_run.h"
#include "program/text.h"

namespace heddle::plan {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

class RandomModule {
 public:
  explicit RandomModule(uint64_t seed) : random_(seed) {
    Computation* dummy = module.add_computation("fused");
    dummy->set_root(dummy->add(Opcode::constant, Shape::scalar(Type::u8), {},
                               hlo::ConstantAttrs{Literal(Shape::scalar(Type::u8))}));
    fused_ = dummy;
    entry_ = module.add_computation("main");
    module.set_entry(entry_);
    add_leaves();
    const int count = 3 + pick(30);
    for (int i = 0; i < count; ++i) add_instr();
    add_root();
    add_control_edges();
    add_aliases();
  }

  hlo::Module module{"random"};
  Kernels kernels;
  std::vector<Bytes> inputs;

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  Shape shape() { return Shape::array(Type::u8, {int64_t{1} + pick(3) * 60}); }

  void add_leaves() {
    const int parameters = 1 + pick(4);
    for (int p = 0; p < parameters; ++p) {
      const bool is_tuple = pick(4) == 0;
      const Shape s = is_tuple ? Shape::make_tuple({shape(), shape()}) : shape();
      hlo::ParameterAttrs attrs;
      attrs.number = p;
      Instr* instr = entry_->add(Opcode::parameter, s, {}, attrs);
      std::vector<const Shape*> leaves;
      append_leaves(s, leaves);
      for (const Shape* leaf : leaves) {
        Bytes bytes(static_cast<size_t>(leaf->bytes()));
        for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
        inputs.push_back(bytes);
      }
      push(instr);
    }
    for (int c = 0; c < pick(3); ++c) {
      Literal value(shape());
      for (int64_t i = 0; i < value.elems(); ++i) value.set_s64(i, pick(256));
      const Shape s = value.shape();
      push(entry_->add(Opcode::constant, s, {}, hlo::ConstantAttrs{std::move(value)}));
    }
  }

  // Arrays are collected; of tuples their elements.
  void push(Instr* instr) {
    if (!instr->shape().is_tuple()) return arrays_.push_back(instr);
    for (size_t i = 0; i < instr->shape().elements().size(); ++i) {
      hlo::TupleIndexAttrs attrs;
      attrs.index = static_cast<int64_t>(i);
      push(entry_->add(Opcode::get_tuple_element, instr->shape().elements()[i], {instr}, attrs));
    }
  }

  // Mostly a recent one, so that values die.
  Instr* any() {
    const int count = static_cast<int>(arrays_.size());
    return arrays_[static_cast<size_t>(pick(3) == 0 ? pick(count)
                                                    : count - 1 - pick(std::min(count, 4)))];
  }

  void add_instr() {
    const int kind = pick(12);
    Instr* first = any();
    if (kind == 0) {
      const Opcode opcodes[] = {Opcode::bitcast, Opcode::copy, Opcode::reshape};
      return push(entry_->add(opcodes[pick(3)], first->shape(), {first}));
    }
    if (kind == 1)
      return push(entry_->add(Opcode::tuple, Shape::make_tuple({first->shape()}), {first}));
    if (kind == 2) return push(entry_->add(Opcode::negate, first->shape(), {first}));
    add_fusion(first);
  }

  void add_fusion(Instr* first) {
    std::vector<Instr*> operands{first};
    for (int i = 0; i < pick(3); ++i) operands.push_back(any());
    const bool elementwise = pick(2) == 0;
    std::vector<Shape> shapes;
    for (int i = 0; i <= pick(4) / 3; ++i)
      shapes.push_back(pick(3) > 0 ? operands[pick(static_cast<int>(operands.size()))]->shape()
                                   : shape());
    const Shape result = shapes.size() == 1 ? shapes[0] : Shape::make_tuple(shapes);
    Instr* fusion = entry_->add(Opcode::fusion, result, operands, hlo::FusionAttrs{}, {fused_},
                                elementwise ? "f_e" : "f_d");
    std::vector<int> in_place;
    for (const Shape& s : shapes) {
      int operand = pick(static_cast<int>(operands.size()));
      if (!elementwise || operands[operand]->shape() != s) operand = -1;
      if (std::count(in_place.begin(), in_place.end(), operand) > 0) operand = -1;
      in_place.push_back(operand);
    }
    std::vector<int64_t> workspaces;
    for (int i = 0; i < pick(5) / 3; ++i) workspaces.push_back(1 + pick(200));
    kernels.emplace(fusion, fake_kernel(*fusion, in_place, workspaces));
    push(fusion);
  }

  void add_root() {
    std::vector<Instr*> elements;
    std::vector<Shape> shapes;
    for (int i = 0; i <= pick(5); ++i) {
      elements.push_back(any());
      shapes.push_back(elements.back()->shape());
    }
    entry_->set_root(entry_->add(Opcode::tuple, Shape::make_tuple(shapes), elements));
  }

  void add_control_edges() {
    const std::vector<Instr*> instrs = entry_->instrs();
    for (int i = 0; i < pick(4); ++i) {
      const size_t a = random_() % instrs.size(), b = random_() % instrs.size();
      if (a < b) entry_->add_control_edge(instrs[a], instrs[b]);
    }
  }

  // Outputs become donated inputs where the sizes agree.
  void add_aliases() {
    std::vector<bool> taken(entry_->parameters().size());
    const auto& outputs = entry_->root()->shape().elements();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const size_t p = random_() % taken.size();
      const Shape& parameter = entry_->parameters()[p]->shape();
      if (taken[p] || parameter.is_tuple() || parameter != outputs[o]) continue;
      taken[p] = true;
      hlo::Alias alias;
      alias.output_index = {static_cast<int64_t>(o)};
      alias.parameter = static_cast<int64_t>(p);
      module.input_output_alias.push_back(alias);
    }
  }

  std::mt19937_64 random_;
  Computation *fused_ = nullptr, *entry_ = nullptr;
  std::vector<Instr*> arrays_;
};

struct Totals {
  int64_t plan_bytes = 0, lower_bound_bytes = 0, in_place = 0, into_output = 0, aliased_direct = 0,
          once = 0;
};

void check(RandomModule& m, const Options& options, Totals& totals) {
  auto program = plan(m.module, m.kernels, {}, target::Target(), options);
  ASSERT_TRUE(program) << program.error().message;
  const std::vector<Bytes> got = fake_run(*program, m.inputs);
  const Reference want(m.module, m.kernels, m.inputs);
  ASSERT_EQ(got.size(), want.outputs.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], want.outputs[i]) << "output " << i << "\n"
                                       << hlo::to_string(m.module) << program::to_string(*program);
  ASSERT_LE(program->memory.lower_bound_bytes, program->memory.plan_bytes);
  ASSERT_LE(program->memory.plan_bytes, program->memory.unshared_bytes);
  totals.plan_bytes += program->memory.plan_bytes;
  totals.lower_bound_bytes += program->memory.lower_bound_bytes;
  totals.once += std::ssize(program->once);
  for (const program::Command& command : program->commands) {
    const auto* launch = std::get_if<program::Launch>(&command);
    if (launch == nullptr) continue;
    for (int64_t i = 0; i < launch->inputs; ++i)
      for (int64_t o = launch->inputs; o < launch->inputs + launch->outputs; ++o) {
        const program::Buffer& from = program->buffers[launch->arguments[i].buffer.index()];
        const program::BufferId input = launch->arguments[i].buffer;
        const program::Buffer& to = program->buffers[launch->arguments[o].buffer.index()];
        totals.in_place += from.kind == to.kind && from.kind == program::BufferKind::temporary &&
                           from.offset_bytes == to.offset_bytes;
        totals.into_output += from.kind == to.kind && from.number == to.number &&
                              from.kind == program::BufferKind::output;
        totals.aliased_direct += to.alias == input;
      }
  }
}

TEST(plan, RandomModulesOnPoisonedMemory) {
  Totals by_order[6], dynamic;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomModule m(seed);
    for (const Order order :
         {Order::as_is, Order::bfs, Order::dfs, Order::list, Order::beam, Order::cheapest}) {
      Options options;
      options.order = order;
      check(m, options, by_order[static_cast<int>(order)]);
      if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
    Options options;
    options.static_memory = false;
    check(m, options, dynamic);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  const Totals& cheapest = by_order[static_cast<int>(Order::cheapest)];
  // The tests reach what they are about.
  EXPECT_GT(cheapest.in_place, 100);
  EXPECT_GT(cheapest.into_output, 50);
  EXPECT_GT(cheapest.aliased_direct, 5);
  EXPECT_GT(cheapest.once, 100);
  EXPECT_EQ(dynamic.in_place, 0);
  for (const Totals& other : by_order)
    EXPECT_LE(cheapest.lower_bound_bytes, other.lower_bound_bytes);
  EXPECT_LT(cheapest.plan_bytes, dynamic.plan_bytes);
  EXPECT_LE(static_cast<double>(cheapest.plan_bytes),
            1.01 * static_cast<double>(cheapest.lower_bound_bytes));
}

TEST(plan, SameModuleSameProgram) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomModule a(seed), b(seed);
    auto first = plan(a.module, a.kernels, {}, target::Target(), {});
    auto second = plan(b.module, b.kernels, {}, target::Target(), {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(program::to_string(*first), program::to_string(*second));
  }
}

}  // namespace
}  // namespace heddle::plan
