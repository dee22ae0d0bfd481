// The state of one evaluation, and the function of each family of operators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "interp/body.h"
#include "interp/interp.h"
#include "interp/numbers.h"

namespace heddle::interp {

class Evaluator;

// A called computation applied to scalars: compiled to a Body if possible, else evaluated in full.
class Function {
 public:
  Function(Evaluator& evaluator, const hlo::Computation& computation);
  size_t inputs() const { return input_types_.size(); }
  size_t outputs() const { return output_types_.size(); }
  Type output_type(size_t i) const { return output_types_[i]; }
  // `in` holds inputs() cells, `out` takes outputs() of them; they may overlap.
  Status call(const Cell* in, Cell* out);

 private:
  Status call_slowly(const Cell* in, Cell* out);
  Evaluator& evaluator_;
  const hlo::Computation& computation_;
  std::optional<Body> body_;
  std::vector<Type> input_types_, output_types_;
};

class Evaluator {
 public:
  explicit Evaluator(const Options& options) : options_(options), steps_left_(options.max_steps) {}
  Evaluator(const Evaluator&) = delete;

  // Arguments and results have the held types: widened if the options say so.
  Result<Literal> run(const hlo::Computation& computation, std::vector<Literal> arguments);
  Result<Literal> run_instr(const hlo::Instr& instr, std::vector<Literal> operands);

  bool widen() const { return options_.widen; }
  Type held(Type type) const { return widen() ? wide_type(type) : type; }
  Result<Shape> held(const Shape& declared) const;  // static, widened, without layouts
  Result<Literal> zeros(const Shape& declared) const;
  Result<Literal> hold(Literal value) const;  // widens

  // The called computation as a function of scalars; lives as long as the evaluator.
  // Error: parameters or results that are not scalars, or not `inputs` and `outputs` of them.
  Result<Function*> function(const hlo::Computation& computation, size_t inputs, size_t outputs);

  RandomState& random() { return options_.random ? *options_.random : random_; }

 private:
  // A computation prepared for execution.
  struct Step {
    const hlo::Instr* instr;
    std::vector<int> operands;   // steps that compute them
    std::vector<bool> last_use;  // per operand: no later reads
    bool steals = false;         // get-tuple-element: the last reader of this element
  };
  struct Plan {
    std::vector<Step> steps;
    int root = 0;
  };
  const Plan& plan(const hlo::Computation& computation);
  static Plan make_plan(const hlo::Computation& computation);
  Result<Literal> run_step(const Step& step, std::vector<Literal>& values,
                           std::vector<Literal>& arguments);

  Options options_;
  int64_t steps_left_;
  int depth_ = 0;
  RandomState random_;      // used if the caller keeps none
  uint64_t disturbed_ = 0;  // count of numbers that options_.disturbance has perturbed
  std::unordered_map<const hlo::Computation*, std::unique_ptr<Plan>> plans_;
  std::unordered_map<const hlo::Computation*, std::unique_ptr<Function>> functions_;
};

// Operands may be moved from.
using Operands = std::vector<Literal>;
using Evaluate = Result<Literal> (*)(Evaluator&, const hlo::Instr&, Operands&);

Result<Literal> eval_elementwise(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_map(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_bitcast_convert(Evaluator& e, const hlo::Instr& instr, Operands& operands);

Result<Literal> eval_broadcast(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_reshape(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_transpose(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_slice(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_pad(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_concatenate(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_reverse(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_iota(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_dynamic_slice(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_dynamic_update_slice(Evaluator& e, const hlo::Instr& instr,
                                          Operands& operands);
Result<Literal> eval_dimension_size(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_gather(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_scatter(Evaluator& e, const hlo::Instr& instr, Operands& operands);

Result<Literal> eval_reduce(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_reduce_window(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_select_and_scatter(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_scan(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_sort(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_topk(Evaluator& e, const hlo::Instr& instr, Operands& operands);

Result<Literal> eval_dot(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_scaled_dot(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_ragged_dot(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_convolution(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_batch_norm(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_cholesky(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_triangular_solve(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_fft(Evaluator& e, const hlo::Instr& instr, Operands& operands);

Result<Literal> eval_rng(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_rng_bit_generator(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_rng_state(Evaluator& e, const hlo::Instr& instr, Operands& operands);

Result<Literal> eval_structure(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_while(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_conditional(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_collective(Evaluator& e, const hlo::Instr& instr, Operands& operands);
Result<Literal> eval_custom_call(Evaluator& e, const hlo::Instr& instr, Operands& operands);

// The values of a top-k along the last dimension and their indices (topk, custom-call TopK).
Result<Literal> top_k(Evaluator& e, const Literal& x, int64_t k, bool largest);

// Why evaluate() refuses the instruction itself (not its callees); nothing: it does not.
std::optional<std::string> refusal(const hlo::Instr& instr);
// "dot (dot.3)", "custom-call foo (custom-call.2)"; with the model's own nodes
// "dot (dot.3, layer/MatMul, layer/Add and 2 more)".
std::string describe(const hlo::Instr& instr);
// The instructions to run: those that the root needs and those with an effect, in order.
std::vector<const hlo::Instr*> live_instrs(const hlo::Computation& computation);

}  // namespace heddle::interp
