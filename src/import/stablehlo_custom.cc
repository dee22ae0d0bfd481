// StableHLO: custom calls.
#include <array>
#include <map>

#include "import/stablehlo_check.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

// Annotations of sharding: no effect with one partition.
constexpr std::array<std::string_view, 8> kIdentities = {"Sharding",
                                                         "SPMDFullToShardShape",
                                                         "SPMDShardToFullShape",
                                                         "annotate_device_placement",
                                                         "xla.sdy.FuncResultSharding",
                                                         "xla.sdy.GlobalToLocalShape",
                                                         "xla.sdy.LocalToGlobalShape",
                                                         "xla.sdy.PropagationBarrier"};

// Custom calls of jax that are stablehlo operations with shape operands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kOperations = {
    {{"stablehlo.dynamic_reshape", "stablehlo.dynamic_reshape"},
     {"mhlo.topk", "chlo.top_k"},
     {"mhlo.erf", "chlo.erf"},
     {"mhlo.erf_inv", "chlo.erf_inv"},
     {"mhlo.acos", "chlo.acos"},
     {"mhlo.acosh", "chlo.acosh"},
     {"mhlo.asin", "chlo.asin"},
     {"mhlo.asinh", "chlo.asinh"},
     {"mhlo.atanh", "chlo.atanh"},
     {"mhlo.cosh", "chlo.cosh"},
     {"mhlo.sinh", "chlo.sinh"},
     {"mhlo.tan", "chlo.tan"}}};

// As in HLO text: api_version=API_VERSION_TYPED_FFI and the backend configuration.
std::string value_text(const MlirAttr& value) {
  switch (value.kind) {
    case MlirAttr::Kind::string:
      return '"' + value.text + '"';
    case MlirAttr::Kind::boolean:
      return value.integer != 0 ? "true" : "false";
    case MlirAttr::Kind::integer:
      return value.type.kind == MlirType::Kind::scalar
                 ? fmt::format("{} : {}", value.integer, to_string(value.type))
                 : fmt::format("{}", value.integer);
    case MlirAttr::Kind::floating:
      return fmt::format("{:e} : {}", value.floating, to_string(value.type));
    default:
      return "unit";
  }
}

std::string backend_config(const MlirAttr& attr) {
  if (attr.is(MlirAttr::Kind::string)) return '"' + attr.text + '"';
  std::string text;
  for (const auto& [name, value] : attr.fields)
    text += (text.empty() ? "" : ", ") + name + " = " + value_text(value);
  return "{" + text + "}";
}

// jax's checks of dimension variables: evaluated here, as all shapes are known.
void shape_assertion(ShloOp& op) {
  if (op.operand(0)->shape() != Shape::scalar(tensor::Type::pred))
    fail("operand 0 is {}, wanted a boolean", tensor::to_string(op.operand(0)->shape(), false));
  const std::optional<Literal> holds = op.known(op.operand(0));
  if (holds && holds->get_s64(0) == 0)
    fail("{}", op.op.attr("error_message") != nullptr ? op.text("error_message")
                                                      : "an assertion on shapes does not hold");
  if (!holds) op.importer.note("an assertion on shapes is not checked: it depends on an input");
}

void custom_call(ShloOp& op) {
  const std::string target = op.text("call_target_name");
  if (check_custom_call(op, target)) return;
  if (target == "shape_assertion" && op.result_types.empty()) return shape_assertion(op);
  for (const std::string_view identity : kIdentities) {
    if (identity != target || op.result_types.size() != op.count()) continue;
    op.results = op.operands;
    return;
  }
  for (const auto& [name, operation] : kOperations) {
    if (name != target) continue;
    MlirOp renamed = op.op;
    renamed.name = std::string(operation);
    if (const MlirAttr* attributes = op.op.attr("mhlo.attributes"))
      for (const auto& [key, value] : attributes->fields) renamed.attrs.emplace_back(key, value);
    ShloOp inner(&op.importer, renamed, &op.frame);
    find_shlo(operation)->handler(inner);
    op.results = std::move(inner.results);
    return;
  }
  std::vector<Shape> shapes;
  for (size_t i = 0; i < op.result_types.size(); ++i) shapes.push_back(op.result_shape(i));
  hlo::CustomCallAttrs attrs;
  attrs.custom_call_target = target;
  attrs.has_side_effect = op.flag("has_side_effect");
  const int64_t version = op.integer("api_version", 1);
  if (version == 4) attrs.rest = "api_version=API_VERSION_TYPED_FFI";
  const bool one = shapes.size() == 1;
  const Shape shape = one ? shapes[0] : Shape::make_tuple(shapes);
  Instr* result = op.b.make(Opcode::custom_call, op.operands, std::move(attrs), {}, &shape);
  const MlirAttr* config = op.op.attr("mhlo.backend_config");
  if (config == nullptr) config = op.op.attr("backend_config");
  if (config != nullptr && op.b.status())
    result->annotations().emplace_back("backend_config", backend_config(*config));
  if (one) return op.give(result);
  op.give_tuple(result);
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.custom_call", custom_call},
};

}  // namespace

std::span<const ShloEntry> shlo_custom_ops() { return kOps; }

}  // namespace heddle::import
