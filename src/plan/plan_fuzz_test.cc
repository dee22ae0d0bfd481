// Random modules, planned in every order, run on poisoned memory with fake kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/fake_run.h"
#include "program/ranges.h"
#include "program/spaces.h"
#include "program/streams.h"
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
  explicit RandomModule(uint64_t seed, int most = 30, bool only_launches = false)
      : random_(seed), only_launches_(only_launches) {
    Computation* dummy = module.add_computation("fused");
    dummy->set_root(dummy->add(Opcode::constant, Shape::scalar(Type::u8), {},
                               hlo::ConstantAttrs{Literal(Shape::scalar(Type::u8))}));
    fused_ = dummy;
    entry_ = module.add_computation("main");
    module.set_entry(entry_);
    add_leaves();
    const int count = 3 + pick(most);
    for (int i = 0; i < count; ++i) add_instr();
    add_root();
    if (!only_launches) add_control_edges();
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

  // Collects arrays; for a tuple its elements.
  void push(Instr* instr) {
    if (!instr->shape().is_tuple()) return arrays_.push_back(instr);
    for (size_t i = 0; i < instr->shape().elements().size(); ++i) {
      hlo::TupleIndexAttrs attrs;
      attrs.index = static_cast<int64_t>(i);
      push(entry_->add(Opcode::get_tuple_element, instr->shape().elements()[i], {instr}, attrs));
    }
  }

  // Mostly a recent one, so that earlier values die.
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
    if (kind == 2 && !only_launches_)
      return push(entry_->add(Opcode::negate, first->shape(), {first}));
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
    KernelUse use = fake_kernel(*fusion, in_place, workspaces);
    if (pick(4) == 0) put_box(operands, shapes, use);
    kernels.emplace(fusion, std::move(use));
    push(fusion);
  }

  // One result is an operand with a part changed.
  void put_box(const std::vector<Instr*>& operands, const std::vector<Shape>& shapes,
               KernelUse& use) {
    const size_t r = static_cast<size_t>(pick(static_cast<int>(shapes.size())));
    const int o = pick(static_cast<int>(operands.size()));
    if (operands[static_cast<size_t>(o)]->shape() != shapes[r]) return;
    std::replace(use.in_place.begin(), use.in_place.end(), o, -1);
    use.in_place[r] = o;
    use.in_part.assign(shapes.size(), false);
    use.in_part[r] = true;
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

  // Makes outputs alias inputs of equal size.
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
  bool only_launches_;  // no host calls, no control edges
  Computation *fused_ = nullptr, *entry_ = nullptr;
  std::vector<Instr*> arrays_;
};

struct Totals {
  int64_t plan_bytes = 0, lower_bound_bytes = 0, in_place = 0, into_output = 0, aliased_direct = 0,
          once = 0, boxes = 0, crossings = 0;
};

void check(RandomModule& m, const Options& options, Totals& totals) {
  auto program = plan(m.module, m.kernels, {}, target::Target(), options);
  ASSERT_TRUE(program) << program.error().message;
  const std::vector<Bytes> got = fake_run(*program, m.inputs, m.kernels);
  const Reference want(m.module, m.kernels, m.inputs);
  ASSERT_EQ(got.size(), want.outputs.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], want.outputs[i]) << "output " << i << "\n"
                                       << hlo::to_string(m.module) << program::to_string(*program);
  ASSERT_LE(program->memory.lower_bound_bytes, program->memory.plan_bytes);
  ASSERT_LE(program->memory.plan_bytes, program->memory.unshared_bytes);
  totals.plan_bytes += program->memory.plan_bytes;
  totals.lower_bound_bytes += program->memory.lower_bound_bytes;
  const program::Crossings crossings = program::count_crossings(*program);
  totals.crossings += crossings.to_device + crossings.to_host;
  totals.once += std::ssize(program->once);
  for (const program::Command& command : program->commands) {
    const auto* launch = std::get_if<program::Launch>(&command);
    if (launch == nullptr) continue;
    const auto boxes = std::count(launch->in_part.begin(), launch->in_part.end(), 1);
    totals.boxes += boxes;
    for (int64_t i = 0; i < launch->inputs; ++i)
      for (int64_t o = launch->inputs; o < launch->inputs + launch->outputs; ++o) {
        const program::Buffer& from = program->buffers[launch->arguments[i].buffer.index()];
        const program::BufferId input = launch->arguments[i].buffer;
        const program::Buffer& to = program->buffers[launch->arguments[o].buffer.index()];
        // in-place updates must share
        totals.in_place += boxes == 0 && from.kind == to.kind &&
                           from.kind == program::BufferKind::temporary &&
                           from.offset_bytes == to.offset_bytes;
        totals.into_output += from.kind == to.kind && from.number == to.number &&
                              from.kind == program::BufferKind::output;
        totals.aliased_direct += to.alias == input;
      }
  }
}

