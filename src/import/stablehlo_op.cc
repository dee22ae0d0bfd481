// A handler's view of one operation.
#include <algorithm>
#include <cctype>

#include "import/stablehlo_importer.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {

Shape shlo_shape(const MlirType& type) {
  if (type.kind == MlirType::Kind::token) return Shape::make_token();
  if (type.kind == MlirType::Kind::tuple) {
    std::vector<Shape> elements;
    for (const MlirType& element : type.elements) elements.push_back(shlo_shape(element));
    return Shape::make_tuple(std::move(elements));
  }
  if (!type.is_tensor()) fail("type {} is not supported here", to_string(type));
  std::vector<int64_t> dims = type.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == MlirType::kDynamic && d < type.bounds.size()) dims[d] = type.bounds[d];
    if (dims[d] == MlirType::kDynamic)
      fail("type {}: its dimensions must be known here", to_string(type));
  }
  if (!tensor::checked_product(dims)) fail("type {} is too large", to_string(type));
  return Shape::array(type.element, dims);
}

ShloOp::ShloOp(StablehloImporter* importer, const MlirOp& op, Frame* frame)
    : op(op), importer(*importer), frame(*frame), b(*frame->builder) {
  for (const MlirValue value : op.operands) {
    operands.push_back(importer->value(value, *frame));
    operand_types.push_back(&importer->type_of(value));
  }
  for (const MlirValue value : op.results) result_types.push_back(&importer->type_of(value));
}

Instr* ShloOp::operand(size_t i) const {
  if (i >= operands.size()) fail("operand {} is missing", i);
  return operands[i];
}

void ShloOp::give_tuple(Instr* tuple) {
  if (!b.status()) return;
  for (size_t i = 0; i < tuple->shape().elements().size(); ++i)
    results.push_back(b.get_tuple_element(tuple, static_cast<int64_t>(i)));
}

const MlirType& ShloOp::result_type(size_t i) const {
  if (i >= result_types.size()) fail("result {} is missing", i);
  return *result_types[i];
}

Shape ShloOp::result_shape(size_t i) const { return shlo_shape(result_type(i)); }

void ShloOp::want_operands(size_t least, size_t most) const {
  if (count() < least || count() > most) fail("{} operands, wanted {} to {}", count(), least, most);
}

const MlirAttr& ShloOp::attr(std::string_view name) const {
  const MlirAttr* found = op.attr(name);
  if (found == nullptr) fail("attribute {} is missing", name);
  return *found;
}

Ints ShloOp::ints(std::string_view name) const {
  Ints values;
  if (!integers_of(attr(name), &values)) fail("attribute {}: wanted integers", name);
  return values;
}

Ints ShloOp::ints(std::string_view name, Ints missing) const {
  return op.attr(name) == nullptr ? std::move(missing) : ints(name);
}

int64_t ShloOp::integer(std::string_view name) const {
  const Ints values = ints(name);
  if (values.size() != 1) fail("attribute {}: {} integers, wanted one", name, values.size());
  return values[0];
}

int64_t ShloOp::integer(std::string_view name, int64_t missing) const {
  return op.attr(name) == nullptr ? missing : integer(name);
}

bool ShloOp::flag(std::string_view name, bool missing) const {
  const MlirAttr* found = op.attr(name);
  if (found == nullptr) return missing;
  return found->is(MlirAttr::Kind::unit) || found->integer != 0;
}

std::string ShloOp::word(std::string_view name, std::string missing) const {
  const MlirAttr* found = op.attr(name);
  if (found == nullptr) return missing;
  if (found->is(MlirAttr::Kind::string)) return found->text;
  if (found->elements.empty()) fail("attribute {}: wanted a word", name);
  return found->elements[0].text;
}

std::string ShloOp::text(std::string_view name) const {
  const MlirAttr& found = attr(name);
  if (!found.is(MlirAttr::Kind::string) && !found.is(MlirAttr::Kind::symbol))
    fail("attribute {}: wanted a string or a symbol", name);
  return found.text;
}

double ShloOp::number(std::string_view name, double missing) const {
  const MlirAttr* found = op.attr(name);
  if (found == nullptr) return missing;
  if (found->is(MlirAttr::Kind::floating)) return found->floating;
  if (found->is(MlirAttr::Kind::integer)) return static_cast<double>(found->integer);
  fail("attribute {}: wanted a number", name);
}

const MlirRegion& ShloOp::region(size_t i) const {
  if (i >= op.regions.size()) fail("region {} is missing", i);
  return op.regions[i];
}

std::optional<Literal> ShloOp::known(Instr* value) const {
  if (value->is(Opcode::constant)) return value->literal();
  auto values = fold({value}, importer.fold_budget());
  if (!values) return std::nullopt;
  return std::move((*values)[0]);
}

Ints ShloOp::known_ints(size_t i, int64_t assumed) const {
  Instr* value = operand(i);
  if (!value->shape().is_array() || !tensor::is_integer(value->shape().type()))
    fail("operand {} is {}, wanted integers", i, tensor::to_string(value->shape(), false));
  const std::optional<Literal> literal = known(value);
  if (!literal) {
    const int64_t parameter = importer.parameter_of(value);
    const std::string why =
        fmt::format("operand {} must be known at import: a shape depends on it", i);
    if (parameter < 0) fail("{}", why);
    throw NeedsParameter{parameter, why, assumed};
  }
  Ints values;
  for (int64_t k = 0; k < literal->elems(); ++k) values.push_back(literal->get_s64(k));
  return values;
}

// [#stablehlo<precision HIGH>, ...] as in HLO; empty: all are the default.
std::vector<std::string> ShloOp::precision() const {
  std::vector<std::string> words;
  const MlirAttr* found = op.attr("precision_config");
  if (found == nullptr) return words;
  bool plain = true;
  for (const MlirAttr& one : found->elements) {
    std::string word = one.elements.empty() ? one.text : one.elements[0].text;
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    plain = plain && word == "default";
    words.push_back(std::move(word));
  }
  if (plain) words.clear();
  return words;
}

Ints integer_field(const MlirAttr& numbers, std::string_view name) {
  Ints values;
  const MlirAttr* found = numbers.field(name);
  if (found != nullptr && !integers_of(*found, &values)) fail("{}: wanted integers", name);
  return values;
}

const ShloEntry* find_shlo(std::string_view name) {
  static const auto* const kTable = [] {
    auto* table = new std::unordered_map<std::string_view, const ShloEntry*>();
    for (const auto& family :
         {shlo_elementwise_ops(), shlo_movement_ops(), shlo_indexing_ops(), shlo_reduction_ops(),
          shlo_product_ops(), shlo_control_ops(), shlo_convolution_ops(), shlo_check_ops(),
          shlo_custom_ops(), shlo_chlo_ops(), shlo_special_ops(), shlo_parallel_ops(),
          shlo_quantize_ops()})
      for (const ShloEntry& entry : family) table->emplace(entry.name, &entry);
    return table;
  }();
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace heddle::import
