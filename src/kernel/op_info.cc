#include "kernel/op_info.h"

#include <string>

namespace heddle::kernel {
namespace {

struct Row {
  Op op;
  OpClass op_class;
  std::string_view cuda;
};

constexpr Row kRows[] = {
#define HEDDLE_KERNEL_OP(name, operands, types, op_class, cuda, value) \
  {Op::name, OpClass::op_class, cuda},
#include "kernel/ops.def"
};

const Row& row(Op op) { return kRows[static_cast<size_t>(op)]; }

std::optional<Op> named(std::string_view text) {
  for (const Row& row : kRows)
    if (op_text(row.op) == text) return row.op;
  return std::nullopt;
}

constexpr std::string_view kFast = "_fast";

}  // namespace

OpClass op_class(Op op) { return row(op).op_class; }

std::string_view cuda_name(Op op) { return row(op).cuda; }

std::optional<Op> fast_form(Op op) { return named(std::string(op_text(op)) + std::string(kFast)); }

std::optional<Op> exact_form(Op op) {
  if (op_class(op) != OpClass::fast) return std::nullopt;
  std::string_view text = op_text(op);
  text.remove_suffix(kFast.size());
  return named(text);
}

}  // namespace heddle::kernel