TEST(plan, RandomModulesOnPoisonedMemory) {
  Totals by_order[6], dynamic, own_memory;
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
    options.static_memory = seed % 4 != 0;
    options.most_streams = seed % 3;
    options.own_memory = true;
    check(m, options, own_memory);
    if (HasFatalFailure()) FAIL() << "own memory, seed " << seed;
  }
  const Totals& cheapest = by_order[static_cast<int>(Order::cheapest)];
  // The tests cover the cases that they are meant for.
  EXPECT_GT(cheapest.in_place, 100);
  EXPECT_GT(cheapest.into_output, 50);
  EXPECT_GT(cheapest.aliased_direct, 5);
  EXPECT_GT(cheapest.once, 100);
  EXPECT_GT(cheapest.boxes, 100);
  EXPECT_EQ(dynamic.in_place, 0);
  EXPECT_EQ(cheapest.crossings, 0);
  EXPECT_GT(own_memory.crossings, 1000);
  for (const Totals& other : by_order)
    EXPECT_LE(cheapest.lower_bound_bytes, other.lower_bound_bytes);
  EXPECT_LT(cheapest.plan_bytes, dynamic.plan_bytes);
  EXPECT_LE(static_cast<double>(cheapest.plan_bytes),
            1.01 * static_cast<double>(cheapest.lower_bound_bytes));
}

// Constraints on every run of the commands, on any streams: a value is computed before it is read,
// the caller's memory is written in order, and some commands run alone.
std::vector<std::vector<size_t>> dependences(const program::Program& p) {
  struct Use {
    program::View view;
    bool writes;
  };
  std::vector<std::vector<Use>> uses;
  std::vector<std::vector<size_t>> before;
  std::vector<bool> alone;
  for (const program::Command& command : p.commands) {
    const size_t i = uses.size();
    uses.emplace_back();
    before.emplace_back();
    alone.push_back(!std::holds_alternative<program::Launch>(command) &&
                    !std::holds_alternative<program::Copy>(command));
    program::for_each_view(command, [&](const program::View& view, program::Use use) {
      uses[i].push_back({view, use != program::Use::read});
    });
    // A partial result counts as written.
    if (const auto* launch = std::get_if<program::Launch>(&command))
      for (size_t o = 0; o < launch->in_part.size(); ++o)
        if (launch->in_part[o] != 0)
          uses[i].push_back({launch->arguments[static_cast<size_t>(launch->in_place[o])], true});
    for (size_t j = 0; j < i; ++j) {
      bool depends = alone[i] || alone[j];
      for (const Use& a : uses[j])
        for (const Use& b : uses[i]) {
          if (!a.writes && !b.writes) continue;
          const bool temporary =
              p.buffers[a.view.buffer.index()].kind == program::BufferKind::temporary;
          depends = depends || a.view.buffer == b.view.buffer ||
                    (!temporary && range_of(p, a.view).overlaps(range_of(p, b.view)));
        }
      if (depends) before[i].push_back(j);
    }
  }
  return before;
}

