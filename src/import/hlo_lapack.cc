#include "import/hlo_lapack.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/builder.h"

namespace heddle::import {
namespace {

using hlo::Builder;
using hlo::Direction;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;

// "potrf" for "lapack_spotrf_ffi" and "lapack_spotrf"; empty: another kind of target.
std::string_view routine_of(std::string_view target) {
  for (std::string_view prefix : {"lapack_", "blas_"}) {
    if (!target.starts_with(prefix)) continue;
    target.remove_prefix(prefix.size());
    if (target.ends_with("_ffi")) target.remove_suffix(4);
    return target.size() > 1 ? target.substr(1) : target;
  }
  return {};
}

// The letter in `name = 76 : ui8` in the backend configuration, here 'L'. 0: absent.
char letter_of(const Instr& call, std::string_view name) {
  for (const auto& [key, value] : call.annotations()) {
    if (key != "backend_config") continue;
    const size_t at = value.find(name);
    if (at == std::string::npos) continue;
    const size_t digit = value.find_first_of("0123456789", at);
    if (digit == std::string::npos || digit + 1 >= value.size()) continue;
    return static_cast<char>((value[digit] - '0') * 10 + (value[digit + 1] - '0'));
  }
  return 0;
}

std::optional<bool> is_lower(const Instr& call) {
  const char letter = letter_of(call, "uplo");
  if (letter != 'L' && letter != 'U') return std::nullopt;
  return letter == 'L';
}

// Results (factor, status), for one matrix or a batch.
bool fits_potrf(const Instr& call) {
  if (call.operands().size() != 1 || !call.shape().is_tuple()) return false;
  const Shape& x = call.operand(0)->shape();
  const std::vector<Shape>& parts = call.shape().elements();
  if (!x.is_array() || x.rank() < 2 || x.dim(-1) != x.dim(-2) || !x.is_static() ||
      parts.size() != 2 || !parts[0].compatible(x) || parts[1].type() != Type::s32)
    return false;
  const Ints extents = x.extents();
  return parts[1].extents() == Ints(extents.begin(), extents.end() - 2);
}

// The status is 1 if the factor has a NaN (the matrix had no factor), else 0.
Instr* potrf(const Instr& call, bool lower, Builder& b) {
  Instr* x = call.operand(0);
  hlo::CholeskyAttrs attrs;
  attrs.lower = lower;
  Instr* factor = b.make(Opcode::cholesky, {x}, attrs);
  Instr* real = tensor::is_complex(x->shape().type()) ? b.unary(Opcode::abs, factor) : factor;
  const int64_t rank = x->shape().rank();
  Instr* failed = b.reduce(Opcode::or_, b.compare(Direction::ne, real, real), {rank - 2, rank - 1});
  return b.tuple({factor, b.convert(failed, Type::s32)});
}

// Operands: the triangular matrix and the right-hand sides, one matrix each or batches of them.
// Null: a form that is not supported here.
Instr* trsm(const Instr& call, Builder& b) {
  using Transpose = hlo::TriangularSolveAttrs::Transpose;
  const char side = letter_of(call, "side"), trans = letter_of(call, "trans_x"),
             diag = letter_of(call, "diag");
  const std::optional<bool> lower = is_lower(call);
  if (call.operands().size() != 2 || !call.shape().compatible(call.operand(1)->shape()) || !lower ||
      (side != 'L' && side != 'R') || (trans != 'N' && trans != 'T' && trans != 'C') ||
      (diag != 'N' && diag != 'U'))
    return nullptr;
  hlo::TriangularSolveAttrs attrs;
  attrs.left_side = side == 'L';
  attrs.lower = *lower;
  attrs.unit_diagonal = diag == 'U';
  attrs.transpose_a = trans == 'N'   ? Transpose::no_transpose
                      : trans == 'T' ? Transpose::transpose
                                     : Transpose::adjoint;
  return b.make(Opcode::triangular_solve, {call.operand(0), call.operand(1)}, attrs);
}

}  // namespace

Status replace_lapack_calls(hlo::Module& module) {
  std::vector<hlo::Computation*> computations;  // a copy: building a reduction adds one
  for (const auto& computation : module.computations()) computations.push_back(computation.get());
  for (hlo::Computation* computation : computations) {
    const std::vector<Instr*> instrs = computation->instrs();
    for (Instr* instr : instrs) {
      if (!instr->is(Opcode::custom_call)) continue;
      const std::string& target = instr->attrs_as<hlo::CustomCallAttrs>().custom_call_target;
      const std::string_view routine = routine_of(target);
      if (routine.empty()) continue;
      const std::optional<bool> lower = is_lower(*instr);
      Builder b(computation);
      Instr* made = nullptr;
      if (routine == "potrf" && lower && fits_potrf(*instr)) made = potrf(*instr, *lower, b);
      if (routine == "trsm") made = trsm(*instr, b);
      if (made == nullptr) continue;
      HEDDLE_RETURN_IF_ERROR(b.status());
      computation->replace_all_uses(instr, made);
      computation->remove(instr);
    }
  }
  return {};
}

}  // namespace heddle::import
