#include "precision/loss_scale.h"

#include <algorithm>
#include <cstdint>

#include "hlo/builder.h"
#include "hlo/state_arrays.h"
#include "precision/gradient_flow.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Direction;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr double kNoNumber = INT32_MAX;  // as the number of a parameter

Shape state_shape() { return Shape::array(Type::f32, {kLossScaleNumbers}); }

class Scaler {
 public:
  Scaler(const LossScale& scale, GradientFlow flow, hlo::Module* module)
      : scale_(scale), flow_(std::move(flow)), module_(*module), b_(module->entry()) {}

  LossScaleCounts run() {
    hlo::Computation& entry = *module_.entry();
    states_ = hlo::states_of(module_);
    b_.set_name("loss_scale");
    if (scale_.is_automatic) {
      state_ = b_.parameter(std::ssize(entry.parameters()), state_shape(), kLossScaleState);
      factor_ = number(kScale);
    } else {
      factor_ = b_.scalar(Type::f32, scale_.scale);
    }
    inverse_ = b_.binary(Opcode::divide, b_.scalar(Type::f32, 1), factor_);
    put_in();
    take_out();
    if (scale_.is_automatic) keep_or_change();
    b_.check();
    entry.sort();
    return {static_cast<int>(flow_.starts.size()), static_cast<int>(flow_.carriers.size()),
            static_cast<int>(flow_.gradients.size())};
  }

 private:
  Instr* number(int64_t i) { return b_.reshape(b_.slice(state_, {i}, {i + 1}, {}), {}); }
  Instr* f32(double value) { return b_.scalar(Type::f32, value); }
  Instr* spread(Instr* scalar, const Shape& like) {
    return b_.broadcast(scalar, like.extents(), {});
  }
  Instr* times(Instr* x, Instr* factor) {
    return b_.binary(Opcode::multiply, x,
                     spread(b_.convert(factor, x->shape().type()), x->shape()));
  }

  void put_in() {
    for (Instr* start : flow_.starts) {
      const std::vector<Instr*> users = start->users();
      Instr* scaled = times(start, factor_);
      for (Instr* user : users)
        for (size_t i = 0; i < user->operands().size(); ++i)
          if (user->operand(i) == start && flow_.carries(user, i))
            module_.entry()->replace_operand(user, i, scaled);
    }
  }

  void take_out() {
    for (Instr* carrier : flow_.carriers) {
      const std::vector<Instr*> users = carrier->users();
      Instr* plain = nullptr;
      for (Instr* user : users)
        for (size_t i = 0; i < user->operands().size(); ++i) {
          if (user->operand(i) != carrier || flow_.carries(user, i)) continue;
          if (!plain) plain = times(carrier, inverse_);
          module_.entry()->replace_operand(user, i, plain);
        }
    }
  }

  // The parameter's number if its gradient has non-finite elements. They are counted by columns,
  // which the product's kernel can do as it stores the elements.
  Instr* number_where_bad(const GradientFlow::Gradient& gradient) {
    Instr* x = gradient.value;
    const int64_t rank = x->shape().rank();
    if (rank == 0) x = b_.reshape(x, {1});
    Instr* finite = b_.unary(Opcode::is_finite, x);
    if (rank > 1) {
      Ints rows;
      for (int64_t d = 0; d + 1 < rank; ++d) rows.push_back(d);
      Instr* bad = b_.select(finite, b_.full(of_f32(x), 0), b_.full(of_f32(x), 1));
      Instr* count = b_.reduce(Opcode::add, bad, rows);
      finite = b_.compare(Direction::eq, count, b_.full(count->shape(), 0));
    }
    const Shape shape = Shape::array(Type::s32, finite->shape().extents());
    return b_.select(finite, b_.full(shape, kNoNumber),
                     b_.full(shape, static_cast<double>(gradient.parameter)));
  }
  static Shape of_f32(const Instr* x) { return Shape::array(Type::f32, x->shape().extents()); }

