// Reference evaluator of HLO: plain and slow, the oracle for every optimised result. Read this
// header first.
//
// Numbers. Integers wrap at their width. Each operator's value is computed in f64 (complex: c128)
// and rounded once to its type, so functions such as `exponential` are correctly rounded nearly
// always. Sums of products (dot, convolution, ragged-dot) add in ascending order of the contracted
// indices, in f32 for types up to f32, in f64 for f64, c128 for complex, 64 bits for integers, and
// round once at the end; reduce, reduce-window and select-and-scatter whose body is a single add,
// multiply, minimum or maximum do the same (complex ones round at each step). Every other body
// rounds at each of its operators. Linear algebra, fft and batch-norm work in f64 and round at the
// end. operand_precision and algorithm of a dot are performance hints and are ignored.
//
// Layouts have no meaning here, except for bitcast: literals are row-major. A dynamic dimension is
// taken at its bound. There is one participant: its replica and partition id are 0. rng and
// rng-get-and-update-state start from the same state in each evaluation, or continue a state that
// the caller keeps (Options::random).
//
// Preconditions: the module verifies (hlo/verify.h).
// Thread safety: evaluate() shares no state; any number may run at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"
#include "tensor/literal.h"

namespace heddle::interp {

// State of the random operators without a state operand.
struct RandomState {
  uint64_t counter = 0;                         // of rng: numbers drawn
  uint64_t words[2] = {0x9e3779b97f4a7c15, 0};  // of rng-get-and-update-state, low first
};
struct Disturbance;  // disturb.h

struct Options {
  // Keep f16, bf16, f32 (and c64) values as f64 (c128) from the arguments to the result, where they
  // are rounded to their type once. The difference from the plain run gives the scale of rounding
  // error. Conversions between those types are then identities; f8 and narrower still round.
  bool widen = false;
  // With `widen`: do not round at the end; f16, bf16, f32 leaves of the result are f64, c64 is
  // c128.
  bool keep_wide = false;
  // Perturbs every rounding; must outlive the evaluation. Not within bodies that are applied to
  // scalars (of map, reduce, sort …): their results are perturbed as a whole.
  const Disturbance* disturbance = nullptr;
  // Limit on instructions executed, counted again in each iteration of a loop; beyond it: an error.
  int64_t max_steps = 200'000'000;
  // Read at the start and updated at the end. Owned by the caller. Null: the initial state.
  RandomState* random = nullptr;
};

// The entry computation, or any other. The arguments must have the parameters' shapes (ignoring
// layouts; with `widen` also their f64 forms). The result may be a tuple. Errors: a wrong argument,
// instructions that unsupported() lists, max_steps, no memory.
Result<tensor::Literal> evaluate(const hlo::Module& module,
                                 std::span<const tensor::Literal> arguments,
                                 const Options& options = {});
Result<tensor::Literal> evaluate(const hlo::Computation& computation,
                                 std::span<const tensor::Literal> arguments,
                                 const Options& options = {});
// One instruction, including its callees, from the values of its operands. Not a parameter.
Result<tensor::Literal> evaluate_instr(const hlo::Instr& instr,
                                       std::span<const tensor::Literal> operands,
                                       const Options& options = {});

// "opcode (instr)" of each instruction that the entry reaches and evaluate() would refuse; for a
// custom-call "custom-call TARGET (instr)".
std::vector<std::string> unsupported(const hlo::Module& module);

}  // namespace heddle::interp