// Calls `visit` with orders that satisfy `before`: with all of them if there are few.
void for_each_order(const std::vector<std::vector<size_t>>& before, std::mt19937_64& random,
                    const std::function<void(const std::vector<size_t>&)>& visit) {
  constexpr int kMost = 150;
  std::vector<size_t> order;
  std::vector<bool> done(before.size());
  int visited = 0;
  std::function<void(bool)> extend = [&](bool all) {
    if (order.size() == before.size()) {
      ++visited;
      return visit(order);
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < before.size(); ++i)
      if (!done[i] &&
          std::all_of(before[i].begin(), before[i].end(), [&](size_t j) { return done[j]; }))
        ready.push_back(i);
    if (!all) ready = {ready[random() % ready.size()]};
    for (size_t i : ready) {
      if (all && visited >= kMost) return;
      order.push_back(i);
      done[i] = true;
      extend(all);
      done[i] = false;
      order.pop_back();
    }
  };
  extend(true);
  if (visited < kMost) return;
  for (int i = 0; i < kMost; ++i) extend(false);
}

program::Program reordered(const program::Program& p, const std::vector<size_t>& order) {
  program::Program made = p;
  for (size_t i = 0; i < order.size(); ++i) made.commands[i] = p.commands[order[i]];
  return made;
}

// Orders in which streams could run the commands: all that the plan is made for give correct
// results.
TEST(plan, MemoryIsRightForEveryOrderThatItIsPlannedFor) {
  std::mt19937_64 random(1);
  int64_t orders = 0, wrong_in_sequence = 0, several = 0;
  int64_t sequence_bytes = 0, streams_bytes = 0, any_bytes = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomModule m(seed, seed % 3 == 0 ? 16 : 8, true);
    const std::vector<Bytes> want = Reference(m.module, m.kernels, m.inputs).outputs;
    auto planned = [&](int64_t most_streams) {
      Options options;
      options.most_streams = most_streams;
      auto made = plan(m.module, m.kernels, {}, target::Target(), options);
      EXPECT_TRUE(made) << made.error().message;
      return std::move(*made);
    };
    const program::Program any = planned(0), sequence = planned(1), streams = planned(3);
    any_bytes += any.memory.plan_bytes;
    streams_bytes += streams.memory.plan_bytes;
    sequence_bytes += sequence.memory.plan_bytes;
    for_each_order(dependences(any), random, [&](const std::vector<size_t>& order) {
      ++orders;
      ASSERT_EQ(fake_run(reordered(any, order), m.inputs), want) << "seed " << seed;
    });
    for_each_order(dependences(sequence), random, [&](const std::vector<size_t>& order) {
      wrong_in_sequence += fake_run(reordered(sequence, order), m.inputs) != want;
    });
    // As in the executor: each stream in order, after the events that it waits for.
    program::StreamOptions wanted;
    wanted.most_streams = 3;
    const program::StreamPlan found = program::plan_streams(
        streams, streams.commands, program::rough_ns(streams, streams.commands), wanted);
    several += found.streams > 1;
    std::vector<std::vector<size_t>> before = found.waits;
    for (size_t i = 0; i < before.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (found.stream[i] == found.stream[j] || found.alone[i] || found.alone[j])
          before[i].push_back(j);
    for_each_order(before, random, [&](const std::vector<size_t>& order) {
      ASSERT_EQ(fake_run(reordered(streams, order), m.inputs), want) << "seed " << seed;
    });
    if (HasFatalFailure()) FAIL();
  }
  // The test covers the cases that it is meant for.
  EXPECT_GT(orders, 2000);
  EXPECT_GT(wrong_in_sequence, 100);
  EXPECT_GT(several, 10);
  EXPECT_LE(sequence_bytes, streams_bytes);
  EXPECT_LE(streams_bytes, any_bytes);
  EXPECT_LT(sequence_bytes, any_bytes);
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
