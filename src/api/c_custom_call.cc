// Custom calls: registers functions of the caller in the interpreter's registry.
#include <vector>

#include "api/c_status.h"
#include "api/heddle.h"
#include "interp/custom_functions.h"

namespace heddle::api {
namespace {

using tensor::Literal;

// Arrays of values as passed to the caller; dims[i] belongs to arrays[i].
struct Arrays {
  std::vector<heddle_array> arrays;
  std::vector<std::vector<int64_t>> dims;

  void add(const Literal& value, void* data) {
    dims.push_back(value.shape().extents());
    arrays.push_back({static_cast<heddle_type>(value.type()),
                      static_cast<int64_t>(dims.back().size()), nullptr, data});
  }
  void add_arguments(const Literal& value) {
    if (value.shape().is_array()) add(value, const_cast<void*>(value.data()));
    for (const Literal& element : value.elements()) add_arguments(element);
  }
  void add_results(Literal& value) {
    if (value.shape().is_array()) add(value, value.mutable_data());
    for (Literal& element : value.mutable_elements()) add_results(element);
  }
  const heddle_array* data() {
    for (size_t i = 0; i < arrays.size(); ++i) arrays[i].dims = dims[i].data();
    return arrays.data();
  }
};

interp::CustomFunction wrapped(heddle_custom_function function, void* context) {
  return [function, context](const hlo::Instr& instr, std::span<const Literal> operands,
                             Literal* result) -> Status {
    const auto& attrs = instr.attrs_as<hlo::CustomCallAttrs>();
    const char* config = "";
    for (const auto& [key, value] : instr.annotations())
      if (key == "backend_config") config = value.c_str();
    Arrays arguments, results;
    for (const Literal& operand : operands) arguments.add_arguments(operand);
    results.add_results(*result);
    char error[4096] = "";
    const heddle_custom_call call{sizeof(heddle_custom_call),
                                  attrs.custom_call_target.c_str(),
                                  config,
                                  arguments.data(),
                                  static_cast<int64_t>(arguments.arrays.size()),
                                  results.data(),
                                  static_cast<int64_t>(results.arrays.size()),
                                  error,
                                  sizeof error};
    const int32_t code = function(&call, context);
    if (code == 0) return {};
    error[sizeof error - 1] = 0;
    return user_error("custom-call {} ({}): its function failed with {}{}{}",
                      attrs.custom_call_target, instr.name(), code, *error != 0 ? ": " : "", error);
  };
}

}  // namespace
}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are in no namespace

extern "C" void heddle_register_custom_call(const char* target, heddle_custom_function function,
                                            void* context) {
  api::told(__func__, [&](const api::Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"target", target}}));
    if (*target == '\0') return call.wrong("target", "empty", "a custom_call_target");
    interp::register_custom_function(
        target, function == nullptr ? interp::CustomFunction() : api::wrapped(function, context));
    return {};
  });
}
