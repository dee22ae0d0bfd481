// Random nested loops and branches with random states: passed through, swapped, recomputed, updated
// in place. Planned and run on poisoned memory with fake kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/fake_run.h"
#include "program/spaces.h"
#include "program/text.h"

namespace heddle::plan {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

class RandomControl {
 public:
  explicit RandomControl(uint64_t seed) : random_(seed) {
    fused_ = module.add_computation("fused");
    fused_->set_root(fused_->add(Opcode::constant, Shape::scalar(Type::u8), {},
                                 hlo::ConstantAttrs{Literal(Shape::scalar(Type::u8))}));
    Computation* entry = module.add_computation("main");
    module.set_entry(entry);
    Scope scope{entry, {}, 0};
    for (int64_t p = 0; p < 2 + pick(4); ++p) {
      Instr* parameter = entry->add(Opcode::parameter, shape(), {}, hlo::ParameterAttrs{p});
      Bytes bytes(static_cast<size_t>(parameter->shape().bytes()));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
      inputs.push_back(std::move(bytes));
      scope.arrays.push_back(parameter);
    }
    for (int i = 0; i < 2 + pick(6); ++i) add(scope, 5);
    std::vector<Instr*> outputs;
    for (int i = 0; i <= pick(4); ++i) outputs.push_back(any(scope));
    entry->set_root(tuple(entry, outputs));
    add_aliases();
  }

  hlo::Module module{"random"};
  Kernels kernels;
  std::vector<Bytes> inputs;

 private:
  struct Scope {
    Computation* computation;
    std::vector<Instr*> arrays;
    int depth;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  Shape shape() {
    const Shape shapes[] = {Shape::scalar(Type::u8), Shape::array(Type::u8, {40}),
                            Shape::array(Type::u8, {6, 20}), Shape::array(Type::u8, {6, 20})};
    return shapes[pick(4)];
  }

  Instr* any(Scope& scope) {
    const int count = static_cast<int>(scope.arrays.size());
    const int recent = count - 1 - pick(std::min(count, 4));
    return scope.arrays[static_cast<size_t>(pick(3) == 0 ? pick(count) : recent)];
  }

  // A value of this shape: an existing one, or a new one.
  Instr* any(Scope& scope, const Shape& shape) {
    std::vector<Instr*> fitting;
    for (Instr* array : scope.arrays)
      if (array->shape() == shape) fitting.push_back(array);
    if (fitting.empty() || pick(5) == 0) return fusion(scope, {any(scope)}, {shape});
    return fitting[static_cast<size_t>(pick(static_cast<int>(fitting.size())))];
  }

  static Instr* tuple(Computation* computation, const std::vector<Instr*>& elements) {
    std::vector<Shape> shapes;
    for (const Instr* element : elements) shapes.push_back(element->shape());
    return computation->add(Opcode::tuple, Shape::make_tuple(shapes), elements);
  }

  static void push_elements(Scope& scope, Instr* value) {
    for (size_t i = 0; i < value->shape().elements().size(); ++i)
      scope.arrays.push_back(scope.computation->add(Opcode::get_tuple_element,
                                                    value->shape().elements()[i], {value},
                                                    hlo::TupleIndexAttrs{static_cast<int64_t>(i)}));
  }

  void add(Scope& scope, int kinds) {
    const int kind = pick(scope.depth > 2 ? 4 : 4 + kinds);
    if (kind < 2) {
      std::vector<Instr*> operands{any(scope)};
      for (int i = 0; i < pick(3); ++i) operands.push_back(any(scope));
      std::vector<Shape> shapes{pick(3) > 0 ? operands[0]->shape() : shape()};
      if (pick(4) == 0) shapes.push_back(shape());
      fusion(scope, operands, shapes);
    } else if (kind < 4 && pick(4) == 0) {
      add_concatenate(scope);
    } else if (kind < 4) {
      add_update(scope);
    } else if (kind % 2 == 0) {
      add_loop(scope);
    } else {
      add_branch(scope);
    }
  }