  void keep_or_change() {
    std::vector<Instr*> numbers;
    for (const GradientFlow::Gradient& gradient : flow_.gradients)
      numbers.push_back(number_where_bad(gradient));
    Instr* first = b_.reduce(Opcode::minimum, b_.concatenate(numbers, 0), {0});
    Instr* good = b_.compare(Direction::eq, first, b_.scalar(Type::s32, kNoNumber));
    choose(good);
    add_port(next_state(good, first));
  }

  // Kept arrays stay unchanged if a gradient is not finite.
  void choose(Instr* good) {
    hlo::Computation& entry = *module_.entry();
    Instr* root = entry.root();
    const auto outputs = std::ssize(root->operands()) - std::ssize(module_.states);
    for (const hlo::Alias& alias : module_.input_output_alias) {
      if (alias.output_index.size() != 1 || alias.output_index[0] >= outputs) continue;
      const auto output = static_cast<size_t>(alias.output_index[0]);
      Instr* before = entry.parameters().at(static_cast<size_t>(alias.parameter));
      Instr* after = root->operand(output);
      if (after == before || !after->shape().is_array()) continue;
      entry.replace_operand(root, output, b_.select(spread(good, after->shape()), after, before));
    }
  }

  Instr* next_state(Instr* good, Instr* first) {
    Instr* steps = b_.binary(Opcode::add, number(kGoodSteps), f32(1));
    Instr* grows = b_.compare(Direction::ge, steps, f32(kStepsToGrow));
    const auto limited = [&](double by, double least, double most) {
      return b_.clamp(f32(least), b_.binary(Opcode::multiply, number(kScale), f32(by)), f32(most));
    };
    Instr* zero = f32(0);
    const std::vector<Instr*> next{
        b_.select(good, b_.select(grows, limited(2, kLeastScale, kMostScale), number(kScale)),
                  limited(0.5, kLeastScale, kMostScale)),
        b_.select(good, b_.select(grows, zero, steps), zero),
        b_.binary(Opcode::add, number(kSkippedSteps), b_.select(good, zero, f32(1))),
        b_.select(good, zero, b_.binary(Opcode::add, number(kSkippedNow), f32(1))),
        b_.select(good, f32(-1), b_.convert(first, Type::f32))};
    std::vector<Instr*> parts;
    parts.reserve(next.size());
    for (Instr* one : next) parts.push_back(b_.reshape(one, {1}));
    return b_.concatenate(parts, 0);
  }

  // The state becomes the last parameter and the last result.
  void add_port(Instr* next) {
    hlo::Computation& entry = *module_.entry();
    std::vector<Instr*> results = entry.root()->operands();
    results.push_back(next);
    Instr* before = entry.root();
    Instr* root = b_.tuple(results);
    entry.set_root(root);
    root->copy_notes(*before);
    entry.remove(before);
    module_.input_output_alias.push_back(
        {{std::ssize(results) - 1}, std::ssize(entry.parameters()) - 1, {}, false});
    if (module_.entry_layout) {
      module_.entry_layout->first.push_back(state_shape());
      std::vector<Shape> shapes = module_.entry_layout->second.elements();
      shapes.push_back(state_shape());
      module_.entry_layout->second = Shape::make_tuple(std::move(shapes));
    }
    Literal start(state_shape());
    const double numbers[kLossScaleNumbers] = {kFirstScale, 0, 0, 0, -1};
    for (int64_t i = 0; i < kLossScaleNumbers; ++i) start.set_f64(i, numbers[i]);
    states_.push_back(std::move(start));
    hlo::set_states(&module_, states_);
  }

  const LossScale scale_;
  GradientFlow flow_;
  hlo::Module& module_;
  Builder b_;
  std::vector<Literal> states_;  // the module's states
  Instr* state_ = nullptr;
  Instr* factor_ = nullptr;
  Instr* inverse_ = nullptr;
};

}  // namespace

LossScaleCounts scale_loss(const LossScale& scale, hlo::Module* module) {
  GradientFlow flow = find_gradients(*module);
  if (flow.gradients.empty()) return {};
  return Scaler(scale, std::move(flow), module).run();
}

}  // namespace heddle::precision
