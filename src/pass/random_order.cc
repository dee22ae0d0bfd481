#include "pass/random_order.h"

#include <algorithm>

#include "pass/random_builder.h"

namespace heddle::pass {
namespace {

class OrderBuilder {
 public:
  OrderBuilder(hlo::Module* module, uint64_t seed, int64_t extent)
      : random_(seed), b_(module->entry()), extent_(extent) {
    for (int i = 0; i < 3; ++i) values_.push_back(b_.parameter(i, shape(), ""));
    weights_ = b_.binary(Opcode::multiply, b_.parameter(3, shape(), ""),
                         b_.full(shape(), 1.0 / static_cast<double>(extent)));
    const int64_t count = 8 + random_.below(53);
    // With many sorts no operators share a kernel, with none all do.
    one_opaque_in_ = 2 + random_.below(6);
    for (int64_t i = 0; i < count; ++i) {
      if (random_.one_in(one_opaque_in_))
        opaque_row();
      else
        fusible();
    }
    finish();
    for (int64_t edges = random_.below(5); edges > 0; --edges) add_control_edge();
    b_.check();
  }

 private:
  Shape shape() const { return Shape::array(Type::f32, {extent_, extent_}); }

  // Later values are more likely, so that chains grow long; early ones occur, too, so that paths
  // diverge and rejoin.
  Instr* value() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t back =
        random_.one_in(3) ? random_.below(count) : random_.below(std::min(count, int64_t{5}));
    return values_[static_cast<size_t>(count - 1 - back)];
  }

  void fusible() {
    Instr* x = value();
    Instr* made = nullptr;
    switch (random_.below(8)) {
      case 0:
        made = b_.unary(Opcode::tanh, x);
        break;
      case 1:
        made = b_.unary(random_.one_in(2) ? Opcode::negate : Opcode::abs, x);
        break;
      case 2:
        made = b_.transpose(x, {1, 0});
        break;
      case 3: {
        const int64_t dimension = random_.below(2);
        made = b_.broadcast(b_.reduce(Opcode::maximum, x, {dimension}), {extent_, extent_},
                            {1 - dimension});
        break;
      }
      case 4: {  // half of each
        const int64_t half = extent_ / 2, dimension = random_.below(2);
        Instr* both = b_.concatenate({x, value()}, dimension);
        Ints starts{0, 0}, limits{extent_, extent_};
        starts[static_cast<size_t>(dimension)] = half;
        limits[static_cast<size_t>(dimension)] = half + extent_;
        made = b_.slice(both, starts, limits, {});
        break;
      }
      default: {
        const std::vector<Opcode> opcodes = {Opcode::multiply, Opcode::maximum, Opcode::minimum};
        made = b_.binary(random_.pick(opcodes), b_.unary(Opcode::tanh, x), value());
      }
    }
    values_.push_back(made);
  }

  void opaque_row() {
    Instr* x = value();
    for (int64_t row = 1 + random_.below(4); row > 0; --row) x = opaque(x);
    values_.push_back(x);
  }

  Instr* opaque(Instr* x) {
    switch (random_.below(3)) {
      case 0:
        return b_.sort({x}, random_.below(2), random_.one_in(2), less());
      case 1: {
        hlo::DotAttrs attrs;
        attrs.lhs_contracting_dims = {1};
        attrs.rhs_contracting_dims = {0};
        return b_.dot(x, weights_, attrs);
      }
      default: {
        hlo::TopKAttrs attrs;
        attrs.k = extent_ / 2;
        Instr* top = b_.get_tuple_element(b_.make(Opcode::topk, {x}, attrs), 0);
        return b_.concatenate({top, top}, 1);
      }
    }
  }

  hlo::Computation* less() {
    if (less_) return less_;
    less_ = b_.module()->add_computation("less");
    hlo::Builder inner(less_);
    const Shape scalar = Shape::array(Type::f32, {});
    Instr* a = inner.parameter(0, scalar, "");
    Instr* b = inner.parameter(1, scalar, "");
    less_->set_root(inner.compare(hlo::Direction::lt, a, b));
    inner.check();
    return less_;
  }

  void finish() {
    std::vector<Instr*> outputs;
    for (Instr* value : values_)
      if (value->users().empty()) outputs.push_back(value);
    b_.computation()->set_root(b_.tuple(outputs));
  }

  void add_control_edge() {
    const std::vector<Instr*> order = b_.computation()->instrs();
    const int64_t last = static_cast<int64_t>(order.size()) - 2;  // before the root
    const int64_t a = random_.below(last), b = a + 1 + random_.below(last - a);
    Instr *before = order[static_cast<size_t>(a)], *after = order[static_cast<size_t>(b)];
    if (!after->is(Opcode::parameter)) b_.computation()->add_control_edge(before, after);
  }

  Random random_;
  hlo::Builder b_;
  const int64_t extent_;
  std::vector<Instr*> values_;
  Instr* weights_ = nullptr;
  hlo::Computation* less_ = nullptr;
  int64_t one_opaque_in_ = 4;
};

}  // namespace

std::unique_ptr<hlo::Module> random_order_module(uint64_t seed, int64_t extent) {
  auto module = std::make_unique<hlo::Module>("random_order");
  module->set_entry(module->add_computation("main"));
  OrderBuilder(module.get(), seed, extent);
  return module;
}

}  // namespace heddle::pass