  Instr* fusion(Scope& scope, const std::vector<Instr*>& operands,
                const std::vector<Shape>& shapes) {
    const bool elementwise = pick(2) == 0;
    const Shape result = shapes.size() == 1 ? shapes[0] : Shape::make_tuple(shapes);
    Instr* made = scope.computation->add(Opcode::fusion, result, operands, hlo::FusionAttrs{},
                                         {fused_}, elementwise ? "f_e" : "f_d");
    // A kernel is named by its instruction, so that names of two computations must differ.
    scope.computation->rename(made, made->name() + "_" + std::to_string(kernels.size()));
    std::vector<int> in_place;
    for (const Shape& s : shapes) {
      int operand = pick(static_cast<int>(operands.size()));
      if (!elementwise || operands[static_cast<size_t>(operand)]->shape() != s) operand = -1;
      if (std::count(in_place.begin(), in_place.end(), operand) > 0) operand = -1;
      in_place.push_back(operand);
    }
    KernelUse use = fake_kernel(*made, in_place,
                                pick(5) == 0 ? std::vector<int64_t>{70} : std::vector<int64_t>{});
    if (pick(3) == 0 && operands[0]->shape() == shapes[0]) {  // changed in part
      std::replace(use.in_place.begin(), use.in_place.end(), 0, -1);
      use.in_place[0] = 0;
      use.in_part = {true};
    }
    kernels.emplace(made, std::move(use));
    if (!result.is_tuple()) {
      scope.arrays.push_back(made);
    } else {
      push_elements(scope, made);
    }
    return made;
  }

  void add_update(Scope& scope) {
    Instr* array = any(scope);
    if (array->shape().rank() == 0) return;
    std::vector<int64_t> extents = array->shape().extents();
    for (int64_t& extent : extents) extent = 1 + pick(static_cast<int>(extent));
    Instr* box = fusion(scope, {any(scope)}, {Shape::array(Type::u8, extents)});
    scope.arrays.pop_back();
    std::vector<Instr*> operands{array, box};
    for (size_t d = 0; d < extents.size(); ++d)
      operands.push_back(any(scope, Shape::scalar(Type::u8)));
    scope.arrays.push_back(
        scope.computation->add(Opcode::dynamic_update_slice, array->shape(), operands));
  }

  // Two halves make an array [6,20] again, along either dimension.
  void add_concatenate(Scope& scope) {
    const int64_t d = pick(2);
    std::vector<int64_t> first{6, 20}, second{6, 20};
    first[static_cast<size_t>(d)] = 1 + pick(5);
    second[static_cast<size_t>(d)] -= first[static_cast<size_t>(d)];
    std::vector<Instr*> pieces;
    for (const auto& extents : {first, second}) {
      pieces.push_back(fusion(scope, {any(scope)}, {Shape::array(Type::u8, extents)}));
      scope.arrays.pop_back();
    }
    scope.arrays.push_back(scope.computation->add(
        Opcode::concatenate, Shape::array(Type::u8, {6, 20}), pieces, hlo::DimensionsAttrs{{d}}));
  }

  Scope inside(const Scope& outer, const Shape& argument, const char* name) {
    Scope scope{module.add_computation(name), {}, outer.depth + 1};
    Instr* parameter =
        scope.computation->add(Opcode::parameter, argument, {}, hlo::ParameterAttrs{0});
    push_elements(scope, parameter);
    return scope;
  }

  void add_loop(Scope& scope) {
    std::vector<Instr*> state;
    for (int i = 0; i < 1 + pick(5); ++i) state.push_back(any(scope));
    Instr* init = tuple(scope.computation, state);
    const Shape shape = init->shape();
    Scope condition = inside(scope, shape, "condition");
    if (pick(3) == 0) add(condition, 2);
    condition.computation->set_root(
        fusion(condition, {any(condition)}, {Shape::scalar(Type::pred)}));
    Scope body = inside(scope, shape, "body");
    const std::vector<Instr*> given = body.arrays;
    for (int i = 0; i < 1 + pick(5); ++i) add(body, 4);
    std::vector<Instr*> next;
    for (size_t i = 0; i < given.size(); ++i)
      next.push_back(pick(4) == 0 ? given[i] : any(body, given[i]->shape()));
    body.computation->set_root(tuple(body.computation, next));
    push_elements(scope, scope.computation->add(Opcode::while_, shape, {init}, hlo::NoAttrs{},
                                                {condition.computation, body.computation}));
  }

