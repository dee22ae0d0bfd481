#include "api/host_interp.h"

#include <cstring>
#include <memory>
#include <string>

#include "api/host_native.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "tensor/pack.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using tensor::Shape;

// For views without ownership: the memory belongs to the caller of the function.
std::shared_ptr<const void> no_owner() {
  static const char anchor = 0;
  return {&anchor, [](const void*) {}};
}

Literal view_leaves(const Shape& shape, std::span<const void* const> leaves, size_t& next) {
  if (!shape.is_tuple()) {
    const void* data = leaves[next++];
    if (!shape.is_array()) return Literal(shape);
    const Shape dense = Shape::array(shape.type(), shape.extents());
    return dense.bytes() == 0 ? Literal(dense) : Literal::view(dense, data, no_owner());
  }
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(view_leaves(element, leaves, next));
  return Literal::tuple(std::move(elements));
}

void copy_leaves(const Literal& value, std::span<void* const> leaves, size_t& next) {
  if (value.shape().is_tuple()) {
    for (const Literal& element : value.elements()) copy_leaves(element, leaves, next);
    return;
  }
  if (value.bytes() > 0)
    std::memcpy(leaves[next], value.data(), static_cast<size_t>(value.bytes()));
  ++next;
}

bool is_plain(const Shape& shape) {
  return !shape.is_array() || !shape.layout() || shape.layout()->is_row_major();
}

// One host call. Arguments and results with a layout go through a row-major copy.
class InterpCall {
 public:
  explicit InterpCall(std::unique_ptr<hlo::Module> module) : module_(std::move(module)) {}

  Status operator()(std::span<const runtime::HostArgument> arguments,
                    std::span<const runtime::HostResult> results) const {
    std::vector<Literal> unpacked(arguments.size());
    std::vector<const void*> inputs;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Shape& shape = *arguments[i].shape;
      inputs.push_back(arguments[i].data);
      if (is_plain(shape)) continue;
      const int64_t elems = tensor::padded_elems(*shape.layout(), shape.extents());
      const Literal memory =
          Literal::view(Shape::array(shape.type(), {elems}), arguments[i].data, no_owner());
      HEDDLE_ASSIGN_OR_RETURN(unpacked[i], tensor::unpack(memory, shape, *shape.layout()));
      inputs.back() = unpacked[i].data();
    }
    HEDDLE_ASSIGN_OR_RETURN(const Literal result,
                            interp::evaluate(*module_, view_arguments(*module_, inputs)));
    return write(result, results);
  }

 private:
  static Status write(const Literal& result, std::span<const runtime::HostResult> results) {
    std::vector<const Literal*> leaves;
    append(result, leaves);
    HEDDLE_CHECK(leaves.size() == results.size(), "{} results, {} wanted", leaves.size(),
                 results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      Literal packed = *leaves[i];
      if (!is_plain(*results[i].shape)) {
        HEDDLE_ASSIGN_OR_RETURN(packed, tensor::pack(packed, *results[i].shape->layout()));
      }
      if (packed.bytes() > 0)
        std::memcpy(results[i].data, packed.data(), static_cast<size_t>(packed.bytes()));
    }
    return {};
  }

  static void append(const Literal& value, std::vector<const Literal*>& leaves) {
    if (!value.shape().is_tuple()) {
      leaves.push_back(&value);
      return;
    }
    for (const Literal& element : value.elements()) append(element, leaves);
  }

  std::shared_ptr<const hlo::Module> module_;
};

void append_leaf_shapes(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.is_tuple()) {
    leaves.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) append_leaf_shapes(element, leaves);
}

bool same_array(const Shape& a, const Shape& b) {
  if (!a.is_array() || !b.is_array()) return a.is_array() == b.is_array();
  return a.type() == b.type() && a.extents() == b.extents();
}

// Shapes of a text's arguments and results: the arrays of a program file may not match them.
struct Signature {
  explicit Signature(const hlo::Module& module) {
    for (const hlo::Instr* parameter : module.entry()->parameters())
      append_leaf_shapes(parameter->shape(), arguments);
    append_leaf_shapes(module.entry()->root()->shape(), results);
  }

  template <typename Arrays>
  static bool fits(const std::vector<Shape>& wanted, const Arrays& arrays) {
    bool fits = wanted.size() == arrays.size();
    for (size_t i = 0; fits && i < wanted.size(); ++i)
      fits = same_array(wanted[i], *arrays[i].shape);
    return fits;
  }
  Status check(std::span<const runtime::HostArgument> given,
               std::span<const runtime::HostResult> wanted) const {
    if (fits(arguments, given) && fits(results, wanted)) return {};
    return user_error("a host call's arrays are not those of its text; compile the model again");
  }

  std::vector<Shape> arguments, results;
};

Result<runtime::HostCallable> make_interp_call(const std::string& text) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, hlo::parse_module(text));
  const std::vector<std::string> refused = interp::unsupported(*module);
  if (!refused.empty())
    return error_of(
        ErrorKind::unsupported,
        "{} cannot be run: there is no implementation of it; register one "
        "(heddle_register_custom_call), write it with operators of HLO, or compute it outside and "
        "pass the result in (of LAPACK's routines potrf is known)",
        refused.front());
  const auto signature = std::make_shared<const Signature>(*module);
  runtime::HostCallable call;
  if (auto native = native_call(*module))
    call = std::move(*native);
  else
    call = InterpCall(std::move(module));
  return [signature, call](std::span<const runtime::HostArgument> arguments,
                           std::span<const runtime::HostResult> results) -> Status {
    HEDDLE_RETURN_IF_ERROR(signature->check(arguments, results));
    return call(arguments, results);
  };
}

}  // namespace

bool draws_random_numbers(const hlo::Module& module) {
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->is(hlo::Opcode::rng) || instr->is(hlo::Opcode::rng_get_and_update_state))
        return true;
  return false;
}

runtime::HostFunctions host_functions() { return {{"interp", make_interp_call}}; }

std::vector<Literal> view_arguments(const hlo::Module& module,
                                    std::span<const void* const> leaves) {
  std::vector<Literal> arguments;
  size_t next = 0;
  for (const hlo::Instr* parameter : module.entry()->parameters())
    arguments.push_back(view_leaves(parameter->shape(), leaves, next));
  return arguments;
}

void copy_result(const Literal& result, std::span<void* const> leaves) {
  size_t next = 0;
  copy_leaves(result, leaves, next);
}

}  // namespace heddle::api
