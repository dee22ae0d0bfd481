// A computation of scalars, or one elementwise instruction, as a short program on cells. Each step
// runs on many lanes at once, so that an elementwise operator on an array and the body of a reduce
// share one mechanism.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "interp/numbers.h"

namespace heddle::interp {

struct Step {
  // out and operands are `n` lanes each; unused operands are null.
  using Run = void (*)(const Step& step, int64_t n, Cell* out, const Cell* a, const Cell* b,
                       const Cell* c);
  Run run = nullptr;
  void (*function)() = nullptr;             // a function of scalar_ops.h, cast back by `run`
  Type from = Type::pred, to = Type::pred;  // operand a, result: as held
  Type declared_from = Type::pred, declared_to = Type::pred;
  int a = -1, b = -1, c = -1, out = -1;  // slots
  bool rounds = true;                    // false: the consumer of the result rounds it
  int64_t exponent_bits = 0, mantissa_bits = 0;
};

// Fills run, function and types for an elementwise instruction (not: parameter, constant, map).
// With `widen`, types are held wide. False: the operator is not defined on its types.
bool make_step(const hlo::Instr& instr, bool widen, Step& step);

class Body {
 public:
  // Nothing: the computation has more than scalars and elementwise operators.
  static std::optional<Body> compile(const hlo::Computation& computation, bool widen,
                                     int64_t lanes);
  // Its inputs are the operands; the output is not yet rounded, which store_cells does. Nothing:
  // not defined on these types.
  static std::optional<Body> compile(const hlo::Instr& instr, bool widen, int64_t lanes);

  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return outputs_.size(); }
  Type input_type(size_t i) const { return inputs_[i].type; }
  Type output_type(size_t i) const { return outputs_[i].type; }
  // `lanes` cells each. An output may share an input's cells.
  Cell* input(size_t i) { return at(inputs_[i].slot); }
  const Cell* output(size_t i) { return at(outputs_[i].slot); }
  void run(int64_t n);

 private:
  struct Port {
    int slot;
    Type type;
  };
  using Values = std::unordered_map<const hlo::Instr*, std::vector<Port>>;
  Cell* at(int slot) { return slot < 0 ? nullptr : cells_.data() + slot * lanes_; }
  int new_slot();
  bool add(const hlo::Computation& computation, const std::vector<std::vector<Port>>& arguments,
           int depth, std::vector<Port>& result);
  bool add_instr(const hlo::Instr& instr, Values& values, int depth);
  bool add_step(const hlo::Instr& instr, Values& values);

  bool widen_ = false;
  int64_t lanes_ = 1;
  int slots_ = 0;
  std::vector<Step> steps_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::pair<int, Cell>> constants_;
  std::vector<Cell> cells_;
};

}  // namespace heddle::interp