  void add_branch(Scope& scope) {
    const size_t branches = 2 + static_cast<size_t>(pick(2));
    const Type type = branches == 2 ? Type::pred : Type::u8;
    std::vector<Instr*> operands{fusion(scope, {any(scope)}, {Shape::scalar(type)})};
    if (type == Type::pred) scope.arrays.pop_back();
    std::vector<Shape> results;
    for (int i = 0; i < 1 + pick(3); ++i) results.push_back(any(scope)->shape());
    std::vector<Computation*> called;
    for (size_t b = 0; b < branches; ++b) {
      std::vector<Instr*> given;
      for (int i = 0; i < 1 + pick(4); ++i) given.push_back(any(scope));
      for (const Shape& shape : results)
        if (pick(2) == 0) given.push_back(any(scope, shape));
      operands.push_back(tuple(scope.computation, given));
      Scope branch = inside(scope, operands.back()->shape(), "branch");
      for (int i = 0; i < pick(4); ++i) add(branch, 4);
      std::vector<Instr*> made;
      for (const Shape& shape : results) made.push_back(any(branch, shape));
      branch.computation->set_root(tuple(branch.computation, made));
      called.push_back(branch.computation);
    }
    push_elements(scope, scope.computation->add(Opcode::conditional, Shape::make_tuple(results),
                                                operands, hlo::NoAttrs{}, called));
  }

  void add_aliases() {
    std::vector<bool> taken(inputs.size());
    const auto& outputs = module.entry()->root()->shape().elements();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const size_t p = random_() % taken.size();
      if (taken[p] || module.entry()->parameters()[p]->shape() != outputs[o]) continue;
      taken[p] = true;
      hlo::Alias alias;
      alias.output_index = {static_cast<int64_t>(o)};
      alias.parameter = static_cast<int64_t>(p);
      module.input_output_alias.push_back(alias);
    }
  }

  std::mt19937_64 random_;
  Computation* fused_ = nullptr;
};

// Counts of the cases that the tests cover.
struct Totals {
  int64_t crossings = 0, crossings_in_loops = 0;
  int64_t loops = 0, branches = 0, updates = 0, swaps = 0, carried = 0, inner_copies = 0;
};

void count(const program::Program& p, const std::vector<program::Command>& commands, int depth,
           Totals& totals) {
  for (const program::Command& command : commands) {
    totals.updates += std::holds_alternative<program::Update>(command);
    totals.branches += std::holds_alternative<program::Branch>(command);
    totals.inner_copies += depth > 0 && std::holds_alternative<program::Copy>(command);
    if (const auto* loop = std::get_if<program::Loop>(&command)) {
      ++totals.loops;
      totals.carried += std::ssize(loop->carried);
      for (const program::Carried& carried : loop->carried) totals.swaps += carried.swapped;
    }
    for (program::RegionId id : program::regions_of(command))
      count(p, p.regions[id.index()].commands, depth + 1, totals);
  }
}

void check(RandomControl& m, const Options& options, Totals& totals) {
  auto program = plan(m.module, m.kernels, {}, target::Target(), options);
  ASSERT_TRUE(program) << program.error().message;
  const std::vector<Bytes> got = fake_run(*program, m.inputs, m.kernels);
  const Reference want(m.module, m.kernels, m.inputs);
  ASSERT_EQ(got.size(), want.outputs.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], want.outputs[i]) << "output " << i << "\n"
                                       << hlo::to_string(m.module) << program::to_string(*program);
  ASSERT_LE(program->memory.lower_bound_bytes, program->memory.plan_bytes);
  const program::Crossings crossings = program::count_crossings(*program);
  totals.crossings += crossings.to_device + crossings.to_host;
  totals.crossings_in_loops += crossings.in_loops;
  count(*program, program->commands, 0, totals);
}

TEST(plan, RandomControlOnPoisonedMemory) {
  Totals totals, own_memory;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    RandomControl m(seed);
    Options options;
    options.order = static_cast<Order>(seed % 4);
    options.static_memory = seed % 7 != 0;
    check(m, options, totals);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    if (seed % 2 == 0) continue;
    options.own_memory = true;
    check(m, options, own_memory);
    if (HasFatalFailure()) FAIL() << "own memory, seed " << seed;
  }
  EXPECT_GT(totals.loops, 300);
  EXPECT_GT(totals.branches, 300);
  EXPECT_GT(totals.updates, 300);
  EXPECT_GT(totals.swaps, 50);
  EXPECT_GT(own_memory.crossings, 500);
  EXPECT_GT(own_memory.crossings_in_loops, 100);
  // The random states differ in every possible way; still most must need no copy.
  EXPECT_LT(totals.inner_copies, 3 * totals.carried);
}

}  // namespace
}  // namespace heddle::plan
